from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import AiMessage, SystemMessage, ToolExecutionRequest
from chatmemory.exceptions import UnreadableTranscript
from chatmemory.formats import parse_messages, parse_objects, read_transcripts, render_messages
from chatmemory.messages.message import text_of, with_attributes

from .test_difference import edited

FORMAT = "otel_genai"
INPUT, OUTPUT = "gen_ai.input.messages", "gen_ai.output.messages"
SYSTEM = "gen_ai.system_instructions"
URL = "https://example.org/a"

words = st.text(max_size=20)


def parse(*turns):
    return parse_messages(list(turns), FORMAT)


def turns_of(messages):
    return render_messages(messages, FORMAT).value[INPUT]


def message_with(role: str, *parts: object, **properties: object) -> dict:
    parts = [text(part) if isinstance(part, str) else part for part in parts]
    return {"role": role, "parts": parts, **properties}


def text(content: str, **properties: object) -> dict:
    return {"type": "text", "content": content, **properties}


def call(id: str = "c1", arguments: object = None, **properties: object) -> dict:
    arguments = {"city": "Paris"} if arguments is None else arguments
    return {"type": "tool_call", "id": id, "name": "find", "arguments": arguments, **properties}


def response(id: str = "c1", response: object = "sunny", **properties: object) -> dict:
    return {"type": "tool_call_response", "id": id, "response": response, **properties}


def typed(type: str, **properties: object) -> dict:
    return {"type": type, **properties}


def test_arguments_and_results_are_values_where_text_says_the_same():
    request = ToolExecutionRequest("c1", "find", '{"city": "Paris"}')
    exact = ToolExecutionRequest("c2", "find", '{"city":"Paris"}')
    (written,) = turns_of([AiMessage(None, [request, exact])])
    assert [part["arguments"] for part in written["parts"]] == [
        {"city": "Paris"},
        '{"city":"Paris"}',
    ]


# What was said comes back

SERVER_CALL = typed(
    "server_tool_call",
    id="s1",
    name="search",
    server_tool_call={"type": "web_search", "query": "the news"},
)
SERVER_RESPONSE = typed(
    "server_tool_call_response",
    id="s1",
    server_tool_call_response={"type": "web_search", "results": ["it is sunny"]},
)
SPOKEN = [
    [message_with("user", "hi")],
    [message_with("user", "hi", "there", name="Ada")],
    [message_with("user", text("hi", mark=1), typed("mystery", words="x"))],
    [message_with("user", typed("mystery", id="m_1"))],
    [message_with("user", typed("blob", modality="image", mime_type="image/png", content="QQ=="))],
    [
        message_with(
            "user", typed("uri", modality="video", uri=URL), typed("uri", modality="x", uri=URL)
        )
    ],
    [message_with("user", typed("file", modality="document", file_id="file-1"))],
    [message_with("system", "be", "brief")],
    [message_with("developer", "be brief")],
    [
        message_with(
            "assistant", typed("reasoning", content="hm"), "so", call(), finish_reason="tool_call"
        )
    ],
    [
        message_with(
            "assistant", "a", typed("reasoning", content="b"), "c", typed("thinking", content="d")
        )
    ],
    [message_with("assistant")],
    [message_with("assistant", typed("blob", modality="image", content="QQ=="))],
    [message_with("assistant", typed("compaction", id="cmp_1", content="they spoke"), "so")],
    [
        message_with("assistant", call("c1"), call("c2")),
        message_with("tool", response("c2"), response("c1")),
    ],
    [
        message_with("assistant", call(arguments='{"city":"Paris"}')),
        message_with("tool", response(response=[1])),
    ],
    [
        message_with("assistant", call(arguments=7)),
        message_with("tool", response(response=None, name="find")),
    ],
    [
        message_with("assistant", typed("tool_call", name="find")),
        message_with("tool", typed("tool_call_response")),
    ],
    [
        message_with("assistant", call()),
        message_with("tool", typed("tool_call_response", id="c1", result={"a": 1})),
    ],
    [
        message_with("assistant", call()),
        message_with("user", response(response={"of": "it"}), "and then?"),
    ],
    [message_with("assistant", call()), message_with("tool", "sunny")],
    [
        message_with("assistant", "a", SERVER_CALL, SERVER_RESPONSE, "b", call(), name="x"),
        message_with("tool", response()),
    ],
    [message_with("assistant", call(builtin=True), response(builtin=True), "so")],
]


@pytest.mark.parametrize("turns", SPOKEN)
def test_details_beyond_the_model_come_back(turns):
    read = parse(*turns)
    rendered = render_messages(read.messages, FORMAT)
    assert (rendered.value, read.losses, rendered.losses) == ({INPUT: turns}, (), ())
    assert all(text_of(message) or message == AiMessage(None) for message in read.messages[:1])


@given(
    st.lists(st.sampled_from(SPOKEN), max_size=5).map(
        lambda lists: [t for one in lists for t in one]
    )
)
def test_any_turns_come_back(turns):
    read = parse(*turns)
    assert render_messages(read.messages, FORMAT).value == {INPUT: turns}


@pytest.mark.parametrize("turns", SPOKEN)
def test_edits_are_written_and_attributes_repeat_no_text(turns):
    read = parse(*turns).messages
    changed = [edited(message) for message in read]
    spelt = json.dumps(turns_of(changed))
    for before, after in zip(read, changed, strict=True):
        kept = json.dumps(before.attributes)
        for words in ("hi", "so", "hm", "brief", "sunny", "the news", "they spoke"):
            assert f'"{words}"' not in kept
        for value in after.tool_execution_requests if isinstance(after, AiMessage) else ():
            assert value.arguments in spelt
        if "edited text" in text_of(after):
            assert "edited text" in spelt
        if getattr(after, "thinking", None):
            assert "edited thinking" in spelt
    for words in ("sunny", "the news", "they spoke", "brief"):
        assert words not in spelt


def test_results_of_one_turn_are_messages_and_one_turn_again():
    read = parse(
        message_with("assistant", call("c1"), call("c2")),
        message_with("tool", response("c2"), response()),
    )
    assert [(m.id, m.tool_name) for m in read.messages[1:]] == [("c2", "find"), ("c1", "find")]
    assert read.turns == (0, 1, 1)
    apart = [with_attributes(message, {}) for message in read.messages]
    assert [turn["role"] for turn in turns_of(apart)] == ["assistant", "tool", "tool"]


def test_the_call_of_a_server_is_a_call_its_result_and_the_words_behind_it():
    one, two, three = parse(
        message_with("assistant", "a", SERVER_CALL, SERVER_RESPONSE, "b")
    ).messages
    assert (one.text, one.tool_execution_requests[0].name, three.text) == ("a", "search", "b")
    assert (two.id, two.tool_name) == ("s1", "search")
    assert json.loads(text_of(two))["results"] == ["it is sunny"]
    plain = [with_attributes(message, {}) for message in (one, two, three)]
    assert [turn["role"] for turn in turns_of(plain)] == ["assistant", "tool", "assistant"]


# Spans


@pytest.mark.parametrize("spell", [lambda value: value, json.dumps])
@pytest.mark.parametrize("within", [lambda span: span, lambda span: {"attributes": span}])
def test_a_span_is_its_instructions_its_input_and_its_output(spell, within):
    about = {"gen_ai.usage.input_tokens": 3, "gen_ai.response.id": "r1"}
    span = {
        SYSTEM: spell([text("be brief")]),
        INPUT: spell([message_with("user", "hi")]),
        OUTPUT: spell([message_with("assistant", "ho", finish_reason="stop")]),
        "gen_ai.conversation.id": "conv-1",
        "gen_ai.request.model": "gpt-5",
        **about,
    }
    (read,) = read_transcripts(json.dumps([within(span)])).transcripts
    assert [text_of(message) for message in read.messages] == ["be brief", "hi", "ho"]
    assert read.messages[2].attributes[FORMAT]["response"] == about
    assert "be brief" not in json.dumps(read.messages[0].attributes)
    assert read.name == "conv-1"
    assert [loss.what for loss in read.losses] == ["the property 'gen_ai.request.model'"]
    assert render_messages(read.messages, FORMAT).value == {
        SYSTEM: [text("be brief")],
        INPUT: [message_with("user", "hi"), message_with("assistant", "ho", finish_reason="stop")],
    }


def test_instructions_may_be_a_plain_text():
    read = parse_objects({SYSTEM: "be brief", INPUT: [message_with("user", "hi")]}, FORMAT)
    assert read.messages[0] == SystemMessage("be brief")


@pytest.mark.parametrize(
    "value",
    [
        [{"role": "user", "parts": [{"text": "hi"}]}],
        [{"id": "1", "role": "user", "parts": [{"type": "text", "text": "hi"}]}],
        [{"parts": [{"type": "text", "content": "hi"}]}],
        {INPUT: "no JSON", OUTPUT: 5},
        {"gen_ai.request.model": "m"},
    ],
)
def test_other_files_are_of_no_format(value):
    with pytest.raises(UnreadableTranscript, match="no conversation in the format otel_genai"):
        read_transcripts(json.dumps(value), FORMAT)


@pytest.mark.parametrize(
    ("turn", "why"),
    [
        ("x", "a message must be a JSON object"),
        ({"role": "user", "content": "x"}, "parts must be a list"),
        ({"role": "user", "parts": [5]}, "a part must be an object"),
        ({"role": "user", "parts": [{"content": "x"}]}, "a part needs the field type, a string"),
        ({"role": "user", "parts": [{"type": ["text"]}]}, "a part needs the field type, a string"),
        (message_with("user"), "its list of parts is empty"),
        (message_with("tool"), "its list of parts is empty"),
        (message_with("system"), "no text in its parts"),
        (message_with("robot", "x"), "unknown role 'robot'"),
        (message_with("user", text(5)), "content must be a string"),
        (message_with("assistant", typed("tool_call", id=5)), "must be a string"),
        (message_with("user", typed("uri", modality="image", uri="a b")), "Illegal character"),
    ],
)
def test_a_malformed_message_is_refused_with_its_place(turn, why):
    with pytest.raises(UnreadableTranscript, match=why) as caught:
        parse(message_with("user", "hi"), turn)
    assert caught.value.index == 1
