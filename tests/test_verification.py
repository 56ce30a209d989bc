"""Verification names the first altered row."""

from __future__ import annotations

import gc
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from chatmemory import MessageWindow, TokenWindow, UserMessage, services
from chatmemory.exceptions import CorruptRow
from chatmemory.ledger import verification
from chatmemory.ledger.verification import verify
from chatmemory.messages.codec import frame_of
from chatmemory.messages.message import text_of
from chatmemory.models import AuditEntry, Memory, Message, Stay, Step
from inspector.rooms.integrity.chain import first_digest
from inspector.rooms.integrity.checking import verify_head

from .conversations import create_and_add, numbered

EARLIER = datetime(2020, 1, 1, tzinfo=UTC)
FIRST = "is below the first, which has the number 1"
ALTERATIONS = [
    (Stay, {"n": 3}, {"reason": "SET"}, "stay 3 of message #3"),
    (Stay, {"n": 3}, {"reason": "NEVER"}, "stay 3 of message #3"),
    (Stay, {"n": 3}, {"left_step": None, "reason": None}, "stay 3 of message #3"),
    (Stay, {"n": 3}, {"entered_step": 20}, "step 3"),
    (Stay, {"n": 7}, {"seq": 9}, "stay 7 of message #9"),
    (Stay, {"n": 30}, {"rank": 5}, "stay 30 of message #30"),
    (Stay, {"n": 30}, {"left_step": 0, "reason": "CAPACITY"}, "stay 30 of message #30"),
    (Message, {"seq": 7}, {"text": "never said"}, "message #7"),
    (Message, {"seq": 7}, {"salt": None}, "message #7"),
    (Message, {"seq": 5}, {"frame": "{"}, "message #5"),
    (Step, {"n": 25}, {"count_after": 1}, "step 25"),
    (Step, {"n": 25}, {"oldest": 25}, "step 25"),
    (Step, {"n": 25}, {"digest": b"x" * 32}, "step 25"),
    (Memory, {}, {"created_at": EARLIER}, "step 1"),
    (Memory, {}, {"window_tokens": 1}, "the conversation's counters"),
    (Memory, {}, {"last_step": 29}, "step 30"),
]


@pytest.mark.parametrize(("model", "keys", "change", "row"), ALTERATIONS)
def test_an_altered_row_is_named(conversation, model, keys, change, row):
    """tests/ledger/test_any_changes.py alters every column; see also test_alterations.py."""
    assert verify(conversation) is None
    assert model.objects.filter(**keys).update(**change) == 1
    assert verify(conversation).row == row


def add_copy(model, number: str, of: int, at: int, **others) -> None:
    """Add a copy of a row of the only conversation under another number."""
    row = model.objects.get(**{number: of})
    columns = {field.attname: getattr(row, field.attname) for field in model._meta.concrete_fields}
    model.objects.create(**{**columns, number: at, **others})


@pytest.mark.parametrize("at", [-3, 0])
@pytest.mark.parametrize(
    ("model", "number", "others", "name"),
    [
        (Message, "seq", {"origin": "SYNTHETIC"}, "message #{}"),
        (Stay, "n", {"entered_step": 0, "left_step": 0}, "stay {} of message #12"),
        (Step, "n", {}, "step {}"),
    ],
)
def test_a_row_that_was_added_before_the_first_is_named(
    conversation, model, number, others, name, at
):
    add_copy(model, number, 12, at, **others)
    found = verify(conversation)
    assert (found.row, found.what) == (name.format(at), FIRST)
    model.objects.filter(**{number: at}).delete()
    services.create("empty", MessageWindow(3))
    add_copy(model, number, 12, at, memory_id="empty")
    assert verify("empty").what == FIRST


@pytest.mark.long
def test_memory_does_not_grow_with_the_conversation(db, monkeypatch):
    monkeypatch.setattr(verification, "BATCH", 10)
    peaks = []
    for rows in (40, 40, 160):  # the first run also measures what Python keeps
        services.create(f"{len(peaks)}", MessageWindow(5))
        services.add(f"{len(peaks)}", [UserMessage(f"{n} and so on" * 100) for n in range(rows)])
        peaks.append(peak_of(f"{len(peaks)}"))
    assert peaks[2] < 2 * peaks[1]


def rewrite(memory_id: str, seq: int, message) -> None:
    """Replace a message, as a person would who knows both columns."""
    row = Message.objects.filter(memory_id=memory_id, seq=seq)
    assert row.update(text=text_of(message), frame=frame_of(message)) == 1


def test_an_altered_message_is_not_redacted(conversation):
    """Its redaction would hide the alteration."""
    rewrite(conversation, 7, UserMessage("never said"))
    with pytest.raises(
        CorruptRow, match="message #7 of the conversation 'm' differs from its digest"
    ):
        services.redact(conversation, 7)


def test_a_conversation_made_again_continues_the_chain(conversation):
    services.redact(conversation, 7)
    services.delete(conversation)
    create_and_add(conversation, TokenWindow(100), [UserMessage("again")])
    assert verify(conversation) is None
    AuditEntry.objects.all().delete()
    assert "audit entry is missing for the deletion" in verify(conversation).what


@pytest.mark.parametrize("steps", ["none", "no message"])
@pytest.mark.parametrize(
    "change",
    [{"oldest": 2}, {"ordered_from": 2}, {"last_seq": -1}, {"last_stay": -1}, {"last_step": -1}],
)
def test_a_counter_of_a_conversation_without_messages_is_named(db, steps, change):
    services.create("m", TokenWindow(100), {"team": "red"})
    if steps == "no message":
        services.change("m", policy=TokenWindow(200))
    assert verify("m") is None
    Memory.objects.update(**change)
    found = verify("m")
    assert found.row == "the conversation's counters" or "above the counter" in found.what


def test_a_head_without_the_digests_behind_it_is_named(db):
    services.create("m", TokenWindow(100), {"team": "red"})
    Memory.objects.update(first_labels=b"", labels={"team": "blue"})
    assert verify("m").what == "the head is not the digest of the newest step"


WORDS_OF_NAMES = "SELECT id FROM chatmemory_search_places WHERE seq = 0"
LOST = {
    "INSERT INTO chatmemory_search (chatmemory_search) VALUES ('delete-all')": "search index",
    "DELETE FROM chatmemory_search_places WHERE seq > 0": "message #1",
    "DELETE FROM chatmemory_search_places WHERE seq = 1": "message #1",
    "INSERT INTO chatmemory_search_places (memory_id, seq) VALUES ('m', 99);"
    "INSERT INTO chatmemory_search (rowid, text) "
    "SELECT id, 'never said' FROM chatmemory_search_places WHERE seq = 99": (
        "message #99: is in the search index, but not in the history"
    ),
    "DELETE FROM chatmemory_search_places WHERE seq = 0": "its id and labels are missing in the",
    f"DELETE FROM chatmemory_search_docsize WHERE id IN ({WORDS_OF_NAMES})": "its id and labels",
}


@pytest.mark.needs("search")
@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL needs no such index")
@pytest.mark.parametrize("statements", LOST)
def test_a_search_index_that_differs_is_named_and_repaired(conversation, capsys, statements):
    with connection.cursor() as cursor:
        for statement in statements.split(";"):
            cursor.execute(statement)
    found = str(verify(conversation))
    assert LOST[statements] in found
    assert "search index" in found
    assert "run verify_memories --repair-index" in found
    Step.objects.filter(n=25).update(actor="mallory")
    assert verify(conversation).row == "step 25", "what is missing there hides no alteration"
    Step.objects.filter(n=25).update(actor="")
    call_command("verify_memories", repair_index=True)
    assert "put into the search index: " in capsys.readouterr().out
    assert verify(conversation) is None
    for words in ("Be brief", "message 28", "m"):
        assert Memory.objects.containing(words).exists()


def heads(capsys, file: Path) -> Path:
    capsys.readouterr()
    call_command("verify_memories", print_heads=True)
    file.write_text(capsys.readouterr().out)
    return file


def test_a_kept_head_shows_that_the_newest_steps_were_cut_off(conversation, capsys, tmp_path):
    kept = heads(capsys, tmp_path / "heads")
    services.add(conversation, [UserMessage("later")])
    call_command("verify_memories", heads=kept)
    kept = heads(capsys, tmp_path / "heads")
    cut_off(conversation)
    assert verify(conversation) is None
    with pytest.raises(CommandError, match=r"^1 digest of --heads differs from the ledger$"):
        call_command("verify_memories", heads=kept)
    assert "'m': step 31: --heads has its digest, but the step is gone" in capsys.readouterr().err


def cut_off(memory_id: str) -> None:
    """Remove the newest step and all its traces, as a person would who knows the tables."""
    scope = {"memory_id": memory_id}
    last, before = Step.objects.filter(**scope).order_by("-n")[:2]
    Stay.objects.filter(**scope, entered_step=last.n).delete()
    Stay.objects.filter(**scope, left_step=last.n).update(left_step=None, reason=None)
    Message.objects.filter(**scope, seq__gt=before.last_seq).delete()
    open_stays = Stay.objects.filter(**scope, left_step=None)
    Memory.objects.filter(pk=memory_id).update(
        window_size=sum(stay.size for stay in open_stays),
        updated_at=before.at,
        **{name: getattr(before, name) for name in ("last_seq", "last_stay", "said_count")},
        history_tokens=before.history_tokens,
        last_step=before.n,
        oldest=before.oldest,
        window_count=before.count_after,
        window_tokens=before.tokens_after,
        window_load=before.load,
        head=before.digest,
    )
    last.delete()


@pytest.mark.parametrize(
    "memory_id", ["line\nbreak", "a\tb", "u\u2028x", '"quoted"', "back\\slash", "é 元", "\xa0"]
)
def test_heads_of_every_id_can_be_kept(db, capsys, tmp_path, memory_id):
    create_and_add(memory_id, MessageWindow(3), [UserMessage("hello")])
    kept = heads(capsys, tmp_path / "heads")
    call_command("verify_memories", heads=kept)
    Memory.objects.all().delete()
    with pytest.raises(CommandError, match="1 digest of --heads differs from the ledger"):
        call_command("verify_memories", heads=kept)


REFUSED = [
    ("m 30 abc\n", {"heads": Path("heads")}, (), "line 1: expected id, step and digest"),
    (f"m\t{'9' * 5_000}\tabc\n", {"heads": Path("heads")}, (), "line 1: expected id, step"),
    (b"\xff", {"heads": Path("heads")}, (), "heads: not UTF-8"),
    ("", {"heads": Path("nowhere")}, (), "nowhere: No such file or directory"),
    (
        "",
        {"print_heads": True, "heads": Path("heads")},
        (),
        "use --print-heads without --heads",
    ),
    (
        "",
        {"print_heads": True, "repair_index": True},
        (),
        "use --print-heads without --repair-index",
    ),
    *(
        ("", options, ("m", memory_id), why)
        for options in ({}, {"print_heads": True}, {"repair_index": True})
        for memory_id, why in (
            ("", "a memory id must be a string"),
            ("nope", "no conversation has the id 'nope'"),
        )
    ),
]


@pytest.mark.parametrize(("content", "options", "ids", "why"), REFUSED)
def test_what_it_cannot_do_is_refused(
    conversation, tmp_path, monkeypatch, capsys, content, options, ids, why
):
    monkeypatch.chdir(tmp_path)
    Path("heads").write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(CommandError, match=why):
        call_command("verify_memories", *ids, **options)
    assert capsys.readouterr().out == ""


def test_a_conversation_that_is_named_twice_is_verified_once(conversation, capsys):
    services.create("other", MessageWindow(3))
    call_command("verify_memories", conversation, "other", conversation)
    assert "2 conversations verified" in capsys.readouterr().out


def test_heads_and_replays_are_counted_apart(conversation, tmp_path):
    (tmp_path / "heads").write_text("other\t3\tabc\n")
    with pytest.raises(CommandError, match=r"^1 digest of --heads differs from the ledger$"):
        call_command("verify_memories", conversation, heads=tmp_path / "heads")
    Stay.objects.filter(memory_id=conversation, n=3).update(reason="SET")
    both = "^1 of 1 conversations differ from their replay; 1 digest of --heads differs from "
    both += "the ledger$"
    with pytest.raises(CommandError, match=both):
        call_command("verify_memories", conversation, heads=tmp_path / "heads")


# Audit entries


def test_heads_of_a_deleted_conversation_do_not_contradict_the_next_one_with_its_id(
    conversation, capsys, tmp_path
):
    kept = heads(capsys, tmp_path / "heads")
    services.delete(conversation)
    services.create(conversation, TokenWindow(100))
    for _ in range(3):  # fewer steps, as many, and more
        services.add(conversation, numbered(15, "again"))
        call_command("verify_memories", heads=kept)
    assert verify_head(conversation, 30, "00") is not None


def test_a_deletion_covers_the_last_step_only_with_its_head(conversation):
    head = bytes(Memory.objects.get().head).hex()
    AuditEntry.objects.create(
        at=EARLIER, action="delete", memory_id=conversation, detail={"steps": 30}
    )
    assert verify_head(conversation, 29, "00") is not None
    first = first_digest(Memory.objects.get()).hex()
    assert verify_head(conversation, 0, first) is None
    assert verify_head(conversation, 0, "00") is not None
    services.delete(conversation)
    assert verify_head(conversation, 30, head) is None
    assert verify_head(conversation, 30, "00") is not None
    assert verify_head(conversation, 31, head) is not None


def hide(memory_id: str) -> None:
    """Hide a conversation, as a person would who knows the tables."""
    Memory.objects.filter(pk=memory_id).update(deleted_at=EARLIER)


def test_a_conversation_that_is_hidden_by_hand_is_named_and_kept(conversation, capsys, tmp_path):
    services.create("other", MessageWindow(3))
    kept = heads(capsys, tmp_path / "heads")
    hide(conversation)
    for ids in ([], [conversation]):
        with pytest.raises(
            CommandError,
            match="differ from their replay; 1 digest of --heads differs from the ledger",
        ):
            call_command("verify_memories", *ids, heads=kept)
        assert "'m': the conversation: is hidden" in capsys.readouterr().err
    call_command("purge_memories", "--begun")
    assert "without an audit entry of the deletion" in capsys.readouterr().err
    assert Message.objects.count() == 30
    Memory.with_deleted.update(deleted_at=None)
    call_command("verify_memories", heads=kept)


def test_a_conversation_whose_deletion_was_interrupted_is_no_contradiction(
    conversation, capsys, tmp_path, monkeypatch
):
    kept = heads(capsys, tmp_path / "heads")
    monkeypatch.setattr("chatmemory.ledger.erasure.AT_ONCE", 3)
    services.delete(conversation)  # its rows stay until the test's transaction commits
    call_command("verify_memories", heads=kept)
    assert "0 conversations verified" in capsys.readouterr().out
    with pytest.raises(CommandError, match="no conversation has"):
        call_command("verify_memories", conversation)
    assert services.finish_deletions() == [conversation]


def test_an_added_audit_entry_of_a_redaction_is_named(conversation):
    services.redact(conversation, 7, actor="ada")
    (entry,) = AuditEntry.objects.all()
    entry.pk = None
    entry.save()
    assert (
        str(verify(conversation))
        == "'m': step 31: is a redaction with 2 audit entries instead of 1"
    )
    AuditEntry.objects.filter(pk=entry.pk).update(detail={"seq": 8, "step": 31})
    assert verify(conversation).row == "an audit entry of step 31"


def test_a_conversation_that_is_being_written_to_is_no_false_alarm(served):
    served.create("busy", limit=3)
    served.say("busy", *map(str, range(100)))
    is_over = Event()

    def write() -> None:
        while not is_over.is_set():
            served.say("busy", "more")

    with ThreadPoolExecutor() as threads:
        writing = threads.submit(write)
        told = [served.manage("verify_memories", "busy") for _ in range(2)]
        is_over.set()
        writing.result()
    assert told == ["1 conversation verified: all match their replay\n"] * 2


def test_a_conversation_that_is_deleted_meanwhile_is_skipped(conversation, capsys):
    services.create("z", MessageWindow(3))

    to_be_deleted = ["z"]

    def delete_another(run, sql, *args):
        if to_be_deleted and sql.startswith("SELECT") and "chatmemory_step" in sql:
            services.delete(to_be_deleted.pop())
        return run(sql, *args)

    with connection.execute_wrapper(delete_another):
        call_command("verify_memories")
    assert "1 conversation verified" in capsys.readouterr().out


def peak_of(memory_id: str) -> int:
    """Return how many bytes a verification takes at once.

    The more objects earlier tests have left, the less often Python collects garbage. They are kept
    from the collector.
    """
    gc.collect()
    gc.freeze()
    gc.collect()
    tracemalloc.start()
    try:
        assert verify(memory_id) is None
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        gc.unfreeze()


def test_the_command_exits_with_1_and_names_the_row(conversation, capsys):
    call_command("verify_memories")
    assert "1 conversation verified" in capsys.readouterr().out
    Stay.objects.filter(memory_id=conversation, n=3).update(reason="SET")
    with pytest.raises(CommandError, match="1 of 1"):
        call_command("verify_memories", conversation)
    assert "'m': stay 3 of message #3" in capsys.readouterr().err


def test_an_import_that_has_stored_another_number_is_named(conversation):
    Memory.objects.update(imported=29)
    assert "its unfinished import has stored 29 messages" in verify(conversation).what
    Memory.objects.update(imported=30)
    assert verify(conversation) is None
    services.create("short", MessageWindow(3))
    services.change("short", labels={"team": "red"})
    Memory.objects.filter(pk="short").update(imported=5)
    assert "its unfinished import has stored 5 messages" in verify("short").what
