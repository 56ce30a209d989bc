from __future__ import annotations

import httpx
import pytest

from inspector.rooms.recorder.proxy import files

from .upstream import ANSWER, answer_json, provider, recorder


@pytest.fixture(autouse=True)
def _files_are_over_soon(monkeypatch):
    """A file takes further calls for a moment only: most tests wait until it is over."""
    monkeypatch.setattr(files, "_SHARED_SECONDS", 0.01)


@pytest.fixture
def upstream():
    with provider() as found:
        found.answer = lambda handler, got: answer_json(handler, ANSWER)
        yield found


@pytest.fixture
def folder(tmp_path):
    """The folder of a spool."""
    made = tmp_path / "spool"
    made.mkdir()
    return made


@pytest.fixture
def site(upstream, folder):
    """The URL of a recorder in front of the provider."""
    with recorder(folder, upstream.url) as url:
        yield url


@pytest.fixture
def client(site):
    with httpx.Client(base_url=site, timeout=10) as found:
        yield found
