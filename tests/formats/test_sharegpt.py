from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import AiMessage, ToolExecutionRequest, ToolExecutionResultMessage, UserMessage
from chatmemory.formats import parse_messages, render_messages
from chatmemory.messages.message import text_of


def parse(*turns):
    return parse_messages([{"from": who, "value": value} for who, value in turns], "sharegpt")


def lost_in_writing(*messages) -> list[str]:
    return [loss.what for loss in render_messages(messages, "sharegpt").losses]


@pytest.mark.parametrize("text", ["find(7)", '"seven"', "[7]", "7", "null", '{"id": 7'])
def test_arguments_that_are_not_an_object_survive_a_round_trip(text):
    message = AiMessage(None, (ToolExecutionRequest("call_1", "find", text),))
    rendered = render_messages([message], "sharegpt")
    assert parse_messages(rendered.value, "sharegpt").messages == (message,)


def test_calls_in_a_row_and_the_words_before_them_are_one_message():
    _, _, message, *results = parse(
        ("function_call", '{"name": "look", "arguments": {}}'),
        ("human", "no"),  # what was called before is not answered any more
        ("gpt", "Let me look."),
        ("function_call", '{"name": "find", "arguments": {}}'),
        ("function_call", '{"name": "pay", "arguments": {}}'),
        ("observation", "found"),
        ("observation", "paid"),
    ).messages
    assert message.text == "Let me look."
    assert [call.name for call in message.tool_execution_requests] == ["find", "pay"]
    assert [result.tool_name for result in results] == ["find", "pay"]


@pytest.mark.parametrize("value", ['{"find": 7}', '{"name": 7}', "[]", '"find"', "7"])
def test_a_call_without_a_name_keeps_its_words(value):
    parsed = parse(("function_call", value))
    assert parsed.messages[0].tool_execution_requests[0].arguments == value
    assert [loss.what for loss in parsed.losses] == ["the name of a malformed tool call"]


def test_details_beyond_the_model_come_back():
    call = '{"name": "find", "arguments": {"a": 1.0}, "why": "asked"}'
    turns = [
        {"from": "user", "value": "hi"},
        {"from": "gpt", "value": "x", "weight": 0},
        {"from": "tool_call", "value": call, "weight": 1},
        {"from": "observation", "value": "found", "weight": 0},
    ]
    read = parse_messages(turns, "sharegpt")
    rendered = render_messages(read.messages, "sharegpt")
    assert (rendered.value, read.losses, rendered.losses) == (turns, (), ())


def test_results_out_of_order_lose_their_call():
    calls = AiMessage(None, [ToolExecutionRequest(id, id, "{}") for id in "ab"])
    results = [ToolExecutionResultMessage(id, id, "x") for id in "ba"]
    assert lost_in_writing(calls, *results) == ["which call the result answers"] * 2
    assert lost_in_writing(calls, *reversed(results)) == []


SAID = [
    UserMessage("a"),
    AiMessage("a"),
    AiMessage("a", [ToolExecutionRequest(None, "find", "{}")]),
    AiMessage(None, [ToolExecutionRequest(None, "find", "{}")]),
    AiMessage(None),
    ToolExecutionResultMessage(None, None, "found"),
]


@given(st.lists(st.sampled_from(SAID), max_size=5))
def test_messages_that_are_read_otherwise_are_reported_as_lost(messages):
    rendered = render_messages(messages, "sharegpt")
    back = parse_messages(rendered.value, "sharegpt").messages
    assert rendered.losses or [shape(each) for each in back] == [shape(each) for each in messages]


def shape(message) -> tuple:
    """The kind of a message, its words and the number of its calls."""
    if isinstance(message, AiMessage):
        return message.type, message.text or "", len(message.tool_execution_requests)
    return message.type, text_of(message), 0
