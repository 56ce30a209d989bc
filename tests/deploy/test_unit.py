"""deploy/manage runs commands with the variables of the unit and of /etc/chatmemory.env."""

from __future__ import annotations

import os
import pwd
import re
import secrets
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .. import processes
from ..serving import MANAGE, ROOT, database

ENV = """
# of the tests
CHATMEMORY_HOSTS=memory.example.org
CHATMEMORY_SECRET_KEY='a "b" $HOME # c'
CHATMEMORY_METRICS_TOKEN="a \\"b\\" $HOME"
CHATMEMORY_LESSONS=a\\ b # c
"""
REAL = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from inspector.__main__ import main
main()
"""
SHOWN = """
import os
for name in ("PRODUCTION", "HOSTS", "SECRET_KEY", "METRICS_TOKEN", "LESSONS", "VAR"):
    print(os.environ["CHATMEMORY_" + name])
"""


@pytest.fixture
def checkout(tmp_path) -> Path:
    """A checkout whose manage.py shows its variables, and whose unit names this user and a file."""
    shutil.copytree(ROOT / "deploy", tmp_path / "deploy")
    unit = tmp_path / "deploy" / "chatmemory.service"
    user = pwd.getpwuid(os.getuid()).pw_name
    text = unit.read_text().replace("User=chatmemory", f"User={user}")
    unit.write_text(text.replace("/etc/chatmemory.env", f"{tmp_path}/env"))
    (tmp_path / "env").write_text(ENV)
    (tmp_path / ".venv").symlink_to(Path(sys.executable).parents[1])
    (tmp_path / "manage.py").write_text(SHOWN)
    return tmp_path


def test_commands_have_the_variables_of_the_unit_as_systemd_reads_them(checkout):
    ran = subprocess.run([checkout / "deploy" / "manage"], capture_output=True, text=True)
    assert ran.stderr == ""
    assert ran.stdout.splitlines() == [
        *("1", "memory.example.org", 'a "b" $HOME # c', 'a "b" $HOME', "a b # c"),
        "/var/lib/chatmemory",
    ]


def test_each_night_a_copy_with_its_heads_is_made_and_old_ones_go(checkout, template, tmp_path):
    """As systemd starts it, which has read the file of the variables."""
    (checkout / "manage.py").write_text(REAL)
    folder = tmp_path / "backups"
    folder.mkdir()
    for day in range(1, 6):
        (folder / f"2026-01-0{day}.heads").touch()
    with database(tmp_path, copy_of=template.url) as url:
        environment = {
            "DATABASE_URL": url,
            "CHATMEMORY_SECRET_KEY": secrets.token_urlsafe(48),
            "CHATMEMORY_HOSTS": "localhost",
            "INVOCATION_ID": "of systemd",
            "BACKUPS": str(folder),
            "KEEP": "2",
            "PATH": os.environ["PATH"],
        }
        ran = subprocess.run(
            [checkout / "deploy" / "nightly"], env=environment, capture_output=True, text=True
        )
    assert ran.returncode == 0, ran.stderr
    kept = sorted(each.name for each in folder.iterdir())
    assert kept[:2] == ["2026-01-04.heads", "2026-01-05.heads"]
    assert [Path(name).suffix for name in kept[2:]] in ([".heads", ".sqlite3"], [".dump", ".heads"])


def test_a_bare_command_names_the_database_that_has_no_tables(warm_processes, tmp_path):
    other = {"DATABASE_URL": f"sqlite:///{tmp_path}/other.sqlite3"}
    ran = processes.run([*MANAGE, "list_tokens"], os.environ | other)
    assert ran.returncode == 1
    assert f"not migrated ({tmp_path}/other.sqlite3)" in ran.stderr


def test_the_tests_use_the_same_requirements_as_the_server():
    served, tested = (
        set(re.findall(r"^(\S+==\S+)", (ROOT / name).read_text(), re.M))
        for name in ("requirements-serve.txt", "requirements-dev.txt")
    )
    names = {each.partition("==")[0] for each in served}
    assert {"django", "gunicorn", "psycopg", "uvicorn-worker"} < names
    assert {each for each in served if each.startswith(("django==", "gunicorn"))} < tested
