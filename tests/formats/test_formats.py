"""Files and lists of messages in all formats: which one it is, and what cannot be read of it."""

from __future__ import annotations

import gzip
import json
import lzma
from typing import get_args

import pytest
from hypothesis import strategies as st

from chatmemory import (
    AiMessage,
    CustomMessage,
    InvalidMessage,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
)
from chatmemory.exceptions import InvalidValue, UnreadableTranscript
from chatmemory.formats import (
    FORMATS,
    parse_messages,
    read_transcripts,
    render_each,
    render_messages,
)
from chatmemory.formats.format import WrittenAsList, WrittenAsObject, WrittenAsText

CHAT = [{"role": "user", "content": "hi"}]
WRITTEN = [name for name in FORMATS if FORMATS[name].render]
OTHER_PARTS = {"role": "user", "parts": [{"kind": "words", "said": "hi"}]}
words = st.text(max_size=20)


# Lists of messages


def test_the_types_of_render_name_what_each_format_gives():
    said = [SystemMessage("Be brief."), UserMessage("hello")]
    types: dict[type, set[str]] = {}
    for name in WRITTEN:
        types.setdefault(type(render_messages(said, name).value), set()).add(name)
    assert types == {
        list: {*get_args(WrittenAsList)},
        dict: {*get_args(WrittenAsObject)},
        str: {*get_args(WrittenAsText)},
    }


@pytest.mark.parametrize("format", WRITTEN)
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([UserMessage("a"), {"role": "user", "content": "and this"}], "'openai_chat') of"),
        (
            [UserMessage("a"), None],
            "expected a chat message such as UserMessage('Hello'), not None",
        ),
        (UserMessage("x"), "expected a list of chat messages, not UserMessage("),
        ("hello", "expected a list of chat messages, not 'hello'"),
    ],
)
def test_an_item_that_is_not_a_message_is_refused_not_left_out(format, given, words):
    for write in (render_messages, lambda *what: list(render_each(*what).values)):
        with pytest.raises(InvalidMessage) as refused:
            write(given, format)
        assert words in str(refused.value)


@pytest.mark.parametrize("format", WRITTEN)
def test_messages_are_written_from_an_iterator(format):
    said = [UserMessage("a"), AiMessage(None, [ToolExecutionRequest.of("find", {}, id="1")])]
    whole = render_messages(said, format)
    assert render_messages(iter(said), format) == whole
    assert render_each(iter(said), format).whole() == whole


@pytest.mark.parametrize("format", [name for name in FORMATS if name not in WRITTEN])
def test_a_format_that_is_only_read_writes_nothing(format):
    with pytest.raises(InvalidValue, match=f"cannot be written in the format '{format}'"):
        render_messages([UserMessage("a")], format)


@pytest.mark.parametrize("format", ["openai_responses", "openai_chat", "sharegpt"])
def test_losses_of_messages_are_listed_with_their_places(format):
    said = [AiMessage("x", (None,), "y"), CustomMessage({}), UserMessage("x", attributes={"a": 1})]
    assert [(loss.where, loss.what) for loss in render_messages(said, format).losses] == [
        ("message 1", "thinking"),
        ("message 1", "an empty tool call"),
        ("message 2", "a whole CUSTOM message"),
        ("message 3", "attributes.a"),
    ]


@pytest.mark.parametrize(
    ("turns", "format", "index"),
    [
        ([{"role": "user", "content": "x"}, {"role": "robot"}], "openai_chat", 1),
        ([{"role": "user", "content": 5}], "openai_chat", 0),
        ([{"role": "assistant", "tool_calls": [{}]}], "openai_chat", 0),
        ([{"role": "assistant", "tool_calls": 5}], "openai_chat", 0),
        ([{"from": "human", "value": "x"}, {"from": "cat", "value": "y"}], "sharegpt", 1),
        ([{"from": "human", "value": None}], "sharegpt", 0),
        ([{"type": "USER"}], "langchain4j", 0),
        ([None], "langchain4j", 0),
        (["x"], "openai_chat", 0),
        ({}, "openai_chat", -1),
    ],
)
def test_an_unreadable_message_is_named(turns, format, index):
    with pytest.raises(UnreadableTranscript) as caught:
        parse_messages(turns, format)
    assert caught.value.index == index


def test_an_unknown_format_is_refused_with_a_list_of_formats():
    with pytest.raises(InvalidValue, match="one of langchain4j, "):
        parse_messages([], "xml")


# Files


@pytest.mark.parametrize(
    ("content", "format", "names"),
    [
        (json.dumps(CHAT), "openai_chat", ["1"]),
        (json.dumps({"messages": CHAT}), "openai_chat", ["1"]),
        (json.dumps([CHAT, CHAT]), "openai_chat", ["1", "2"]),
        (json.dumps([{"task_id": 3, "trial": 0, "traj": CHAT}]), "openai_chat", ["3-0"]),
        (json.dumps([{"task_id": 3, "traj": CHAT}]), "openai_chat", ["3"]),
        (json.dumps([{"type": "message", **CHAT[0]}]), "openai_chat", ["1"]),
        (f"{json.dumps(CHAT)}\n{json.dumps(CHAT)}\n", "openai_chat", ["1", "2"]),
        ("\ufeff" + json.dumps(CHAT), "openai_chat", ["1"]),
        ('[{"type":"SYSTEM","text":"x"}]', "langchain4j", ["1"]),
        ('{"id":7,"messages":[{"type":"SYSTEM","text":"x"}]}', "langchain4j", ["7"]),
        ('{"conversations":[{"from":"human","value":"x"}],"system":"s"}', "sharegpt", ["1"]),
        *(
            (json.dumps([{"id": id, "messages": CHAT}]), "openai_chat", ["1"])
            for id in (None, "", {"a": 1}, True)
        ),
    ],
)
def test_files_are_recognised_and_conversations_named(content, format, names):
    for same in (content, content.encode()):
        reading = read_transcripts(same)
        assert reading.format == format
        assert [transcript.name for transcript in reading.transcripts] == names


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        ([], "an empty list"),
        ({}, "an empty object"),
        ("x", "a string"),
        (5, "a number"),
        (True, "true or false"),
        ([None], "a list that begins with null"),
        ([[]], "a list that begins with an empty list"),
        ({"turns": []}, "an object with 'turns'"),
        ({"messages": []}, "an object with 'messages' and no messages in it"),
        (
            [{"id": "a", "conversations": []}],
            "a list that begins with an object with 'id', 'conversations' and no messages in it",
        ),
        ([OTHER_PARTS], "a list that begins with an object with 'role', 'parts'"),
        ([{"role": "user"}], "a list that begins with an object with 'role'"),
        (
            [{"type": "function_call", "name": "find"}],
            "a list that begins with an object with 'type', 'name'",
        ),
        ({"conversations": [{"from": "human"}]}, "an object with 'conversations'"),
    ],
)
def test_a_file_that_fits_no_format_is_described(value, shape):
    with pytest.raises(UnreadableTranscript, match=f"the file is {shape}$"):
        read_transcripts(json.dumps(value))


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("[" * 900 + "]" * 900, "nested too deeply"),
        ("[" * 10_000, "more than 2,250 lists"),
        ("[" + "9" * 10_000 + "]", "a number has more than 4,300 digits"),
        ("", "not valid JSON"),
        (b"", "the file is empty"),
        (b" \r\n", "the file is empty"),
        ("hello", "not valid JSON"),
        (b'["\xff"]', "not UTF-8: invalid start byte at byte 2"),
        (b"PK\x03\x04\x14\0\0\0\x08\0", "the file is a ZIP archive, which is not read. Unpack it"),
        (gzip.compress(json.dumps(CHAT).encode()), "the file is compressed with gzip"),
        (lzma.compress(json.dumps(CHAT).encode()), "the file is compressed with xz"),
        (b"\x28\xb5\x2f\xfd\x24\x02", "the file is compressed with zstd"),
        (json.dumps(CHAT).encode("utf-16"), "is UTF-16, which is not read. Save it as UTF-8"),
        (f"{json.dumps(CHAT)}\n\n{{broken}}\n", "line 3"),
    ],
    ids=[
        *("nested", "open", "long number", "empty text", "empty", "blank", "no JSON"),
        *("no UTF-8", "ZIP", "gzip", "xz", "zstd", "UTF-16", "a broken line"),
    ],
)
def test_hostile_files_are_refused(content, why):
    with pytest.raises(UnreadableTranscript, match=why):
        read_transcripts(content)


@pytest.mark.parametrize(
    ("format", "turn", "why"),
    [
        (
            "pydantic_ai",
            {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": [{"kind": []}]}]},
            "kind must be a string",
        ),
        ("pydantic_ai", {"kind": "response", "parts": [{"part_kind": {}}]}, "parts of kind {}"),
        ("llama_index", {"role": "user", "blocks": [{"block_type": []}]}, "must be a string"),
        ("gemini", {"role": "model", "parts": [{"inlineData": 1}]}, "inlineData must be an object"),
    ],
)
def test_a_value_of_a_wrong_type_is_refused_with_its_message(format, turn, why):
    with pytest.raises(UnreadableTranscript, match=why):
        parse_messages([turn], format)


def test_a_line_separator_in_a_text_does_not_end_a_json_line():
    line = json.dumps([{"role": "user", "content": "a\u2028b"}], ensure_ascii=False)
    reading = read_transcripts(f"{line}\n{line}")
    assert [len(transcript.messages) for transcript in reading.transcripts] == [1, 1]


def test_other_data_of_a_file_is_listed_as_lost():
    for chat in (CHAT, [{"type": "SYSTEM", "text": "x"}]):
        file = {"id": "a", "model": "m", "tools": [], "messages": chat}
        (transcript,) = read_transcripts(json.dumps(file)).transcripts
        assert [(loss.where, loss.what) for loss in transcript.losses] == [
            ("conversation", "the property 'model'")
        ]


def test_a_conversation_that_cannot_be_read_is_refused_and_the_others_are_read():
    unknown = [*CHAT, {"role": "assistant", "content": [{"type": "output_thing", "text": "hi"}]}]
    values = [CHAT, [{"role": "robot"}], "noise", [OTHER_PARTS], unknown]
    reading = read_transcripts(json.dumps(values))
    assert len(reading.transcripts) == 1
    no_chat = "this is not a conversation in the format openai_chat, but "
    assert [(refused.where, refused.why) for refused in reading.refused][1:] == [
        ("conversation 3", f"{no_chat}a string"),
        (
            "conversation 4",
            f"{no_chat}a list that begins with an object with 'role', 'parts'",
        ),
        (
            "conversation 5",
            ".[4][1]: no part of its content can be read: parts of type 'output_thing'",
        ),
    ]


def test_the_real_conversations_are_read_completely(data_file):
    tau = read_transcripts(data_file("tau_bench_airline.openai_chat.json").read_bytes())
    assert sum(len(transcript.messages) for transcript in tau.transcripts) == 2_526
    glaive = read_transcripts(data_file("glaive_toolcall.sharegpt.json").read_bytes())
    assert (len(glaive.transcripts), glaive.refused) == (150, ())
    for transcript in (*tau.transcripts, *glaive.transcripts):
        opened: set[str] = set()
        for message in transcript.messages:
            if isinstance(message, AiMessage):
                opened |= {call.id for call in message.tool_execution_requests}
            elif isinstance(message, ToolExecutionResultMessage):
                assert message.id in opened
