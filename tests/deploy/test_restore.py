"""The lines of docs/operations.md that copy a database and bring it back."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from ..serving import Served, database
from .documented import Shell, lines_after

POSTGRESQL = os.environ.get("DATABASE_URL", "").startswith("postgres")
QUICK_ON_POSTGRESQL = pytest.mark.database if POSTGRESQL else pytest.mark.long


@pytest.fixture
def shell(template, tmp_path):
    """A shell beside a database that has a conversation."""
    with database(tmp_path, copy_of=template.url) as url:
        with Served(url, tmp_path, template.token) as served:
            served.start()
            served.create("kept", "one", "two", "three", "four")
        yield Shell(tmp_path, served.environment)


@pytest.mark.long
def test_a_copy_comes_back_with_every_head(shell, tmp_path):
    """On PostgreSQL into an empty database, whose owner has no other rights."""
    backup, restore = lines_after("PostgreSQL." if POSTGRESQL else "SQLite.")
    files = {name: str(tmp_path / name) for name in ("FILE", "HEADS")}
    shell.run(backup, **files)
    for file in map(Path, files.values()):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with elsewhere(tmp_path / "new") as url:
        shell.environment["DATABASE_URL"] = url
        told = shell.run(restore, **files)
        assert "1 conversation verified: all match their replay" in told
        if POSTGRESQL:
            shell.run(restore, **files)  # in the place of the same
        assert "kept" in shell.run("manage.py list_memories")
    assert (tmp_path / "systemctl").read_text().split()[:2] == ["stop", "chatmemory"]


@QUICK_ON_POSTGRESQL
def test_conversations_move_to_another_database_with_every_head(shell, tmp_path):
    (move,) = lines_after("From SQLite to PostgreSQL")
    chat = tmp_path / "chat.jsonl"
    chat.write_text('{"messages": [{"role": "user", "content": "hi"}]}\n')
    shell.run(f"manage.py import_transcripts {chat}")
    with elsewhere(tmp_path / "new") as url:
        shell.environment |= {"NEW_DATABASE_URL": url, "CHATMEMORY_SECRET_KEY": "another" * 8}
        told = shell.run(move, FILE=str(tmp_path / "all.jsonl"), HEADS=str(tmp_path / "heads"))
        assert "2 conversations verified: all match their replay" in told
        shell.environment["DATABASE_URL"] = url
        again = shell.run(f"manage.py import_transcripts {chat}")
        assert "1 already imported, 0 refused" in again


@contextmanager
def elsewhere(folder: Path) -> Iterator[str]:
    """The URL of an empty database. On PostgreSQL it belongs to a role that owns nothing else."""
    if not POSTGRESQL:
        folder.mkdir()
        yield f"sqlite:///{folder}/empty.sqlite3"
        return
    name, given = f"empty_{uuid4().hex[:12]}", os.environ["DATABASE_URL"]
    with psycopg.connect(given, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {name} LOGIN")
        admin.execute(f"CREATE DATABASE {name} OWNER {name}")
        host = given.rpartition("/")[0].rpartition("@")[2]
        yield f"postgresql://{name}@{host}/{name}"
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")
        admin.execute(f"DROP ROLE {name}")
