from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import (
    AiMessage,
    CustomMessage,
    ImageContent,
    InvalidMessage,
    SystemMessage,
    TextContent,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
)
from chatmemory.core.contents import DetailLevel, Image
from chatmemory.core.exceptions import InvalidValue, UnreadableTranscript
from chatmemory.formats import (
    FORMATS,
    parse_messages,
    read_transcripts,
    render_each,
    render_messages,
)

words = st.text(max_size=20)
calls = st.builds(ToolExecutionRequest, words.filter(bool), words, words)
sayable = st.one_of(
    st.builds(SystemMessage, words.filter(lambda text: text.strip(" \n\t\r\x0b\x0c") > " ")),
    st.builds(UserMessage, words, words.filter(bool) | st.none()),
    st.builds(AiMessage, words | st.none(), st.lists(calls, max_size=2)),
    st.builds(
        lambda call, text: ToolExecutionResultMessage(call, None, text), words.filter(bool), words
    ),
)


def openai(*turns: dict) -> list:
    return list(parse_messages(list(turns), "openai_chat").messages)


@given(st.lists(sayable, max_size=6))
def test_langchain4j_survives_a_round_trip(messages):
    rendered = render_messages(messages, "langchain4j")
    assert list(parse_messages(rendered.value).messages) == messages
    assert rendered.losses == ()


@given(st.lists(sayable, max_size=6))
def test_openai_messages_survive_a_round_trip(messages):
    rendered = render_messages(messages, "openai_chat")
    back = parse_messages(rendered.value, "openai_chat").messages
    again = render_messages(list(back), "openai_chat")
    assert again.value == rendered.value


def test_results_without_ids_answer_calls_in_order():
    calls = [
        {"function": {"name": "find", "arguments": "{}"}},
        {"function": {"name": "pay", "arguments": "{}"}},
    ]
    call, first, second = openai(
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "content": "found"},
        {"role": "tool", "content": "paid"},
    )
    assert [each.id for each in call.tool_execution_requests] == [first.id, second.id]
    assert (first.tool_name, second.tool_name) == ("find", "pay")


def test_content_parts_become_contents():
    (message,) = openai(
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "look"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,QQ=="}},
            ],
        }
    )
    assert message.contents == (
        TextContent("look"),
        ImageContent(Image(base64_data="QQ==", mime_type="image/png"), DetailLevel.AUTO),
    )


def test_the_old_function_call_is_a_tool_call():
    (message,) = openai(
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
    )
    assert message.tool_execution_requests[0].name == "f"


def test_developer_messages_are_system_messages():
    assert openai({"role": "developer", "content": "x"}) == [SystemMessage("x")]


def test_losses_are_listed():
    parsed = parse_messages([{"role": "system", "content": " "}], "openai_chat")
    assert [loss.what for loss in parsed.losses] == ["a blank system message"]
    rendered = render_messages([AiMessage("x", thinking="y"), CustomMessage({})], "openai_chat")
    assert [loss.where for loss in rendered.losses] == ["message 1", "message 2"]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([UserMessage("a"), {"role": "user", "content": "and this"}], "'openai_chat') of"),
        ([UserMessage("a"), None], "is wanted, not None"),
        (["hello"], "is wanted, not 'hello'"),
        (UserMessage("x"), "a list of chat messages is wanted, not UserMessage("),
        ("hello", "a list of chat messages is wanted, not 'hello'"),
    ],
)
def test_what_is_no_message_is_not_left_out(format, given, words):
    for write in (render_messages, lambda *what: list(render_each(*what).values)):
        with pytest.raises(InvalidMessage) as refused:
            write(given, format)
        assert words in str(refused.value)


@pytest.mark.parametrize("format", FORMATS)
def test_messages_are_written_from_an_iterator(format):
    said = [UserMessage("a"), AiMessage(None, [ToolExecutionRequest.of("find", {}, id="1")])]
    whole = render_messages(said, format)
    assert render_messages(iter(said), format) == whole
    assert render_each(iter(said), format).whole() == whole


def test_sharegpt_calls_pair_with_observations():
    turns = [
        {"from": "human", "value": "hi"},
        {"from": "function_call", "value": '{"name": "find", "arguments": {"id": 7}}'},
        {"from": "observation", "value": "found"},
        {"from": "gpt", "value": "There."},
    ]
    user, call, result, answer = parse_messages(turns, "sharegpt").messages
    assert call.tool_execution_requests[0].arguments == '{"id": 7}'
    assert (result.id, result.tool_name) == (call.tool_execution_requests[0].id, "find")
    assert (user, answer) == (UserMessage("hi"), AiMessage("There."))


def test_a_malformed_sharegpt_call_is_kept_raw():
    parsed = parse_messages([{"from": "function_call", "value": "find(7)"}], "sharegpt")
    assert parsed.messages[0].tool_execution_requests[0].arguments == "find(7)"
    assert parsed.losses


@pytest.mark.parametrize(
    ("turns", "format", "index"),
    [
        ([{"role": "user", "content": "x"}, {"role": "robot"}], "openai_chat", 1),
        ([{"role": "user", "content": 5}], "openai_chat", 0),
        ([{"role": "assistant", "tool_calls": [{}]}], "openai_chat", 0),
        ([{"from": "human", "value": "x"}, {"from": "cat", "value": "y"}], "sharegpt", 1),
        ([{"from": "human", "value": None}], "sharegpt", 0),
        ([{"type": "USER"}], "langchain4j", 0),
        (["x"], "openai_chat", 0),
        ({}, "openai_chat", -1),
    ],
)
def test_an_unreadable_message_is_named(turns, format, index):
    with pytest.raises(UnreadableTranscript) as caught:
        parse_messages(turns, format)
    assert caught.value.index == index


def test_an_unknown_format_is_refused_with_a_list_of_formats():
    with pytest.raises(InvalidValue, match="langchain4j, openai_chat, sharegpt"):
        parse_messages([], "xml")


CHAT = [{"role": "user", "content": "hi"}]


@pytest.mark.parametrize(
    ("content", "format", "names"),
    [
        (json.dumps(CHAT), "openai_chat", ["1"]),
        (json.dumps({"messages": CHAT}), "openai_chat", ["1"]),
        (json.dumps([CHAT, CHAT]), "openai_chat", ["1", "2"]),
        (json.dumps([{"task_id": 3, "trial": 0, "traj": CHAT}]), "openai_chat", ["3-0"]),
        (f"{json.dumps(CHAT)}\n{json.dumps(CHAT)}\n", "openai_chat", ["1", "2"]),
        ("\ufeff" + json.dumps(CHAT), "openai_chat", ["1"]),
        ('[{"type":"SYSTEM","text":"x"}]', "langchain4j", ["1"]),
        ('{"id":7,"messages":[{"type":"SYSTEM","text":"x"}]}', "langchain4j", ["7"]),
        ('{"conversations":[{"from":"human","value":"x"}],"system":"s"}', "sharegpt", ["1"]),
    ],
)
def test_files_are_recognised(content, format, names):
    reading = read_transcripts(content.encode())
    assert reading.format == format
    assert [transcript.name for transcript in reading.transcripts] == names


def test_one_bad_conversation_does_not_stop_the_others():
    reading = read_transcripts(json.dumps([CHAT, [{"role": "robot"}], "noise"]))
    assert len(reading.transcripts) == 1
    assert [refused.where for refused in reading.refused] == ["conversation 2", "conversation 3"]


@pytest.mark.parametrize("content", ["[" * 10_000, "[" + "9" * 10_000 + "]", "", "hello", "{}"])
def test_hostile_files_are_refused(content):
    with pytest.raises(UnreadableTranscript):
        read_transcripts(content)


def test_the_real_conversations_are_read_completely(data_file):
    tau = read_transcripts(data_file("tau_bench_airline.openai_chat.json").read_bytes())
    assert sum(len(transcript.messages) for transcript in tau.transcripts) == 2_526
    glaive = read_transcripts(data_file("glaive_toolcall.sharegpt.json").read_bytes())
    assert (len(glaive.transcripts), glaive.refused) == (150, ())
    for transcript in (*tau.transcripts, *glaive.transcripts):
        _check_pairing(transcript.messages)


def _check_pairing(messages) -> None:
    opened: set[str] = set()
    for message in messages:
        if isinstance(message, AiMessage):
            opened |= {call.id for call in message.tool_execution_requests}
        elif isinstance(message, ToolExecutionResultMessage):
            assert message.id in opened
