"""Every record of a file is accounted for: read, known to be without words, or named with its place
and type. One file that fails ends itself only.
"""

from __future__ import annotations

import gc
import io
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import MessageWindowChatMemory
from chatmemory.exceptions import InvalidValue, UnreadableTranscript
from chatmemory.formats import (
    Reading,
    read_transcripts,
    readable_formats,
    render_messages,
    stream_transcripts,
    two_way_formats,
)
from chatmemory.reports.files import opened

from ..properties import examples
from .test_nothing_is_lost import CONVERSATION, KINDS, MADE, stored_text

FIELD = Path(__file__).parents[1] / "data/field"
AGENTS = Path(__file__).parents[1] / "data/agents"
UNHEARD = "never heard words of zebras"
# What a loss says of words that are somewhere in a record, a call or a list
NAMED = (
    *("not read", "no known format", "other generations", "other choices", "the property"),
    *("blocks of type", "not on the path", "messages of the program", "items of type"),
    *("events of kind", "attachments", "of which only the results"),
)


def samples() -> dict[str, list[tuple[Any, bool]]]:
    """Return files by the formats in which they are read: each value, and whether it is lines."""
    found: dict[str, list[tuple[Any, bool]]] = {name: [] for name in readable_formats()}
    for file in sorted([*FIELD.glob("*.json*"), *AGENTS.glob("*.json*")]):
        are_lines = file.suffix == ".jsonl"
        text = file.read_text("utf-8")
        try:
            value = [*map(json.loads, text.splitlines())] if are_lines else json.loads(text)
            reading = read_transcripts(text)
        except (UnreadableTranscript, ValueError):
            continue
        if reading.transcripts:
            found[reading.format].append((value, are_lines))
    for name in two_way_formats():
        written = json.dumps(render_messages(CONVERSATION, name).value)
        found[name].append((json.loads(written), False))
    for name, made in MADE.items():
        records = [made(n, KINDS[n], f"words of {n}", f"r{n - 1}") for n in range(len(KINDS))]
        found[name].append((records, True))
    return found


SAMPLES = samples()


def test_each_format_has_a_sample():
    assert [name for name, files in SAMPLES.items() if not files] == []


def lists_of_objects(value: Any) -> list[list[Any]]:
    inner = value if isinstance(value, list) else [*value.values()]
    found = [
        some for each in inner if isinstance(each, list | dict) for some in lists_of_objects(each)
    ]
    is_one = isinstance(value, list) and value and all(isinstance(each, dict) for each in value)
    return [value, *found] if is_one else found


def written(value: Any, are_lines: bool) -> str:
    return "\n".join(map(json.dumps, value)) if are_lines else json.dumps(value)


def is_accounted_for(reading: Reading) -> bool:
    losses = [loss.what for each in reading.transcripts for loss in each.losses]
    named = any(words in what for what in losses for words in NAMED)
    return bool(reading.refused) or named or UNHEARD in stored_text(reading)


types = st.sampled_from(["x_note", "tool", "tool_result", "observation2", "zz.event", "remark"])
bodies = st.sampled_from(
    [
        UNHEARD,
        {"text": UNHEARD},
        [{"text": UNHEARD}],
        {"tool_output": UNHEARD},
        {"content": [{"type": "text", "text": UNHEARD}]},
    ]
)
names = st.sampled_from(["text", "content", "body", "message", "tool_output", "payload", "data"])
OF_NEIGHBORS = ("id", "uuid", "parentUuid", "sessionId", "timestamp", "source")


@examples(60)
@pytest.mark.parametrize("format", readable_formats())
@given(given=st.data())
def test_a_record_of_an_invented_type_is_read_or_named(format, given):
    value, are_lines = json.loads(json.dumps(given.draw(st.sampled_from(SAMPLES[format]))))
    records = given.draw(st.sampled_from(lists_of_objects(value)))
    neighbor = given.draw(st.sampled_from(records)) if given.draw(st.booleans()) else {}
    record = {name: neighbor[name] for name in OF_NEIGHBORS if name in neighbor}
    record[given.draw(st.sampled_from(["type", "kind", "role"]))] = given.draw(types)
    record[given.draw(names)] = given.draw(bodies)
    records.insert(given.draw(st.integers(0, len(records))), record)
    try:
        reading = read_transcripts(written(value, are_lines))
    except UnreadableTranscript:
        return
    assert is_accounted_for(reading)


@pytest.mark.parametrize("format", MADE)
def test_a_line_of_an_unknown_type_is_named_with_its_place_and_type(format):
    records = [MADE[format](n, KINDS[n % 2], f"words of {n}", f"r{n - 1}") for n in range(4)]
    unknown = {**records[1], "type": "zz_event", "kind": "zz_event", "note": UNHEARD}
    for name in ("message", "llm_message", "content"):
        unknown.pop(name, None)
    if format == "codex":
        unknown = {"type": "zz_event", "payload": {"note": UNHEARD}}
    if format == "gemini_cli":
        unknown |= {"content": UNHEARD, "id": "zz"}
    records.insert(2, unknown)
    reading = read_transcripts("\n".join(map(json.dumps, records)), format)
    told = [(loss.place, loss.what) for each in reading.transcripts for loss in each.losses]
    told += [(each.where, each.why) for each in reading.refused]
    assert any(place == "line 3" and ("zz_event" in what) for place, what in told), told


@pytest.mark.parametrize(
    ("value", "are_lines", "place"),
    [
        ([{"role": "user", "content": "one"}, {"role": "robot"}], False, ".[1]"),
        ({"messages": [{"role": "user", "content": 5}]}, False, ".messages[0]"),
        ([{"role": "user", "content": "one"}, {"role": "robot"}], True, "line 2"),
        ([{"messages": [{"role": "user", "content": 5}]}] * 2, True, "line 2, .messages[0]"),
    ],
)
def test_a_place_is_a_line_or_the_path_in_a_document(value, are_lines, place):
    refused = read_transcripts(written(value, are_lines), "openai_chat").refused[-1]
    assert f"{place}: " in refused.why


def test_a_loss_in_a_document_has_its_path(data_file):
    chat = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "2", "x": UNHEARD}]
    (read,) = read_transcripts(json.dumps({"id": "a", "messages": chat})).transcripts
    assert [(each.place, each.what) for each in read.losses if "not read" in each.what] == [
        (".messages[1]", "words under 'x', which are not read")
    ]


# Places where no program writes words, which a search over mutated files has found unnamed
HEARD = {"text": UNHEARD}
MISPLACED: list[tuple[str, tuple[str | int, ...], Any]] = [
    ("langgraph", (0, "next"), HEARD),
    ("langgraph", (0, "parent_config"), [HEARD]),
    ("langgraph", (0, "values"), [HEARD]),
    ("langsmith", ("outputs", "llm_output"), HEARD),
    ("langsmith", ("outputs", "generations", 0, 0, "generation_info"), HEARD),
    ("openai_list", ("data", 1), [HEARD]),
    ("claude_ai", (0, "account", "uuid"), HEARD),
    ("claude_ai", (0, "summary"), HEARD),
    ("chatgpt", (0, "mapping", "old", "message"), UNHEARD),
    ("sharegpt", (0, "tools"), HEARD),
    ("goose", ("conversation", 2), {"role": [HEARD], "content": []}),
    ("opencode", ("messages", 0, "info", "model", "text"), UNHEARD),
    ("opencode", ("messages", 0, "parts", 1, "text"), UNHEARD),
    ("copilot_chat", ("requests", 0, "variableData"), HEARD),
    ("copilot_chat", ("requests", 0, "response", 1, "text"), UNHEARD),
    ("copilot_cli", (4, "data", "delivery"), HEARD),
    ("copilot_cli", (3, "data", "result"), {"data": HEARD}),
    ("qwen_code", (2, "toolCallResult", "text"), UNHEARD),
    ("qwen_code", (1, "type"), HEARD),
    ("codex", (0, "payload", "payload"), HEARD),
]


def put(value: Any, path: tuple[str | int, ...], inner: Any) -> bool:
    """Put a value at a path, and return whether the path leads anywhere."""
    *way, last = path
    try:
        for step in way:
            value = value[step]
        value[last] = json.loads(json.dumps(inner))
    except (KeyError, IndexError, TypeError):
        return False
    return True


@pytest.mark.parametrize(("format", "path", "inner"), MISPLACED)
def test_words_where_no_program_writes_them_are_named(format, path, inner):
    changed = 0
    for sample, are_lines in SAMPLES[format]:
        value = json.loads(json.dumps(sample))
        if put(value, path, inner):
            changed += 1
            reading = read_transcripts(written(value, are_lines))
            known = losses_in(read_transcripts(written(sample, are_lines)))
            assert reading.refused or losses_in(reading) - known
    assert changed


def losses_in(reading: Reading) -> set[str]:
    return {loss.what for each in reading.transcripts for loss in each.losses}


def test_a_record_of_a_branch_that_cannot_be_read_is_refused_with_its_place():
    kinds = ["user", "assistant", "user", "assistant", "user"]
    parents = [None, "r0", "r1", "r2", "r1"]
    pairs = enumerate(zip(kinds, parents, strict=True))
    records = [MADE["claude_code"](n, kind, f"words of {n}", parent) for n, (kind, parent) in pairs]
    records[3]["message"]["content"] = [[]]
    reading = read_transcripts(written(records, are_lines=True))
    assert [each.where for each in reading.refused] == ["line 4"]
    assert [len(each.messages) for each in reading.transcripts] == [3, 3]


def test_a_branch_of_a_tree_ends_before_a_message_that_cannot_be_read():
    value, are_lines = json.loads(json.dumps(SAMPLES["chatgpt"][0]))
    value[0]["mapping"]["old"]["message"]["author"]["role"] = "robot"
    reading = read_transcripts(written(value, are_lines))
    assert [each.where for each in reading.refused] == [".[0].mapping.old.message"]
    assert [len(each.messages) for each in reading.transcripts] == [6]


def test_messages_that_name_each_other_as_parents_are_a_branch():
    value, are_lines = json.loads(json.dumps(SAMPLES["librechat"][0]))
    alone = {**value["messages"][0], "messageId": "x", "parentMessageId": "x", "text": UNHEARD}
    value["messages"].append(alone)
    value["messages"].append(value["messages"].pop(-2))
    assert UNHEARD in stored_text(read_transcripts(written(value, are_lines)))


# One failure


def test_a_fault_of_a_reader_refuses_one_conversation(failing, caplog):
    value = [{"lines": [{"said": "no"}, {"said": said}]} for said in ("no", "oops", "no")]
    reading = read_transcripts(json.dumps(value))
    assert len(reading.transcripts) == 2
    (refused,) = reading.refused
    assert refused.where == "conversation 2, .[1].lines[1]"
    assert "please report" in refused.why
    assert "KeyError" in caplog.text


@pytest.mark.django_db
@pytest.mark.needs("transfer")
def test_the_files_after_one_that_fails_are_imported(failing, tmp_path, caplog):
    (tmp_path / "a.json").write_text(json.dumps({"lines": [{"said": "oops"}]}))
    (tmp_path / "b.json").write_text(json.dumps([{"role": "user", "content": "hello"}]))
    out = io.StringIO()
    with pytest.raises(CommandError, match="1 refusal, 1 conversation imported"):
        call_command("import_transcripts", tmp_path, stdout=out, stderr=out)
    assert "please report" in out.getvalue()
    assert "Traceback" not in out.getvalue()


def test_a_refused_file_of_many_lines_leaves_no_traceback(tmp_path, capfd):
    lines = [json.dumps({"is_user": n % 2 == 0, "mes": f"hello {n}"}) for n in range(40)]
    file = tmp_path / "tavern.jsonl"
    file.write_text("\n".join(lines))
    with pytest.raises(InvalidValue, match="SillyTavern"), opened(file) as content:
        stream_transcripts(content)
    gc.collect()
    assert capfd.readouterr().err == ""


# Every entrance of files and values


@pytest.mark.needs("doctor", "lab")
@pytest.mark.django_db
@pytest.mark.parametrize("command", ["doctor", "recall"])
@pytest.mark.parametrize("are_named", [True, False])
def test_commands_read_the_files_after_one_that_fails(command, are_named, failing, tmp_path):
    call = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{}"}}
    good = [
        {"role": "user", "content": "My order is ENT-48213."},
        {"role": "assistant", "content": "Is it ENT-48213?"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "user", "content": "Yes, ENT-48213."},
    ]
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    files[0].write_text(json.dumps({"lines": [{"said": "oops"}]}))
    files[1].write_text(json.dumps(good))
    out = io.StringIO()
    with suppress(SystemExit):
        given = files if are_named else [tmp_path]
        call_command(command, *map(str, given), stdout=out, stderr=out)
    assert "please report" in out.getvalue()
    assert "Traceback" not in out.getvalue()
    others = [line for line in out.getvalue().splitlines() if not line.startswith("left out")]
    assert len(others) > 1


@pytest.mark.parametrize("format", ["failing", "anthropic"])
def test_values_that_a_reader_fails_on_are_refused(format, failing):
    memory = MessageWindowChatMemory(max_messages=9)
    if format == "failing":
        with pytest.raises(UnreadableTranscript, match="please report"):
            memory.add_from({"lines": [{"said": "oops"}]}, format)
    else:
        with pytest.raises(UnreadableTranscript, match="role"):
            memory.add_from({"role": 5}, format)
    assert memory.messages() == []
