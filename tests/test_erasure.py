"""Erasure removes texts from every table and file; an audit entry remains."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection

from chatmemory import (
    AiMessage,
    CustomMessage,
    MemoryNotFound,
    MessageWindow,
    SystemMessage,
    TokenWindow,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    services,
    sqlite_files,
)
from chatmemory.database import parts_of
from chatmemory.ledger import erasure
from chatmemory.models import AuditEntry, IdempotentAnswer, Memory, Message, Stay, Step
from chatmemory.reading import conversations, overview

from .conversations import BRIEF, create_and_add

SECRET = "my card is 4111-1111-QUOKKA"
SAID = [
    SystemMessage(SECRET),
    UserMessage(SECRET),
    AiMessage(SECRET, (ToolExecutionRequest("1", "pay", f'{{"card": "{SECRET}"}}'),), SECRET),
    ToolExecutionResultMessage("1", "pay", SECRET),
    CustomMessage({"card": SECRET}),
    BRIEF,
]


def everything() -> str:
    """Every value of every row of a conversation."""
    tables = (Memory, Message, Stay, Step, AuditEntry, IdempotentAnswer)
    return str([list(table.objects.values()) for table in tables])


def redacted() -> set[tuple[str, int]]:
    rows = Message.objects.filter(redacted_step__isnull=False)
    return set(rows.values_list("memory_id", "seq"))


def ids_left() -> set[str]:
    return set(Memory.objects.values_list("pk", flat=True))


@pytest.fixture
def secrets(db) -> str:
    create_and_add("m", TokenWindow(5_000), SAID)
    return "m"


# Deletion


def test_a_deletion_leaves_an_audit_entry_and_nothing_else(secrets):
    services.delete("m", actor="ada")
    (entry,) = AuditEntry.objects.all()
    assert (entry.action, entry.memory_id, entry.actor) == ("delete", "m", "ada")
    assert entry.detail.keys() == {"steps", "messages", "head"}
    assert (entry.detail["steps"], entry.detail["messages"]) == (6, 6)
    assert "QUOKKA" not in everything()
    assert not Message.objects.exists()
    with pytest.raises(MemoryNotFound):
        services.delete("m")


def audit_lines(caplog, capture, act) -> list[logging.LogRecord]:
    """Return the lines of the audit log that an action writes when it commits."""
    with caplog.at_level(logging.INFO, "chatmemory.audit"), capture(execute=True):
        act()
    return [record for record in caplog.records if record.name == "chatmemory.audit"]


def test_log_lines_have_actor_and_action_without_texts(
    secrets, caplog, django_capture_on_commit_callbacks
):
    def act() -> None:
        services.create("empty", None, actor="ada")
        services.add("m", [UserMessage(SECRET)], actor="ada")
        services.delete("m", actor="ada")

    created, added, deleted = audit_lines(caplog, django_capture_on_commit_callbacks, act)
    assert (created.action, created.memory_id, created.actor) == ("create", "empty", "ada")
    assert (added.action, added.actor, added.memory_id) == ("add", "ada", "m")
    assert (added.first_step, added.last_step, deleted.action) == (7, 7, "delete")
    assert "QUOKKA" not in caplog.text


def test_several_conversations_are_locked_in_one_order(
    db, caplog, django_capture_on_commit_callbacks
):
    """Otherwise two writers of the same conversations wait for each other on PostgreSQL."""

    def act() -> None:
        services.label(["c", "a", "b", "a"], "team", "x")
        services.delete_all(["b", "c", "a"], "ada")

    for memory_id in "cab":
        services.create(memory_id, MessageWindow(2))
    lines = audit_lines(caplog, django_capture_on_commit_callbacks, act)
    told = [(line.action, line.memory_id) for line in lines]
    assert told == [(action, each) for action in ("labels", "delete") for each in "abc"]
    assert {entry.actor for entry in AuditEntry.objects.all()} == {"ada"}


def test_many_conversations_are_deleted_in_short_transactions(db, monkeypatch):
    assert list(parts_of({"a": 4, "b": 4, "c": 9, "d": 1}, 9)) == [["a", "b"], ["c"], ["d"]]
    assert list(parts_of({"a": 10}, 9)) == [["a"]]
    assert list(parts_of({}, 9)) == [[]]
    monkeypatch.setattr(erasure, "AT_ONCE", 10)
    for n in range(9):
        create_and_add(f"m{n}", MessageWindow(2), [UserMessage("a")])  # four rows
    services.delete_all([f"m{n}" for n in range(9)])
    assert overview.count() == 0


def test_a_conversation_that_somebody_deletes_meanwhile_is_left_out(db, monkeypatch):
    sizes_of = erasure.sizes_of

    def meanwhile(memory_ids):
        sizes = sizes_of(memory_ids)
        services.delete("b")
        return sizes

    monkeypatch.setattr(erasure, "sizes_of", meanwhile)
    for memory_id in "abc":
        services.create(memory_id, MessageWindow(2))
    services.delete_all(["a", "b", "c"])
    assert overview.count() == 0


def test_nothing_is_deleted_or_labelled_if_one_does_not_exist(db):
    services.create("m", MessageWindow(2))
    for act in (services.delete_all, lambda ids: services.label(ids, "team", "a")):
        with pytest.raises(MemoryNotFound, match="nobody"):
            act(["m", "nobody"])
    assert conversations.memory("m").labels == {}


# The bytes of SQLite's files


def bytes_of(served) -> bytes:
    database = Path(served.environment["DATABASE_URL"].removeprefix("sqlite:///"))
    return b"".join(file.read_bytes() for file in database.parent.glob(f"{database.name}*"))


@pytest.mark.parametrize("how", ["redact", "delete"])
def test_no_byte_is_left_in_sqlites_files(served, how):
    if not served.environment["DATABASE_URL"].startswith("sqlite"):
        pytest.skip("PostgreSQL keeps what VACUUM and its log still hold, see docs/operations.md")
    secret = f"{how}-4111-1111-QUOKKA"
    served.create(how)
    served.say(how, f"my card is {secret}", f"{secret} " * 2_000)
    assert secret.encode() in bytes_of(served)
    url = f"{served.url}/api/v1/memories/{how}/"
    if how == "delete":
        served.api.delete(url).raise_for_status()
    else:
        for seq in (1, 2):
            served.api.post(f"{url}messages/{seq}/redact/").raise_for_status()
    assert "vacuumed" in served.manage("vacuum")
    assert secret.encode() not in bytes_of(served)


@pytest.fixture
def reader(committing) -> Iterator[sqlite3.Connection]:
    """A reader that needs the log, which holds a conversation's words."""
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL's log cannot be emptied")
    create_and_add("m", MessageWindow(3), [UserMessage(SECRET)])
    with closing(sqlite3.connect(connection.settings_dict["NAME"])) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM chatmemory_message").fetchone()
        yield reader


def log_of_sqlite() -> bytes:
    return Path(f"{connection.settings_dict['NAME']}-wal").read_bytes()


def test_an_erasure_does_not_wait_for_a_reader_and_says_so(reader, caplog):
    services.redact("m", 1)
    assert "which still has erased data" in caplog.text
    services.empty_leftover_log()
    assert b"QUOKKA" in log_of_sqlite()
    reader.close()
    services.empty_leftover_log()
    assert not log_of_sqlite()
    assert b"QUOKKA" not in Path(connection.settings_dict["NAME"]).read_bytes()
    services.add("m", [UserMessage("more")])
    services.empty_leftover_log()
    assert log_of_sqlite(), "nothing was erased since"


def test_vacuum_says_whether_a_reader_needs_the_log(reader, capsys, monkeypatch):
    monkeypatch.setattr("chatmemory.management.commands.vacuum.WAIT_SECONDS", 0)
    services.redact("m", 1)
    reader.execute("COMMIT")
    call_command("vacuum")
    assert capsys.readouterr().out == "vacuumed\n"
    assert not log_of_sqlite()
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM chatmemory_message").fetchone()
    call_command("vacuum")
    assert "a reader still needs the write-ahead log" in capsys.readouterr().out


def test_a_log_that_an_earlier_process_has_left_is_emptied(reader, monkeypatch):
    services.redact("m", 1)
    reader.close()
    monkeypatch.setattr(sqlite_files, "EMPTIED", set())  # as in a new process
    services.empty_leftover_log()
    assert not log_of_sqlite()


@pytest.mark.parametrize("how", ["at once", "in slices", "interrupted"])
def test_a_deletion_leaves_nothing_in_the_log(committing, monkeypatch, how):
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL's log cannot be emptied")
    if how != "at once":
        monkeypatch.setattr(erasure, "AT_ONCE", 0)
    create_and_add("m", MessageWindow(3), [UserMessage(SECRET)])
    with monkeypatch.context() as patched:
        if how == "interrupted":
            patched.setattr(erasure, "purge", lambda memory_id: None)
        services.delete("m")
    if how == "interrupted":
        services.finish_deletions()
    file = str(connection.settings_dict["NAME"])
    assert not Path(f"{file}-wal").read_bytes()
    assert b"QUOKKA" not in Path(file).read_bytes()
