"""Rows that cannot be read are named, and hide no other row, conversation or head."""

from __future__ import annotations

import gc

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection

from chatmemory import UserMessage, services
from chatmemory.core.policies import MessageWindow
from chatmemory.ledger.chain import verify_head
from chatmemory.ledger.verification import verify
from chatmemory.models import Memory, Stay

MEMORY, STEP, MESSAGE, STAY = (
    f"UPDATE chatmemory_{table} SET {{}} WHERE {key}"
    for table, key in (
        ("memory", "id = 'a'"),
        ("step", "memory_id = 'a' AND n = 3"),
        ("message", "memory_id = 'a' AND seq = 3"),
        ("stay", "memory_id = 'a' AND n = 3"),
    )
)
ENTRY = "UPDATE chatmemory_auditentry SET {} WHERE memory_id = 'a'"
EVERYWHERE = {
    "a limit of nothing": (STEP, "policy_limit = 0", "step 3"),
    "a negative limit": (STEP, "policy_limit = -1", "step 3"),
    "options that are a list": (STEP, "policy_options = '[]'", "step 3"),
    "options that are a number": (STEP, "policy_options = '0'", "step 3"),
    "the limit in force": (MEMORY, "policy_limit = 0", "the conversation"),
    "the options in force": (MEMORY, "policy_options = '[]'", "the conversation"),
    "labels that are a number": (MEMORY, "labels = '0'", "the conversation"),
    "labels that are null": (MEMORY, "labels = 'null'", "the conversation"),
    "an entry that is a list": (ENTRY, "detail = '[]'", "audit entry"),
    "an entry that is a number": (ENTRY, "detail = '0'", "audit entry"),
    "an entry of a list": (ENTRY, """detail = '{"seq": [], "step": 6}'""", "audit entry"),
}
POSTGRESQL = {
    "the time of a step": (STEP, "at = 'infinity'", "step 3"),
    "the time of a message": (MESSAGE, "said_at = '-infinity'", "message #3"),
    "the beginning": (MEMORY, "created_at = '0044-01-01 BC'", "the conversation"),
    "the last activity": (MEMORY, "updated_at = 'infinity'", "the conversation"),
}
SQLITE = {
    "text in a number": (STAY, "rank = 'garbage'", "stay 3"),
    "a fraction in a number": (MEMORY, "last_step = 6.5", "the conversation"),
    "text in a digest": (STEP, "digest = 'garbage'", "step 3"),
    "a number in a digest": (STEP, "digest = 1099511627776", "step 3"),
    "a number in a head": (MEMORY, "head = 1099511627776", "the conversation"),
    "a number in a commitment": (MESSAGE, "commitment = 1099511627776", "message #3"),
    "bytes in a name": (STEP, "policy_estimator = x'00ff'", "step 3"),
    "bytes in a time": (STEP, "at = x'00ff'", "step 3"),
    "a time that is always another": (MEMORY, "updated_at = 'now'", "the conversation"),
    "text that is not UTF-8": (MESSAGE, "text = CAST(x'ff' AS TEXT)", "message #3"),
    "year 0": (STEP, "at = '0000-01-01 00:00:00'", "step 3"),
    "the beginning in year 0": (MEMORY, "created_at = '0000-01-01 00:00:00'", "the conversation"),
}
HERE = EVERYWHERE | (SQLITE if connection.vendor == "sqlite" else POSTGRESQL)


@pytest.fixture
def conversations(db) -> None:
    for memory_id in "abc":
        services.create(memory_id, MessageWindow(3))
        services.add(memory_id, [UserMessage(f"message {n}") for n in range(5)])
        services.redact(memory_id, 5)


def execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


@pytest.mark.parametrize("name", HERE)
def test_what_cannot_be_read_is_named_and_the_others_are_verified(conversations, capsys, name):
    statement, change, row = HERE[name]
    execute(statement.format(change))
    Stay.objects.filter(memory="c", n=3).update(tokens=1)
    with pytest.raises(CommandError, match="2 of 3 conversations differ"):
        call_command("verify_memories")
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("'a': ")
    assert row in first
    assert second.startswith("'c': stay 3 of message #3: tokens is 1")


@pytest.mark.parametrize("name", HERE)
def test_heads_of_what_cannot_be_read_are_compared_or_named(conversations, name):
    statement, change, _ = HERE[name]
    heads = {row.pk: bytes(row.head).hex() for row in Memory.objects.all()}
    execute(statement.format(change))
    found = verify_head("a", 6, heads["a"])
    assert found is None or found.row == "step 6"
    assert verify_head("b", 6, heads["b"]) is None


def test_the_rows_before_an_unreadable_one_come_first(conversations):
    """Drivers read many rows at once."""
    never = "0000-01-01 00:00:00" if connection.vendor == "sqlite" else "infinity"
    execute(STEP.format(f"at = '{never}'"))
    execute("UPDATE chatmemory_step SET actor = 'mallory' WHERE memory_id = 'a' AND n = 2")
    assert verify("a").row == "step 2"


def test_an_unreadable_row_that_was_added_before_the_first_is_named(conversations):
    never = "0000-01-01 00:00:00" if connection.vendor == "sqlite" else "infinity"
    execute("UPDATE chatmemory_step SET n = -3 WHERE memory_id = 'a' AND n = 3")
    execute(f"UPDATE chatmemory_step SET at = '{never}' WHERE n = -3")
    assert "cannot be read" in verify("a").what


def test_an_outage_is_no_contradiction(conversations):
    def refuse(run, sql, *args):
        return run(sql.replace("chatmemory_stay", "chatmemory_nothing"), *args)

    gc.collect()
    refused = pytest.raises(DatabaseError, match="chatmemory_nothing")
    with connection.execute_wrapper(refuse), refused as kept:
        verify("a")
    # The error keeps them, and they would be closed within some later transaction
    cursors = [each for each in gc.get_objects() if type(each).__name__ == "ServerSideCursor"]
    assert kept.value
    assert all(cursor.closed for cursor in cursors)


def test_unreadable_heads_are_not_printed_and_are_named(conversations, capsys):
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL has nothing but bytes in a head")
    execute(MEMORY.format("head = 1099511627776"))
    with pytest.raises(CommandError, match="1 head cannot be read"):
        call_command("verify_memories", print_heads=True)
    said = capsys.readouterr()
    assert [line.split("\t")[0] for line in said.out.splitlines()] == ["b", "c"]
    assert "'a'" in said.err


def test_heads_of_what_has_no_readable_time_are_printed(conversations, capsys):
    never = "0000-01-01 00:00:00" if connection.vendor == "sqlite" else "infinity"
    execute(MEMORY.format(f"updated_at = '{never}'"))
    call_command("verify_memories", "a", print_heads=True)
    assert capsys.readouterr().out.startswith("a\t6\t")


@pytest.fixture(params=["CAST(x'ff' AS TEXT)", "x'6d'"])
def with_an_unreadable_id(request, conversations) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL takes only text")
    services.create("n", MessageWindow(3))
    head = "(SELECT head FROM chatmemory_memory WHERE id = 'a')"
    execute(f"UPDATE chatmemory_memory SET id = {request.param}, head = {head} WHERE id = 'n'")


def test_an_id_that_cannot_be_read_hides_no_other_conversation(with_an_unreadable_id, capsys):
    Stay.objects.filter(memory="c", n=3).update(tokens=1)
    with pytest.raises(CommandError, match="2 of 4 conversations differ"):
        call_command("verify_memories", repair_index=True)
    told = capsys.readouterr().err.splitlines()
    assert sum("the conversation: its id is no readable text" in line for line in told) == 1
    assert sum(line.startswith("'c': stay 3 of message #3") for line in told) == 1


def test_an_id_that_cannot_be_read_hides_no_other_head(with_an_unreadable_id, capsys):
    execute("UPDATE chatmemory_memory SET last_step = 1 WHERE id NOT IN ('a', 'b', 'c')")
    with pytest.raises(CommandError, match="1 head cannot be read"):
        call_command("verify_memories", print_heads=True)
    said = capsys.readouterr()
    assert [line.split("\t")[0] for line in said.out.splitlines()] == ["a", "b", "c"]
    assert said.err.endswith("its id is no readable text\n")
