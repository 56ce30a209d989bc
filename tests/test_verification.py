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

from chatmemory import SystemMessage, UserMessage, queries, services
from chatmemory.core.codec import frame_of
from chatmemory.core.exceptions import CorruptRow
from chatmemory.core.messages import text_of
from chatmemory.core.policies import MessageWindow, TokenWindow
from chatmemory.core.stored_policies import load_of
from chatmemory.core.window import Totals
from chatmemory.ledger import reading
from chatmemory.ledger.verification import verify
from chatmemory.models import AuditEntry, Memory, Message, Stay, Step

ANOTHER = "has a value of another type or form than its column"
EARLIER = datetime(2020, 1, 1, tzinfo=UTC)
ALTERATIONS = {
    "a reason": (Stay, {"n": 3}, {"reason": "SET"}, "stay 3 of message #3"),
    "a step of leaving": (Stay, {"n": 3}, {"left_step": 20}, "stay 3 of message #3"),
    "a stay reopened": (
        Stay,
        {"n": 3},
        {"left_step": None, "reason": None},
        "stay 3 of message #3",
    ),
    "a step of entering": (Stay, {"n": 3}, {"entered_step": 20}, "step 3"),
    "a message of a stay": (Stay, {"n": 7}, {"seq": 9}, "stay 7 of message #9"),
    "a reason that is none": (Stay, {"n": 3}, {"reason": "NEVER"}, "stay 3 of message #3"),
    "the tokens of a stay": (Stay, {"n": 30}, {"tokens": 1}, "stay 30 of message #30"),
    "a rank": (Stay, {"n": 30}, {"rank": 5}, "stay 30 of message #30"),
    "a text": (Message, {"seq": 7}, {"text": "never said"}, "message #7"),
    "the tokens of a message": (Message, {"seq": 7}, {"tokens": 0}, "message #7"),
    "a type": (Message, {"seq": 7}, {"type": "AI"}, "message #7"),
    "a total before": (Step, {"n": 25}, {"tokens_before": 1}, "step 25"),
    "a total after": (Step, {"n": 25}, {"count_after": 1}, "step 25"),
    "what history weighs": (Step, {"n": 25}, {"history_tokens": 1}, "step 25"),
    "a policy": (Step, {"n": 25}, {"policy_limit": 10}, "stay"),
    "a bound": (Step, {"n": 25}, {"oldest": 25}, "step 25"),
    "when it was said": (Message, {"seq": 7}, {"said_at": EARLIER}, "message #7"),
    "a client id": (Message, {"seq": 7}, {"client_id": "other"}, "message #7"),
    "its salt": (Message, {"seq": 7}, {"salt": None}, "message #7"),
    "its commitment": (Message, {"seq": 7}, {"commitment": b"x" * 32}, "message #7"),
    "who did it": (Step, {"n": 25}, {"actor": "mallory"}, "step 25"),
    "when it was done": (Step, {"n": 25}, {"at": EARLIER}, "step 25"),
    "a note": (Step, {"n": 25}, {"note": "never"}, "step 25"),
    "a client's decision": (Step, {"n": 25}, {"by_client": True}, "step 25"),
    "a digest": (Step, {"n": 25}, {"digest": b"x" * 32}, "step 25"),
    "a digest gone": (Step, {"n": 25}, {"digest": None}, "step 25"),
    "the head": (Memory, {}, {"head": b"x" * 32}, "the conversation's counters"),
    "the labels": (Memory, {}, {"labels": {"team": "other"}}, "the conversation's counters"),
    "when it was created": (Memory, {}, {"created_at": EARLIER}, "step 1"),
    "a counter": (Memory, {}, {"window_tokens": 1}, "the conversation's counters"),
    "the number of steps": (Memory, {}, {"last_step": 29}, "step 30"),
}


def test_an_unaltered_conversation_matches_its_replay(conversation):
    assert verify(conversation) is None


@pytest.mark.parametrize("name", ALTERATIONS)
def test_an_altered_row_is_named(conversation, name):
    model, keys, change, expected = ALTERATIONS[name]
    scope = {"pk": conversation} if model is Memory else {"memory_id": conversation, **keys}
    assert model.objects.filter(**scope).update(**change) == 1
    found = verify(conversation)
    assert found is not None
    assert expected in found.row or expected in found.what


@pytest.mark.parametrize(("model", "number"), [(Message, "seq"), (Stay, "n"), (Step, "n")])
def test_a_missing_row_is_named(conversation, model, number):
    model.objects.filter(memory_id=conversation, **{number: 12}).delete()
    assert "12" in verify(conversation).row


def add_copy(model, number: str, of: int, at: int, **others) -> None:
    """Add a copy of a row of the only conversation under another number."""
    row = model.objects.get(**{number: of})
    columns = {field.attname: getattr(row, field.attname) for field in model._meta.concrete_fields}
    model.objects.create(**{**columns, number: at, **others})


@pytest.mark.parametrize("at", [-3, 0])
@pytest.mark.parametrize(
    ("model", "number", "others"),
    [
        (Message, "seq", {"origin": "SYNTHETIC"}),
        (Stay, "n", {}),
        (Stay, "n", {"entered_step": 0, "left_step": 0}),
        (Step, "n", {}),
    ],
)
def test_a_row_that_was_added_before_the_first_is_named(conversation, model, number, others, at):
    add_copy(model, number, 12, at, **others)
    found = verify(conversation)
    name = {Message: f"message #{at}", Stay: f"stay {at} of message #12", Step: f"step {at}"}
    assert (found.row, found.what) == (name[model], "is below the first, which has the number 1")


@pytest.mark.parametrize(("model", "number"), [(Message, "seq"), (Stay, "n"), (Step, "n")])
def test_a_row_that_was_added_to_an_empty_conversation_is_named(db, model, number):
    services.create("m", MessageWindow(3))
    services.create("other", MessageWindow(3))
    services.add("other", [UserMessage("hello")])
    add_copy(model, number, 1, -3, memory_id="m")
    assert "below the first" in verify("m").what


def test_an_end_before_the_first_step_is_named(conversation):
    Stay.objects.filter(n=30).update(left_step=0, reason="CAPACITY")
    assert verify(conversation).row == "stay 30 of message #30"


def test_memory_does_not_grow_with_the_conversation(db, monkeypatch):
    monkeypatch.setattr(reading, "BATCH", 10)
    peaks = []
    for rows in (40, 40, 160):  # the first run also measures what Python keeps
        services.create(f"{len(peaks)}", MessageWindow(5))
        services.add(f"{len(peaks)}", [UserMessage(f"{n} and so on" * 100) for n in range(rows)])
        peaks.append(peak_of(f"{len(peaks)}"))
    assert peaks[2] < 2 * peaks[1]


def test_an_altered_stay_is_named_after_many_kinds_of_changes(conversation):
    services.add(conversation, [SystemMessage("Be kind."), UserMessage("and now?")])
    said = queries.window(conversation).messages
    services.set_messages(conversation, [said[-1], *said[:3], UserMessage("in between")])
    services.change(conversation, policy=MessageWindow(3))
    services.add(conversation, [SystemMessage("Be short."), UserMessage("more")])
    assert verify(conversation) is None
    Stay.objects.filter(n=3).update(reason="SET")
    assert verify(conversation).row == "stay 3 of message #3"


def rewrite(memory_id: str, seq: int, message) -> None:
    """Replace a message as somebody would who knows both columns."""
    row = Message.objects.filter(memory_id=memory_id, seq=seq)
    assert row.update(text=text_of(message), frame=frame_of(message)) == 1


def test_words_of_equal_length_are_named(conversation):
    rewrite(conversation, 7, UserMessage("message 4"))
    assert verify(conversation).row == "message #7"


def test_words_put_into_a_redacted_message_are_named(conversation):
    services.redact(conversation, 7)
    assert verify(conversation) is None
    rewrite(conversation, 7, UserMessage("never said"))
    assert verify(conversation).row == "message #7"


def test_two_messages_that_changed_places_are_named(conversation):
    rows = Message.objects.filter(memory_id=conversation)
    for old, new in ((7, 1_000), (8, 7), (1_000, 8)):
        rows.filter(seq=old).update(seq=new)
    assert verify(conversation).row == "message #7"


def test_an_altered_message_is_not_redacted(conversation):
    """Its redaction would hide the alteration."""
    rewrite(conversation, 7, UserMessage("never said"))
    with pytest.raises(CorruptRow, match="#7 of 'm' is not what was said"):
        services.redact(conversation, 7)


def test_a_missing_audit_entry_of_a_redaction_is_named(conversation):
    services.redact(conversation, 7)
    AuditEntry.objects.all().delete()
    assert str(verify(conversation)) == "'m': step 31: its audit entry is missing"


def test_a_conversation_made_again_continues_the_chain(conversation):
    services.delete(conversation)
    services.create(conversation, TokenWindow(100))
    services.add(conversation, [UserMessage("again")])
    assert verify(conversation) is None
    AuditEntry.objects.all().delete()
    assert "audit entry of the deletion" in verify(conversation).what


def test_labels_are_committed_without_their_words(conversation):
    services.change(conversation, labels={"customer": "Ada"})
    services.change(conversation, labels={"customer": "Bob"})
    assert verify(conversation) is None
    Memory.objects.update(labels={"customer": "Ada"})
    assert "labels" in verify(conversation).what


def test_rows_without_digests_are_older_than_the_chain(conversation):
    """The chain begins with the next step."""
    Message.objects.update(salt=None, commitment=None)
    Step.objects.update(digest=None)
    Memory.objects.update(head=None, first_labels=None, labels_salt=None)
    assert verify(conversation) is None
    services.add(conversation, [UserMessage("new")])
    services.redact(conversation, 7)
    assert verify(conversation) is None
    Step.objects.filter(n=31).update(actor="mallory")
    assert verify(conversation).row == "step 31"


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL stores no text here")
@pytest.mark.parametrize(
    "written", ["at || '+00:00'", "at || 'Z'", "at || '.5'", "substr(at, 1, 10)"]
)
def test_a_time_that_is_written_in_another_way_is_named(conversation, written):
    """SQLite compares times as texts."""
    Step.objects.filter(n=25).update(at=EARLIER)
    assert "digest" in verify(conversation).what
    execute(f"UPDATE chatmemory_step SET at = {written} WHERE n = 25")
    assert str(verify(conversation)) == f"'m': step 25: at {ANOTHER}"


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL keeps one of each name")
@pytest.mark.parametrize("table", ["memory", "step"])
@pytest.mark.parametrize(
    "options", ['{"low_water":0.9,"low_water":0.5}', '{"low_water":0.9,"low\\u005fwater":0.5}']
)
def test_an_option_that_is_written_twice_is_named(db, table, options):
    """Python reads the last, SQLite the first."""
    services.create("m", MessageWindow(30, low_water=0.5))
    services.add("m", [UserMessage("hello")])
    assert verify("m") is None
    execute(f"UPDATE chatmemory_{table} SET policy_options = '{options}'")
    assert verify("m").what == f"policy_options {ANOTHER}"


def execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


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
    assert verify("m").row == "the conversation's counters"


def test_a_head_without_the_digests_behind_it_is_named(db):
    services.create("m", TokenWindow(100), {"team": "red"})
    Memory.objects.update(first_labels=None, labels={"team": "blue"})
    assert verify("m").what == "the head is not the digest of the newest step"


EMPTIED = {
    "all texts": "INSERT INTO chatmemory_search (chatmemory_search) VALUES ('delete-all')",
    "all rows": "DELETE FROM chatmemory_searchable",
    "one row": "DELETE FROM chatmemory_searchable WHERE seq = 1",
}


@pytest.mark.parametrize("how", EMPTIED)
def test_a_message_that_is_missing_in_the_search_index_is_named_and_put_back(conversation, how):
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL searches the texts themselves")
    with connection.cursor() as cursor:
        cursor.execute(EMPTIED[how])
    found = verify(conversation)
    assert found.row == "message #1"
    assert "search index" in found.what
    Step.objects.filter(n=25).update(actor="mallory")
    assert verify(conversation).row == "step 25"
    Step.objects.filter(n=25).update(actor="")
    call_command("verify_memories", repair_index=True)
    assert verify(conversation) is None
    assert Memory.objects.containing("Be brief").exists()
    assert Memory.objects.containing("message 28").exists()


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL has nothing to repair")
def test_a_message_that_the_search_index_has_wrongly_is_named_and_taken_out(conversation):
    execute("INSERT INTO chatmemory_searchable (memory_id, seq) VALUES ('m', 99)")
    execute(
        "INSERT INTO chatmemory_search (rowid, text) "
        "SELECT id, 'never said' FROM chatmemory_searchable WHERE seq = 99"
    )
    assert str(verify(conversation)) == (
        "'m': message #99: the search index has it, but it was not said: use --repair-index"
    )
    call_command("verify_memories", repair_index=True)
    assert verify(conversation) is None
    assert Memory.objects.containing("message 28").exists()


@pytest.mark.skipif(
    connection.vendor != "sqlite", reason="PostgreSQL searches the names themselves"
)
@pytest.mark.parametrize(
    "lost",
    [
        "DELETE FROM chatmemory_searchable WHERE seq = 0",
        """DELETE FROM chatmemory_search_docsize
        WHERE id IN (SELECT id FROM chatmemory_searchable WHERE seq = 0)""",
    ],
)
@pytest.mark.parametrize("said", [[], [UserMessage("hello")]])
def test_names_that_are_missing_in_the_search_index_are_named_and_put_back(db, capsys, lost, said):
    services.create("needle", MessageWindow(3))
    services.add("needle", said)
    execute(lost)
    assert str(verify("needle")) == (
        "'needle': the conversation: its id and labels are missing in the search index: "
        "use --repair-index"
    )
    capsys.readouterr()
    call_command("verify_memories", repair_index=True)
    assert "put into the search index: 1\n" in capsys.readouterr().out
    assert Memory.objects.containing("needle").exists()


def test_an_unreadable_payload_is_named(conversation):
    Message.objects.filter(memory_id=conversation, seq=5).update(frame="{")
    assert "#5" in str(verify(conversation))


def test_the_command_exits_with_1_and_names_the_row(conversation, capsys):
    call_command("verify_memories")
    assert "1 conversation verified" in capsys.readouterr().out
    Stay.objects.filter(memory_id=conversation, n=3).update(reason="SET")
    with pytest.raises(CommandError, match="1 of 1"):
        call_command("verify_memories", conversation)
    assert "'m': stay 3 of message #3" in capsys.readouterr().err


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
    with pytest.raises(CommandError, match=r"^1 kept head contradicted$"):
        call_command("verify_memories", heads=kept)
    assert "'m': step 31: was kept as the head, but is gone" in capsys.readouterr().err


def cut_off(memory_id: str) -> None:
    """Remove the newest step and all its traces, as somebody would who knows the tables."""
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
        window_load=load_of(before.policy, Totals(before.count_after, before.tokens_after)),
        head=before.digest,
    )
    last.delete()


def test_a_kept_head_shows_that_a_conversation_is_gone(conversation, capsys, tmp_path):
    kept = heads(capsys, tmp_path / "heads")
    Memory.objects.all().delete()
    with pytest.raises(CommandError, match=r"^1 kept head contradicted$"):
        call_command("verify_memories", heads=kept)


def test_a_deletion_that_was_audited_does_not_contradict_a_kept_head(
    conversation, capsys, tmp_path
):
    kept = heads(capsys, tmp_path / "heads")
    services.delete(conversation)
    call_command("verify_memories", heads=kept)


@pytest.mark.parametrize(
    "memory_id", ["line\nbreak", "a\tb", "u\u2028x", '"quoted"', "back\\slash", "é 元", "\xa0"]
)
def test_heads_of_every_id_can_be_kept(db, capsys, tmp_path, memory_id):
    services.create(memory_id, MessageWindow(3))
    services.add(memory_id, [UserMessage("hello")])
    kept = heads(capsys, tmp_path / "heads")
    call_command("verify_memories", heads=kept)
    Memory.objects.all().delete()
    with pytest.raises(CommandError, match="1 kept head contradicted"):
        call_command("verify_memories", heads=kept)


def test_a_file_that_holds_no_heads_is_refused(db, tmp_path):
    (tmp_path / "heads").write_text("m 30 abc\n")
    with pytest.raises(CommandError, match="line 1: expected id, step and digest"):
        call_command("verify_memories", heads=tmp_path / "heads")


@pytest.mark.parametrize(
    ("content", "why"), [(None, "No such file or directory"), (b"\xff", "not UTF-8")]
)
def test_a_file_that_cannot_be_read_is_named(db, tmp_path, content, why):
    if content is not None:
        (tmp_path / "heads").write_bytes(content)
    with pytest.raises(CommandError, match=rf"heads: {why}"):
        call_command("verify_memories", heads=tmp_path / "heads")


@pytest.mark.parametrize("options", [{}, {"print_heads": True}, {"repair_index": True}])
@pytest.mark.parametrize(
    ("memory_id", "why"), [("", "a memory id must be a string"), ("nope", "no conversation has")]
)
def test_an_id_that_no_conversation_has_is_refused(conversation, memory_id, why, options):
    with pytest.raises(CommandError, match=why):
        call_command("verify_memories", conversation, memory_id, **options)


@pytest.mark.parametrize("options", [{"heads": Path("heads")}, {"repair_index": True}])
def test_heads_are_only_printed(conversation, capsys, options):
    (given,) = options
    option = f"--{given.replace('_', '-')}"
    with pytest.raises(CommandError, match=f"use --print-heads without {option}"):
        call_command("verify_memories", print_heads=True, **options)
    assert capsys.readouterr().out == ""


def test_a_conversation_that_is_named_twice_is_verified_once(conversation, capsys):
    services.create("other", MessageWindow(3))
    call_command("verify_memories", conversation, "other", conversation)
    assert "2 conversations verified" in capsys.readouterr().out


def test_heads_and_replays_are_counted_apart(conversation, tmp_path):
    (tmp_path / "heads").write_text("other\t3\tabc\n")
    with pytest.raises(CommandError, match=r"^1 kept head contradicted$"):
        call_command("verify_memories", conversation, heads=tmp_path / "heads")
    Stay.objects.filter(memory_id=conversation, n=3).update(reason="SET")
    both = "^1 of 1 conversations differ from their replay; 1 kept head contradicted$"
    with pytest.raises(CommandError, match=both):
        call_command("verify_memories", conversation, heads=tmp_path / "heads")


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


def test_the_command_refuses_an_unknown_id(db):
    with pytest.raises(CommandError, match="nobody"):
        call_command("verify_memories", "nobody")


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
