from __future__ import annotations

import json

import pytest

from chatmemory.core.exceptions import UnreadableTranscript
from chatmemory.formats import read_transcripts

CHAT = [{"role": "user", "content": "hi"}]


def test_a_line_separator_in_a_text_does_not_end_a_json_line():
    line = json.dumps([{"role": "user", "content": "a\u2028b"}], ensure_ascii=False)
    reading = read_transcripts(f"{line}\n{line}")
    assert [len(transcript.messages) for transcript in reading.transcripts] == [1, 1]


def test_a_broken_json_line_is_named_by_its_number_in_the_file():
    with pytest.raises(UnreadableTranscript, match="line 3"):
        read_transcripts(f"{json.dumps(CHAT)}\n\n{{broken}}\n")


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        ([], "an empty list"),
        ({}, "an empty object"),
        ([None], "a list that begins with null"),
        ([[]], "a list that begins with an empty list"),
        ({"turns": []}, "an object with 'turns'"),
        ({"messages": []}, "an object with 'messages' and no messages in it"),
        (
            {"id": "a", "conversations": []},
            "an object with 'id', 'conversations' and no messages in it",
        ),
        (
            [{"messages": []}],
            "a list that begins with an object with 'messages' and no messages in it",
        ),
        (5, "a number"),
        (True, "true or false"),
    ],
)
def test_a_file_that_fits_no_format_is_described(value, shape):
    with pytest.raises(UnreadableTranscript, match=f"the file is {shape}$"):
        read_transcripts(json.dumps(value))


@pytest.mark.parametrize("levels", [500, 900, 1_500])
def test_a_deeply_nested_list_is_refused(levels):
    with pytest.raises(UnreadableTranscript):
        read_transcripts("[" * levels + "]" * levels)


def test_other_data_of_a_file_is_listed_as_lost():
    reading = read_transcripts(json.dumps({"id": "a", "model": "m", "tools": [], "messages": CHAT}))
    (transcript,) = reading.transcripts
    assert [(loss.where, loss.what) for loss in transcript.losses] == [
        ("conversation", "the property 'model'")
    ]


@pytest.mark.parametrize("name", [None, "", {"a": 1}, True])
def test_an_invalid_id_is_replaced_by_the_position(name):
    reading = read_transcripts(json.dumps([{"id": name, "messages": CHAT}]))
    assert reading.transcripts[0].name == "1"


def test_openai_messages_with_a_type_are_not_taken_for_langchain4j():
    reading = read_transcripts(json.dumps([{"type": "message", **CHAT[0]}]))
    assert reading.format == "openai_chat"


OPEN_TELEMETRY = {"role": "user", "parts": [{"type": "text", "content": "hi"}]}
ANTHROPIC = [
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": [{"type": "tool_use", "name": "find", "input": {}}]},
]


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ([OPEN_TELEMETRY], "'role', 'parts'"),
        ([{"id": "1", **OPEN_TELEMETRY}], "'id', 'role', 'parts'"),
        ([{"role": "user"}], "'role'"),
        ([{"type": "function_call", "name": "find"}], "'type', 'name'"),
        ({"conversations": [{"from": "human"}]}, "'conversations'"),
    ],
)
def test_other_formats_are_not_taken_for_one_that_is_known(value, names):
    with pytest.raises(UnreadableTranscript, match=f"an object with {names}$"):
        read_transcripts(json.dumps(value))


def test_a_conversation_of_another_format_beside_others_is_described():
    reading = read_transcripts(json.dumps([CHAT, [OPEN_TELEMETRY]]))
    (refused,) = reading.refused
    assert refused.where == "conversation 2"
    assert refused.why.endswith("a list that begins with an object with 'role', 'parts'")


@pytest.mark.parametrize(
    ("turns", "why"),
    [
        (ANTHROPIC, "message 2: no part of its content can be read: a part of type 'tool_use'"),
        (
            [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]}],
            "message 1: no part of its content can be read: a part of type 'input_text'",
        ),
    ],
)
def test_a_conversation_with_a_turn_that_cannot_be_read_is_refused(turns, why):
    reading = read_transcripts(json.dumps(turns))
    assert (reading.transcripts, [each.why for each in reading.refused]) == ((), [why])
