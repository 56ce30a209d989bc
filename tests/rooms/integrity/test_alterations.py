"""The alterations in SECURITY.md: the check that finds each of them, or that none can."""

from __future__ import annotations

import gc
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection

from chatmemory import (
    AiMessage,
    MessageWindow,
    SystemMessage,
    TokenWindow,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    services,
)
from chatmemory.inserted import NewMessage
from chatmemory.ledger.verification import verify
from chatmemory.models import AuditEntry, Memory, Message, Stay, Step
from inspector.rooms.evidence.models import KeptIncidents
from inspector.rooms.integrity import chain
from inspector.rooms.integrity.checking import verify_head

from ...conversations import create_and_add, numbered
from ...test_verification import add_copy, cut_off, heads, rewrite

SECURITY = Path(__file__).parents[3] / "SECURITY.md"
EARLIER = datetime(2020, 1, 1, tzinfo=UTC)
VERIFY, HEADS, OUT_OF_REACH = "`verify_memories`", "kept heads", "out of reach"
ANEW = "`verify_memories` makes them again"
CALL = ToolExecutionRequest("1", "pay", "{}")


@pytest.fixture
def conversation(db) -> str:
    services.create("m", TokenWindow(500), {"team": "red"})
    system = SystemMessage("Be brief.", {"openai_chat": {"role": "developer"}})
    services.add("m", [system, UserMessage("pay no")])
    services.add("m", [AiMessage("Paying.", (CALL,), "They said no.")])
    services.add("m", [ToolExecutionResultMessage("1", "pay", "done")])
    services.add("m", [UserMessage("my card"), NewMessage(UserMessage("bye"), client_id="last")])
    services.change("m", labels={"team": "blue"})
    services.redact("m", 5, actor="ada")
    services.add("m", [UserMessage("hello")])
    return "m"


def update(model, **values):
    """Return an alteration that sets columns of the only row, or of that with the given number."""

    def alter() -> None:
        seq, n = values.pop("of_seq", None), values.pop("of_step", None)
        rows = model.objects.all()
        rows = rows.filter(seq=seq) if seq else rows.filter(n=n) if n else rows
        assert rows.update(**values) == 1

    return alter


def say(seq: int, message):
    return lambda: rewrite("m", seq, message)


def swap_messages() -> None:
    for old, new in ((2, 100), (6, 2), (100, 6)):
        Message.objects.filter(seq=old).update(seq=new)


def sql(*statements: str):
    def alter() -> None:
        if connection.vendor != "sqlite":
            pytest.skip("PostgreSQL searches the texts themselves")
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    return alter


def alter_incidents() -> None:
    services.keep("m")
    update(KeptIncidents, forced=99)()


def hide_deletion() -> None:
    services.delete("m")
    AuditEntry.objects.all().delete()


def alter_deletion(**values):
    """Return an alteration that deletes, and sets columns of the audit entry of that."""

    def alter() -> None:
        services.delete("m", actor="ada")
        assert AuditEntry.objects.filter(action="delete").update(**values) == 1

    return alter


def compute_chain_anew() -> None:
    """Alter words, and recompute all digests, as a person with the code and the database can."""
    rewrite("m", 2, UserMessage("pay up"))
    altered = Message.objects.get(seq=2)
    Message.objects.filter(seq=2).update(commitment=chain.commitment_of(altered))
    digest, seq = chain.first_digest(Memory.objects.get()), 0
    stays = Stay.objects.order_by("n")
    for step in Step.objects.order_by("n"):
        said = Message.objects.filter(seq__gt=seq, seq__lte=step.last_seq).order_by("seq")
        commitments = list(said.values_list("commitment", flat=True))
        begun = list(stays.filter(entered_step=step.n))
        ended = list(stays.filter(left_step=step.n).values_list("n", "reason"))
        digest, seq = chain.digest_of(digest, step, commitments, begun, ended), step.last_seq
        Step.objects.filter(n=step.n).update(digest=digest)
    Memory.objects.update(head=digest)


def hide() -> None:
    Memory.objects.update(deleted_at=EARLIER)


def enter(action: str, **detail):
    """Return an alteration that adds an audit entry."""
    return lambda: AuditEntry.objects.create(
        at=EARLIER, actor="ada", action=action, memory_id="m", detail=detail
    )


def lose_with_an_entry(**others):
    """Return an alteration that removes a conversation, and tells of a deletion of it."""

    def alter() -> None:
        memory = Memory.objects.get()
        detail = {"head": bytes(memory.head).hex()} | others
        memory.delete()
        enter("delete", steps=memory.last_step, **detail)()

    return alter


def compute_chain_anew_with_an_entry() -> None:
    compute_chain_anew()
    enter("delete", steps=1_000, head="00")()
    AuditEntry.objects.filter(action="redact").update(id=1_000_000)


def alter_policy_before_the_first_step() -> None:
    services.delete("m")
    services.create("m", TokenWindow(500))
    Memory.objects.update(policy_limit=501)
    services.add("m", [UserMessage("hello")])


ALTERATIONS = {
    "words, at an equal number of tokens": (VERIFY, say(2, UserMessage("pay yes"))),
    "words put into a redacted message": (VERIFY, say(5, UserMessage("my card"))),
    "the places of two messages": (VERIFY, swap_messages),
    "the call that a tool result answers": (
        VERIFY,
        say(4, ToolExecutionResultMessage("2", "pay", "done")),
    ),
    "the thinking of an answer": (VERIFY, say(3, AiMessage("Paying.", (CALL,), "They said yes."))),
    "the attributes of a system message": (VERIFY, update(Message, of_seq=1, attributes=None)),
    "attributes that a client changed": (
        VERIFY,
        update(Stay, of_seq=2, overrides='{"attributes":{"a":1},"salt":"00"}'),
    ),
    "attributes put beside a redacted message": (
        VERIFY,
        update(Message, of_seq=5, attributes='{"a":1}'),
    ),
    "the time at which a message was said": (VERIFY, update(Message, of_seq=2, said_at=EARLIER)),
    "a client's id of a message": (VERIFY, update(Message, of_seq=6, client_id="other")),
    "the actor of a step": (VERIFY, update(Step, of_step=2, actor="mallory")),
    "the time of a step": (VERIFY, update(Step, of_step=2, at=EARLIER)),
    "the actor of a redaction": (VERIFY, update(Step, of_step=8, actor="mallory")),
    "the time of a redaction": (VERIFY, update(Step, of_step=8, at=EARLIER)),
    "the policy of a step": (VERIFY, update(Step, of_step=2, policy_limit=501)),
    "a decision said to be the client's": (VERIFY, update(Step, of_step=2, by_client=True)),
    "labels": (VERIFY, update(Memory, labels={"team": "red"})),
    "counters and totals": (VERIFY, update(Memory, window_tokens=1)),
    "derived rows, such as flags": (ANEW, alter_incidents),
    "the load that is compared with the limit": (VERIFY, update(Memory, window_load=501)),
    "the load that is compared with the limit, removed": (VERIFY, update(Memory, window_load=None)),
    "how much of an import is stored": (VERIFY, update(Memory, imported=5)),
    "values that cannot be read": (VERIFY, update(Step, of_step=2, policy_limit=0)),
    "a conversation that is hidden as if its deletion had begun": (VERIFY, hide),
    "a message, a stay or a step that is gone": (
        VERIFY,
        lambda: Stay.objects.filter(n=6).delete(),
    ),
    "an added message, stay or step": (
        VERIFY,
        lambda: add_copy(Message, "seq", 2, -3),
    ),
    "the audit entry of a redaction that is gone": (
        VERIFY,
        lambda: AuditEntry.objects.all().delete(),
    ),
    "an added audit entry of a redaction": (VERIFY, enter("redact", seq=2, step=2)),
    "messages that the search index has lost": (
        VERIFY,
        sql("DELETE FROM chatmemory_search_places"),
    ),
    "an id and labels that the search index has lost": (
        VERIFY,
        sql("DELETE FROM chatmemory_search_places WHERE seq = 0"),
    ),
    "a message of the search index that was never said": (
        VERIFY,
        sql(
            "INSERT INTO chatmemory_search_places (memory_id, seq) VALUES ('m', 99)",
            "INSERT INTO chatmemory_search (rowid, text) "
            "SELECT id, 'pay yes' FROM chatmemory_search_places WHERE seq = 99",
        ),
    ),
    "the newest step, cut off with its counters": (HEADS, lambda: cut_off("m")),
    "a conversation that is gone": (HEADS, lambda: Memory.objects.all().delete()),
    "a deletion whose audit entry is gone": (HEADS, hide_deletion),
    "the action of a deletion's audit entry": (HEADS, alter_deletion(action="redact")),
    "the detail of a deletion's audit entry": (
        HEADS,
        alter_deletion(detail={"steps": 9, "head": "00"}),
    ),
    "a conversation that is gone, with an audit entry of another head": (
        HEADS,
        lose_with_an_entry(head="00"),
    ),
    "digests that were computed anew": (HEADS, compute_chain_anew),
    "a conversation that is gone, with an audit entry of its head": (
        OUT_OF_REACH,
        lose_with_an_entry(),
    ),
    "digests that were computed anew, with an audit entry of a deletion at a later step": (
        OUT_OF_REACH,
        compute_chain_anew_with_an_entry,
    ),
    "the words in the search index": (
        OUT_OF_REACH,
        sql(
            "INSERT INTO chatmemory_search (chatmemory_search, rowid, text) SELECT 'delete', id, "
            "'pay no' FROM chatmemory_search_places WHERE seq = 2",
            "INSERT INTO chatmemory_search (rowid, text) SELECT id, 'pay yes' "
            "FROM chatmemory_search_places WHERE seq = 2",
        ),
    ),
    "the source of a branch, which decides what an erasure offers": (
        OUT_OF_REACH,
        update(Memory, branched_from="other"),
    ),
    "the policy of a conversation without steps": (
        OUT_OF_REACH,
        alter_policy_before_the_first_step,
    ),
    "the time of the last activity": (VERIFY, update(Memory, updated_at=EARLIER)),
    "the actor of a deletion's audit entry": (OUT_OF_REACH, alter_deletion(actor="mallory")),
    "the time of an audit entry": (OUT_OF_REACH, update(AuditEntry, at=EARLIER)),
}


@pytest.mark.parametrize("name", ALTERATIONS)
def test_an_alteration_is_shown_as_promised(conversation, capsys, tmp_path, name):
    shown_by, alter = ALTERATIONS[name]
    kept = heads(capsys, tmp_path / "heads")
    call_command("verify_memories", heads=kept)
    alter()
    is_shown_by_verify = Memory.with_deleted.exists() and verify(conversation) is not None
    assert is_shown_by_verify == (shown_by == VERIFY)
    if shown_by == ANEW:
        call_command("verify_memories")
        assert not KeptIncidents.objects.filter(forced=99).exists()
    if shown_by == HEADS:
        with pytest.raises(CommandError):
            call_command("verify_memories", heads=kept)


def test_the_document_says_what_the_tests_show():
    _, _, rest = SECURITY.read_text().partition("## Alterations")
    table = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", rest.partition("\n## ")[0], re.MULTILINE)
    assert dict(table[1:]) == {name: shown_by for name, (shown_by, _) in ALTERATIONS.items()}


# Rows that cannot be read are named, and hide no other row, conversation or head.


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
        create_and_add(memory_id, MessageWindow(3), numbered(5))
        services.redact(memory_id, 5)


def execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


@pytest.mark.parametrize("name", HERE)
def test_what_cannot_be_read_is_named_and_the_others_are_verified(conversations, capsys, name):
    statement, change, row = HERE[name]
    heads = {each.pk: bytes(each.head).hex() for each in Memory.objects.all()}
    execute(statement.format(change))
    found = verify_head("a", 6, heads["a"])
    assert found is None or found.row == "step 6"
    assert verify_head("b", 6, heads["b"]) is None
    Stay.objects.filter(memory="c", n=3).update(tokens=1)
    with pytest.raises(CommandError, match="2 of 3 conversations differ"):
        call_command("verify_memories")
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("'a': ")
    assert row in first
    assert second.startswith("'c': stay 3 of message #3: tokens is 1")


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
    with pytest.raises(CommandError, match="1 digest cannot be read"):
        call_command("verify_memories", print_heads=True)
    said = capsys.readouterr()
    assert [line.split("\t")[0] for line in said.out.splitlines()] == ["b", "c"]
    assert "'a'" in said.err


def test_heads_of_a_conversation_without_a_readable_time_are_printed(conversations, capsys):
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
    assert sum("the conversation: its id is not readable text" in line for line in told) == 1
    assert sum(line.startswith("'c': stay 3 of message #3") for line in told) == 1


def test_an_id_that_cannot_be_read_hides_no_other_head(with_an_unreadable_id, capsys):
    execute("UPDATE chatmemory_memory SET last_step = 1 WHERE id NOT IN ('a', 'b', 'c')")
    with pytest.raises(CommandError, match="1 digest cannot be read"):
        call_command("verify_memories", print_heads=True)
    said = capsys.readouterr()
    assert [line.split("\t")[0] for line in said.out.splitlines()] == ["a", "b", "c"]
    assert said.err.endswith("its id is not readable text\n")
