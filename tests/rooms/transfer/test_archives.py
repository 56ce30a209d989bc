"""The format chatmemory: exports come back unchanged, and nothing else is stored."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import BytesIO

import pytest
from django.core.management import CommandError, call_command
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import MessageWindow, TokenWindow, UserMessage, services
from chatmemory.ledger.branches import branches_of
from chatmemory.ledger.verification import verify
from chatmemory.models import AuditEntry, Memory, Message, Stay, Step
from chatmemory.reading import conversations
from chatmemory.reading.windows import window
from chatmemory.stores.database import DjangoChatMemoryStore
from inspector.rooms.transfer.archives import import_archive
from inspector.rooms.transfer.exports import archive_lines
from inspector.rooms.transfer.imports import Imported

from ...conformance.vectors import FailingTransactStore, Replay, recoveries, sample
from ...connecting import connected_to
from ...conversations import create_and_add, numbered
from ...images import made_once
from ...ledger.test_any_changes import changes, make, undone
from ...properties import examples

pytestmark = [pytest.mark.database, pytest.mark.django_db]


def archive_of(*memory_ids: str) -> list[str]:
    return list(archive_lines(memory_ids))


def import_lines(lines: list[str], prefix: str = "") -> list[Imported]:
    return list(import_archive(BytesIO("".join(f"{each}\n" for each in lines).encode()), prefix))


def forget(*memory_ids: str) -> None:
    """Remove conversations as if they had never been there."""
    Memory.objects.filter(id__in=memory_ids).delete()
    AuditEntry.objects.filter(memory_id__in=memory_ids).delete()


def windows(memory_id: str) -> list[list[tuple]]:
    steps = range(conversations.memory(memory_id).last_step + 1)
    return [
        [(row.seq, row.text, row.tokens, row.pinned) for row in window(memory_id, n).rows]
        for n in steps
    ]


def rows() -> int:
    return sum(table.objects.count() for table in (Memory, Message, Stay, Step, AuditEntry))


@made_once
def chat() -> str:
    """A conversation with each kind of change, beside a deleted one with its id."""
    create_and_add("chat", MessageWindow(9), numbered(2))
    services.delete("chat")
    create_and_add("chat", MessageWindow(3), numbered(5), {"team": "red", "a": "łódź"})
    services.pin("chat", 5)
    services.add("chat", numbered(2, "later"))
    services.redact("chat", 4, actor="ada")
    services.change("chat", policy=TokenWindow(40, estimator="gpt-4"), labels={"team": "blue"})
    services.set_messages("chat", [*window("chat").messages, UserMessage("set")])
    services.unpin("chat", 5)
    services.clear_messages("chat")
    services.add("chat", [services.NewMessage(UserMessage("a needle"), client_id="c1")])
    assert verify("chat") is None
    return "chat"


# Round trips


def test_it_comes_back_as_it_was(chat):
    lines, seen = archive_of(chat), windows(chat)
    forget(chat)
    assert rows() == 0
    assert import_lines(lines) == [Imported(chat, 9)]
    assert verify(chat) is None
    assert archive_of(chat) == lines
    assert windows(chat) == seen
    assert [row.pk for row in Memory.objects.containing("needle")] == [chat]
    services.add(chat, numbered(1))
    assert verify(chat) is None


@examples(30)
@given(st.lists(changes, max_size=12))
def test_any_changes_come_back_as_they_were(db, made):
    with undone():
        make(made)
        lines = archive_of("m")
        forget("m")
        (result,) = import_lines(lines)
        assert not result.refused
        assert archive_of("m") == lines
        assert verify("m") is None


@pytest.mark.parametrize("sequence", sample(12, recoveries), ids=lambda each: each["id"])
def test_interrupted_calls_come_back_as_they_were(sequence):
    Replay(sequence, FailingTransactStore(DjangoChatMemoryStore())).run()
    lines, seen = archive_of("default"), windows("default")
    forget("default")
    import_lines(lines)
    assert verify("default") is None
    assert (archive_of("default"), windows("default")) == (lines, seen)


def test_under_another_id_only_the_digests_differ(chat):
    lines = archive_of(chat)
    assert import_lines(lines, "a-") == [Imported("a-chat", 9)]
    assert verify("a-chat") is None
    assert windows("a-chat") == windows(chat)
    assert conversations.memory("a-chat").head != conversations.memory(chat).head
    assert conversations.memory("a-chat").labels == conversations.memory(chat).labels
    assert import_lines(lines, "a-") == [Imported("a-chat", already=True)]


def test_a_branch_is_one_of_its_source_again(chat):
    services.branch(chat, "branch", [], at=5)
    lines = archive_of(chat, "branch")
    forget(chat, "branch")
    assert [each.memory_id for each in import_lines(lines)] == [chat, "branch"]
    assert archive_of(chat, "branch") == lines
    assert branches_of([chat]) == ["branch"]
    import_lines(lines, "a-")
    assert branches_of(["a-chat"]) == ["a-branch"]


def test_a_deleted_conversation_can_be_imported_again(chat):
    lines = archive_of(chat)
    services.delete(chat)
    assert import_lines(lines) == [Imported(chat, 9)]
    assert verify(chat) is None
    assert archive_of(chat) == lines


def test_one_without_a_step_and_without_a_policy_comes_back():
    services.create("empty", None, {"a": "b"})
    lines = archive_of("empty")
    forget("empty")
    assert import_lines(lines) == [Imported("empty", 0)]
    assert archive_of("empty") == lines


def test_it_moves_to_another_database_and_back(chat, migrated_url, tmp_path):
    """The other one is SQLite; this one may be PostgreSQL."""
    lines = archive_of(chat)
    file = tmp_path / "moved.jsonl"
    call_command("export_conversations", chat, output=file)
    assert file.read_text("utf-8") == "".join(f"{line}\n" for line in lines)
    with connected_to(migrated_url):
        call_command("import_transcripts", file)
        call_command("verify_memories")
        there = archive_of(chat)
    assert there == lines
    forget(chat)
    import_lines(there)
    assert archive_of(chat) == lines


# What was imported already


def test_it_is_known_again_even_after_it_has_gone_on(chat):
    lines = archive_of(chat)
    assert import_lines(lines) == [Imported(chat, already=True)]
    services.add(chat, numbered(1))
    assert import_lines(lines) == [Imported(chat, already=True)]
    later = archive_of(chat)
    forget(chat)
    import_lines(lines)
    (older,) = import_lines(later)
    assert older.refused == "line 2: a conversation with the id 'chat' already exists"


def test_another_conversation_with_its_id_stays(chat):
    lines = archive_of(chat)
    forget(chat)
    create_and_add(chat, MessageWindow(3), numbered(1))
    (result,) = import_lines(lines)
    assert "already exists" in result.refused
    assert conversations.memory(chat).said_count == 1


# What is refused


def refusal(lines: list[str]) -> str:
    """Import what must be refused, beside a conversation that is imported all the same."""
    *_, last = results = import_lines(lines)
    (refused,) = {each.refused for each in results if each.refused} or {""}
    assert verify("sound") is None
    assert not Memory.objects.filter(pk="chat").exists()
    assert not AuditEntry.objects.filter(memory_id="chat").exists()
    assert last.memory_id == "sound"
    forget("sound")
    return refused


@pytest.fixture
def lines(chat) -> Iterator[list[str]]:
    """The lines of a file with two conversations."""
    create_and_add("sound", MessageWindow(2), numbered(3))
    found = archive_of(chat, "sound")
    forget(chat, "sound")
    return found


def test_a_conversation_of_which_any_line_is_missing_is_refused(lines):
    for n in range(2, lines.index('{"end":"chat"}') + 1):
        assert refusal([*lines[:n], *lines[n + 1 :]]), lines[n]
    assert rows() == 0


def test_a_conversation_of_which_any_line_is_there_twice_is_refused(lines):
    for n in range(2, lines.index('{"end":"chat"}') + 1):
        if '{"audit":"delete"' not in lines[n]:  # that does no harm
            assert refusal([*lines[: n + 1], *lines[n:]]), lines[n]


def altered(value):
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case dict():
            return value | {"head": "x", "seq": 9}
    return f"2031{value[4:]}" if value.endswith("+00:00") else f"{value}00"


def test_a_conversation_of_which_any_value_is_altered_is_refused(lines):
    """Digests and the replay cover everything but the times and actors of audit entries about
    deletions.
    """
    tried = set()
    for n in range(1, lines.index('{"end":"chat"}') + 1):
        given = json.loads(lines[n])
        kind = next(iter(given))
        for name in given.keys() - ({"at", "actor"} if kind == "audit" else set()):
            if (kind, name) not in tried:
                tried.add((kind, name))
                other = json.dumps(given | {name: altered(given[name])})
                assert refusal([*lines[:n], other, *lines[n + 1 :]]), (lines[n], name)


@pytest.mark.parametrize(
    ("line", "values", "why"),
    [
        (2, {"tokens": "5"}, "line 3: tokens must be a whole number, not '5'"),
        (
            2,
            {"tokens": 2**31},
            "line 3: tokens must be from -2147483648 to 2147483647, not 2147483648",
        ),
        (2, {"text": "nul \0"}, "line 3: text cannot contain NUL or lone surrogates"),
        (
            2,
            {"text": "other"},
            "line 3: message #1 differs from its digest: the message was altered",
        ),
        (2, {"said_at": "2026-01-01T00:00"}, "line 3: said_at must be a time with a time zone"),
        (2, {"salt": "xyz"}, "line 3: salt must be bytes in hexadecimal, not 'xyz'"),
        (2, {"origin": "MADE UP"}, "line 3: origin must be one of SAID, SYNTHETIC"),
        (2, {"new": 1}, "line 3: the line of a message has the unknown field 'new'"),
        (4, {"actor": "x" * 256}, "line 5: actor can have at most 255 characters, but has 256"),
        (
            4,
            {"actor": "eve"},
            "line 5: step 1 differs from its digest: the step, or a message or stay",
        ),
        (
            1,
            {"labels": {"team": 1}},
            "line 2: the name and the value of a label must be strings, but are: 'team' and 1",
        ),
        (1, {"policy_limit": 0}, "line 2: "),
        (1, {"policy_options": {"low_water": "x"}}, "line 2: "),
        (1, {"policy_options": {"oversized": []}}, "line 2: "),
        (4, {"policy_options": {"low_water": {}}}, "line 5: "),
        (2, {"frame": "{"}, "line 3: message #1 of 'chat' cannot be read"),
        (2, {"number": 3}, "line 3: the line of a message has the unknown field 'number'"),
        (2, {"message": 7}, "line 3: expected message 1, but found message 7"),
        (1, {"last_step": 3}, "step"),
    ],
)
def test_an_error_has_its_line_and_cause(lines, line, values, why):
    lines[line] = json.dumps(json.loads(lines[line]) | values)
    assert why in refusal(lines)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "line 3: not valid JSON"),
        ("[]", "line 3: the line must be a JSON object"),
        ('{"what":1}', "line 3: expected a message, stay, step"),
        ('{"end":"other"}', "line 3: expected a message, stay, step"),
        (
            '{"audit":"delete","at":"2026-01-01T00:00Z","detail":{"head":"00"}}',
            "line 3: this audit entry is about a different deletion",
        ),
    ],
)
def test_a_line_that_does_not_belong_there_is_refused(lines, line, why):
    assert why in refusal([*lines[:2], line, *lines[2:]])


def test_bounds_hold(lines, settings):
    settings.CHATMEMORY = {"WINDOW_MESSAGES": 2}
    assert 'CHATMEMORY["WINDOW_MESSAGES"] allows 2' in refusal(lines)
    settings.CHATMEMORY = {"TEXT_CHARACTERS": 5}
    assert "at most 5 are stored" in import_lines(lines)[0].refused


def test_a_file_that_was_cut_off_has_its_whole_conversations(lines):
    *whole, last = import_lines(lines[:-1])
    assert [each.refused for each in whole] == ["", ""]
    assert (last.memory_id, last.refused) == (
        "the end of the file",
        "the last line is missing, because the file was cut off: export the conversations again",
    )
    forget("chat", "sound")
    for n in range(2, len(lines) - 1):
        results = import_lines(lines[:n])
        assert results[-1].refused
        assert Memory.objects.count() == sum(not each.refused for each in results)
        forget("chat", "sound")


AFTER = "this line comes after the last line of the export: remove it"


@pytest.mark.parametrize(
    ("n", "end", "why"),
    [
        (
            -1,
            ['{"conversations":3}'],
            'expected a conversation, or the last line {"conversations":2}',
        ),
        (
            1,
            ["{}"],
            'expected a conversation, or the last line {"conversations":0}',
        ),
        (99, ["{}"], AFTER),
        (
            99,
            ['{"conversation":"chat"}'],
            AFTER,
        ),
    ],
)
def test_a_wrong_end_is_refused(lines, n, end, why):
    assert import_lines([*lines[:n], *end])[-1].refused == why


# The commands


def test_the_commands(chat, tmp_path, capsys):
    create_and_add("other", MessageWindow(3), numbered(2), {"team": "red"})
    file = tmp_path / "all.jsonl"
    call_command("export_conversations", all=True, output=file)
    assert "all.jsonl: 2 conversations exported" in capsys.readouterr().out
    assert file.stat().st_mode & 0o777 == 0o600
    call_command("export_conversations", label="team:red")
    assert capsys.readouterr().out.splitlines() == archive_of("other")
    call_command("import_transcripts", file, prefix="b-")
    told = "(chatmemory): 2 conversations with 11 messages imported, 0 already imported, 0 refused"
    assert told in capsys.readouterr().out
    call_command("import_transcripts", file)
    assert "2 already imported" in capsys.readouterr().out
    for options, why in (
        ({"policy": "message_window:3"}, "leave out --policy"),
        ({"format": "openai_chat"}, "no conversation in the format openai_chat"),
    ):
        with pytest.raises(CommandError, match=why):
            call_command("import_transcripts", file, **options)


@pytest.mark.parametrize(
    ("arguments", "options", "why"),
    [
        ([], {}, "in exactly one way"),
        (["a"], {"all": True}, "in exactly one way"),
        (["none"], {}, "no conversation has the id 'none'"),
        ([], {"label": "none"}, "no stored conversation matches"),
        ([], {"all": True}, "no stored conversation matches"),
    ],
)
def test_nothing_is_exported(tmp_path, arguments, options, why):
    file = tmp_path / "out.jsonl"
    with pytest.raises(CommandError, match=why):
        call_command("export_conversations", *arguments, output=file, **options)
    assert not file.exists()


def test_a_file_is_not_replaced(chat, tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(CommandError, match="File exists"):
        call_command("export_conversations", chat, output=tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ('{"chatmemory":2}\n', "the file has a different format or version"),
        ('{"chatmemory":', "line 1: not valid JSON"),
    ],
)
def test_a_file_of_another_version_is_refused(tmp_path, content, why):
    (tmp_path / "file").write_text(content)
    with pytest.raises(CommandError, match=why):
        call_command("import_transcripts", tmp_path / "file")
