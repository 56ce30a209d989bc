"""Copies of a SQLite database, restoring one, and what damage to its file looks like."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from chatmemory import MessageWindow, UserMessage, services
from chatmemory.reading import conversations

from . import processes
from .connecting import connected
from .conversations import create_and_add, numbered
from .serving import MANAGE

LISTING = """from chatmemory.models import Message
print(list(Message.objects.values_list("memory_id", "text", "seq")))"""

RECORD = "INSERT INTO django_migrations (app, name, applied) VALUES (?, ?, '')"


@pytest.fixture
def file(committing) -> Path:
    """The file of the database, which has a conversation."""
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL has pg_dump and pg_restore")
    create_and_add("kept", MessageWindow(100), numbered(40, "word " * 500))
    return Path(connection.settings_dict["NAME"])


def backup(to: Path) -> Path:
    call_command("backup", str(to))
    return to


def damage(file: Path) -> None:
    """Overwrite the second half of a file."""
    connection.close()
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2] + b"\xff" * (len(content) // 2))


def test_a_copy_takes_the_place_of_the_database(file, tmp_path, capsys):
    copy = backup(tmp_path / "copy")
    services.add("kept", [UserMessage("later")])
    connection.close()
    call_command("restore", str(copy), "--yes")
    assert conversations.memory("kept").last_step == 40
    call_command("verify_memories")
    assert "1 conversation verified" in capsys.readouterr().out
    assert sorted(each.name for each in tmp_path.glob("copy*")) == ["copy"]


@pytest.mark.own_server
def test_a_copy_made_during_writes_is_complete(served, tmp_path):
    if not served.environment["DATABASE_URL"].startswith("sqlite"):
        pytest.skip("PostgreSQL has pg_dump")
    from .load.test_crash import Load  # clients that write without a pause

    for memory_id in ("one", "two", "three"):
        served.create(memory_id, limit=10)
    copy = tmp_path / "copy.sqlite3"
    with Load(served) as load:
        load.wait_for(30)
        known = set(load.acknowledged)
        assert "bytes" in served.manage("backup", str(copy))
        load.wait_for(5)
    with pytest.raises(subprocess.CalledProcessError) as refused:
        served.manage("backup", served.environment["DATABASE_URL"][10:], "--force")
    assert "is the database in use" in refused.value.stderr
    served.environment = served.environment | {"DATABASE_URL": f"sqlite:///{copy}"}
    assert "verified: all match their replay" in served.manage("verify_memories")
    kept = served.manage("shell", "-v", "0", "-c", LISTING)
    assert all(str(each) in kept for each in known)
    assert copy.stat().st_mode & 0o077 == 0


def test_a_copy_does_not_replace_files(db, tmp_path):
    if connection.vendor != "sqlite":
        with pytest.raises(CommandError, match="pg_dump"):
            call_command("backup", str(tmp_path / "copy"))
        return
    target = tmp_path / "copy.sqlite3"
    target.write_text("precious")
    with pytest.raises(CommandError, match="already exists"):
        call_command("backup", str(target))
    with pytest.raises(CommandError, match="cannot be written"):
        call_command("backup", str(tmp_path / "nowhere" / "copy"))
    with connected(str(tmp_path / "typo.sqlite3")):
        for arguments in ([str(target), "--force"], [str(tmp_path / "new")]):
            with pytest.raises(CommandError, match="has no tables of chatmemory"):
                call_command("backup", *arguments)
    assert target.read_text() == "precious"
    assert not list(tmp_path.glob("new*"))


def test_a_copy_that_is_terminated_leaves_nothing(warm_processes, file, tmp_path):
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE large AS SELECT zeroblob(100000000)")
    partial, environment = tmp_path / "copy.partial", {"DATABASE_URL": f"sqlite:///{file}"}
    command = [*MANAGE, "backup", str(tmp_path / "copy")]
    copying = processes.start(command, os.environ | environment)
    while not partial.exists() or not partial.stat().st_size:
        assert copying.poll() is None
    copying.terminate()
    assert copying.wait() == 128 + signal.SIGTERM
    assert not list(tmp_path.glob("copy*"))


def test_a_copy_removes_what_a_killed_one_has_left(file, tmp_path):
    for ending in ("partial", "partial-journal"):
        (tmp_path / f"copy.{ending}").write_text("garbage" * 1_000)
    copy = backup(tmp_path / "copy")
    assert sorted(each.name for each in tmp_path.glob("copy*")) == ["copy"]
    connection.close()
    call_command("restore", str(copy), "--yes")
    call_command("verify_memories")


def test_a_copy_is_made_in_any_thread(file, tmp_path):
    def copy() -> None:
        with connected(str(file)):
            backup(tmp_path / "copy")

    with ThreadPoolExecutor() as threads:
        threads.submit(copy).result()
    assert (tmp_path / "copy").exists()


def test_a_log_that_a_crash_left_does_not_reach_what_is_restored(file, tmp_path):
    copy = backup(tmp_path / "copy")
    services.add("kept", numbered(40, "later " * 500))
    left = {each: each.read_bytes() for each in file.parent.glob(f"{file.name}*")}
    assert len(left) == 3, "the file, its log and the index of that"
    connection.close()
    for each, content in left.items():
        each.write_bytes(content)
    call_command("restore", str(copy), "--yes")
    assert conversations.memory("kept").last_step == 40
    call_command("verify_memories")


def test_nothing_is_restored_while_somebody_has_the_database_open(file, tmp_path):
    copy = backup(tmp_path / "copy")
    connection.close()
    with closing(sqlite3.connect(file)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(CommandError, match="is in use: stop the server"):
            call_command("restore", str(copy), "--yes")


def test_only_a_whole_copy_is_restored(file, tmp_path):
    copy = backup(tmp_path / "copy")
    torn, other, own = (tmp_path / name for name in ("torn", "other", "own"))
    earlier, newer, newer_room = (tmp_path / name for name in ("earlier", "newer", "newer_room"))
    shutil.copy(copy, torn)
    damage(torn)
    other.write_text("no database")
    with closing(sqlite3.connect(own)) as made:
        made.execute("CREATE TABLE mine (id)")
    for file_of_another, app, name in (
        (earlier, "chatmemory", "0001_initial"),
        (newer, "chatmemory", "0099_later"),
        (newer_room, "chatmemory_evidence", "0098_later"),
    ):
        shutil.copy(copy, file_of_another)
        with closing(sqlite3.connect(file_of_another)) as made, made:
            if file_of_another == earlier:
                made.execute("DELETE FROM django_migrations WHERE app = 'chatmemory'")
            made.execute(RECORD, [app, name])
    for given, why in {
        torn: "is damaged",
        other: "is damaged: file is not a database",
        own: "has no tables of chatmemory",
        earlier: "this version lacks its migrations 0001_initial. Export its conversations",
        newer: "was migrated by a newer version of chatmemory, to 0099_later. Install the version",
        newer_room: "was migrated by a newer version of chatmemory, to 0098_later.",
        tmp_path / "nothing": "does not exist",
        file: "is the database in use",
    }.items():
        with pytest.raises(CommandError, match=why):
            call_command("restore", str(given), "--yes")
    assert conversations.memory("kept").last_step == 40


def test_a_copy_takes_the_place_of_a_database_of_another_version(warm_processes, file, tmp_path):
    copy = backup(tmp_path / "copy")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE django_migrations SET name = 'x' WHERE app = 'chatmemory'")
    connection.close()
    environment = os.environ | {"DATABASE_URL": f"sqlite:///{file}"}
    processes.run([*MANAGE, "restore", str(copy), "--yes"], environment).check_returncode()
    call_command("migrate", verbosity=0)
    assert conversations.memory("kept").last_step == 40


def test_a_restore_asks_first(file, tmp_path, monkeypatch):
    copy = backup(tmp_path / "copy")
    services.add("kept", [UserMessage("later")])
    connection.close()
    monkeypatch.setattr("builtins.input", lambda _: "no")
    with pytest.raises(
        CommandError,
        match="nothing was restored, because you did not confirm: type yes, or use --yes",
    ):
        call_command("restore", str(copy))
    assert conversations.memory("kept").last_step == 41


def test_a_damaged_file_is_named(file):
    damage(file)
    with pytest.raises(CommandError, match=r"the database is damaged: .*: restore a backup"):
        call_command("verify_memories")
    file.write_text("no database" * 100)
    with pytest.raises(CommandError, match="the database is damaged: file is not a database"):
        call_command("verify_memories")


def test_a_copy_takes_the_place_of_a_damaged_database(file, tmp_path):
    copy = backup(tmp_path / "copy")
    damage(file)
    call_command("restore", str(copy), "--yes")
    call_command("verify_memories")
    connection.close()
    file.write_text("no database" * 100)
    with pytest.raises(CommandError, match="move it and its -wal and -shm files away"):
        call_command("restore", str(copy), "--yes")
    file.unlink()
    call_command("restore", str(copy), "--yes")
    call_command("verify_memories")
