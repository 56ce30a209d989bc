"""The first start of an installation."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from inspector.project import settings


def test_several_first_starts_at_once_have_one_secret_key(monkeypatch, tmp_path):
    for n in range(20):
        monkeypatch.setattr(settings, "VAR", tmp_path / str(n))
        together = Barrier(4)

        def start(together=together) -> str:
            together.wait()
            return settings._local_secret()

        with ThreadPoolExecutor(4) as processes:
            keys = {each.result() for each in [processes.submit(start) for _ in range(4)]}
        assert len(keys) == 1
        assert len(keys.pop()) == 50
        (file,) = settings.VAR.iterdir()
        assert file.stat().st_mode & 0o777 == 0o600


def test_a_database_is_made_for_its_owner_alone(tmp_path):
    file = tmp_path / "new" / "chatmemory.sqlite3"
    settings._make_private(file)
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    file.chmod(0o640)
    settings._make_private(file)
    assert file.stat().st_mode & 0o777 == 0o640, "what is there stays as its owner wants it"
