from __future__ import annotations

import json

import pytest
from hypothesis import given
from langchain_core.documents import Document
from langchain_core.load import dumpd
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    HumanMessageChunk,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    messages_from_dict,
    messages_to_dict,
)

from chatmemory import AiMessage, ToolExecutionRequest, ToolExecutionResultMessage
from chatmemory.exceptions import UnreadableTranscript
from chatmemory.formats import parse_messages, parse_objects, read_transcripts, render_messages
from chatmemory.messages.message import with_attributes

from .random_conversations import conversations
from .test_difference import assert_edits_are_found

PNG = "iVBORw0KGgoAAAANSUhEUg=="
ARGUMENTS = {"city": "Paris in France", "days": 3}
RAW = '{"city":"Paris in France","days":3}'
USAGE = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
CALL = {"name": "find", "args": ARGUMENTS, "id": "c"}
TOOL_USE = {"type": "tool_use", "id": "c", "name": "find", "input": ARGUMENTS}
RAW_CALL = {"id": "c", "type": "function", "function": {"name": "find", "arguments": RAW}}
BROKEN = {"name": "find", "args": '{"city": "Par', "id": "b", "error": 'not: {"city": "Par!'}
SERVER = [
    {"type": "thinking", "thinking": "I should look", "signature": "s=="},
    {"type": "text", "text": "Let me look."},
    {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "the weather"}},
    {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"title": "It is sunny"}]},
    {"type": "text", "text": "It is sunny there."},
]
MCP = {"type": "mcp_call", "id": "m", "name": "look", "arguments": RAW, "output": "a long output"}
OBJECTS = [
    SystemMessage("You are brief."),
    SystemMessage([{"type": "text", "text": "a"}, {"type": "text", "text": "b", "cache": 1}]),
    HumanMessage("the weather, please", id="1", name="Ada"),
    HumanMessage([{"type": "text", "text": "see"}, "this"], example=True),
    HumanMessage([{"type": "image", "base64": PNG, "mime_type": "image/png"}]),
    HumanMessage([{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}]),
    HumanMessage([{"type": "image_url", "image_url": "https://example.org/a.png"}]),
    HumanMessage(
        [{"type": "image", "source": {"type": "base64", "data": PNG, "media_type": "a/b"}}]
    ),
    HumanMessage([{"type": "file", "file_id": "f"}, {"type": "audio", "base64": PNG}]),
    HumanMessage([{"type": "document", "source": {"type": "text", "data": "a plain text"}}]),
    HumanMessageChunk("a chunk"),
    ChatMessage("I disagree", role="critic"),
    AIMessage("sunny in Paris", usage_metadata=USAGE, response_metadata={"model_name": "m"}),
    AIMessage(
        [{"type": "text", "text": "one ", "annotations": []}, {"type": "text", "text": "two"}]
    ),
    AIMessage("", tool_calls=[CALL], additional_kwargs={"tool_calls": [RAW_CALL]}),
    AIMessage([{"type": "text", "text": "I look"}, TOOL_USE], tool_calls=[CALL]),
    AIMessage("", invalid_tool_calls=[BROKEN]),
    AIMessage("", additional_kwargs={"refusal": "I cannot do that"}),
    AIMessage("yes", additional_kwargs={"reasoning_content": "they want a yes"}),
    AIMessage("", additional_kwargs={"function_call": {"name": "find", "arguments": RAW}}),
    AIMessage([{"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm, so"}]}]),
    AIMessage([{"type": "reasoning", "reasoning": "hm, so"}, {"type": "text", "text": "sunny"}]),
    AIMessage([{"type": "image", "base64": PNG}]),
    AIMessage(SERVER, id="x"),
    AIMessage([*SERVER[:4], TOOL_USE], tool_calls=[CALL]),
    AIMessage([MCP, {"type": "text", "text": "so it is"}]),
    AIMessageChunk(
        "so", tool_call_chunks=[{"name": "find", "args": '{"ci', "id": "x", "index": 0}]
    ),
    ToolMessage("sunny in Paris", tool_call_id="c", name="find", artifact=[Document("of a page")]),
    ToolMessage([{"type": "text", "text": "no such city"}], tool_call_id="c", status="error"),
    ToolMessage('{"weather": "sunny in Paris"}', tool_call_id="c", id="9"),
    FunctionMessage("sunny in Paris", name="find"),
]


def bare(message):
    """Return a message as people write it by hand."""
    names = ("type", "content", "tool_call_id", "name", "role", "tool_calls", "status")
    return {name: value for name, value in message.model_dump().items() if name in names and value}


@given(conversations("langchain"))
def test_langchain_reads_what_is_written(messages):
    rendered = render_messages(messages, "langchain")
    read = messages_from_dict(rendered.value)
    back = parse_objects(read, "langchain")
    plain = [with_attributes(message, {}) for message in back.messages]
    assert (plain, rendered.losses, back.losses) == (messages, (), ())


@pytest.mark.parametrize(
    "dumped",
    [
        messages_to_dict,
        lambda messages: [message.model_dump(mode="json") for message in messages],
        lambda messages: [json.loads(json.dumps(dumpd(message))) for message in messages],
        lambda messages: [
            {
                "type": m.type,
                "content": m.content,
                **({"tool_call_id": m.tool_call_id} if m.type == "tool" else {}),
                **({"name": "f"} if m.type == "function" else {}),
                **({"role": "critic"} if m.type == "chat" else {}),
            }
            for m in messages
            if m.content
        ],
    ],
)
def test_dumps_of_langchain_come_back_unchanged(dumped):
    said = json.loads(json.dumps(dumped(OBJECTS), default=lambda page: page.model_dump()))
    for turn in said:
        followed = [turn, said[2]]
        read = parse_messages(followed, "langchain")
        rendered = render_messages(read.messages, "langchain")
        assert (rendered.value, read.losses, rendered.losses) == (followed, (), ())


def test_objects_come_back_equal():
    said = [m for m in OBJECTS if not getattr(m, "artifact", None)]
    read = parse_objects(said, "langchain")
    assert messages_from_dict(render_messages(read.messages, "langchain").value) == said
    state = parse_objects({"messages": said, "todos": ["x"]}, "langchain")
    assert state.messages == read.messages
    assert [loss.what for loss in state.losses] == ["the property 'todos'"]


@pytest.mark.parametrize("said", OBJECTS, ids=lambda said: said.type)
@pytest.mark.parametrize("dump", [lambda m: messages_to_dict([m])[0], lambda m: m.model_dump()])
def test_edits_are_found_and_attributes_repeat_no_text(said, dump):
    said = json.loads(json.dumps(dump(said), default=lambda page: page.model_dump()))
    assert_edits_are_found(parse_messages([said], "langchain").messages, "langchain")


def test_tools_that_the_provider_runs_are_calls_results_and_what_follows():
    read = parse_messages(messages_to_dict([AIMessage(SERVER)]), "langchain").messages
    called, result, said = (with_attributes(message, {}) for message in read)
    request = ToolExecutionRequest("s", "web_search", '{"query": "the weather"}')
    assert called == AiMessage("Let me look.", [request], "I should look")
    found = '[{"title": "It is sunny"}]'
    assert result == ToolExecutionResultMessage("s", "web_search", found)
    assert said == AiMessage("It is sunny there.")
    alone = render_messages(read[2:], "langchain").value
    assert messages_from_dict(alone) == [AIMessage([SERVER[-1]])]


def test_arguments_are_as_the_model_wrote_them():
    (read,) = parse_objects(OBJECTS[14], "langchain").messages
    assert read.tool_execution_requests == (ToolExecutionRequest("c", "find", RAW),)
    (broken,) = parse_objects(OBJECTS[16], "langchain").messages
    assert broken.tool_execution_requests[0].arguments == BROKEN["args"]


def test_calls_without_arguments_or_ids_are_written_so_that_langchain_reads_them():
    requests = [ToolExecutionRequest(None, "a"), ToolExecutionRequest(None, "b", "[1]")]
    said = [AiMessage(None, requests), ToolExecutionResultMessage(None, None, "x", True)]
    called, result = messages_from_dict(render_messages(said, "langchain").value)
    assert called.tool_calls == [{"name": "a", "args": {}, "id": "call_1", "type": "tool_call"}]
    assert [call["args"] for call in called.invalid_tool_calls] == ["[1]"]
    assert (result.tool_call_id, result.name, result.status) == ("call_1", "a", "error")


def test_an_artifact_that_is_no_json_leaves_a_word_in_its_place():
    message = ToolMessage("x", tool_call_id="c", artifact={"frame": object()})
    (back,) = render_messages(parse_objects(message, "langchain").messages, "langchain").value
    assert back["data"]["artifact"] == {"frame": "[object]"}


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (messages_to_dict([RemoveMessage("a")])[0], "a remove message has no text"),
        ({"type": "robot", "content": "x"}, "unknown type 'robot'"),
        ({"type": ["human"], "content": "x"}, "unknown type"),
        ({"type": "human"}, "content must be a string or a list"),
        ({"type": "human", "content": []}, "content must be a string or a list"),
        ({"type": "human", "data": {"content": [{"type": "x"}]}}, "blocks of type 'x'"),
        ({"type": "ai", "content": [{"type": "x"}]}, "blocks of type 'x'"),
        ({"type": "ai", "content": 5}, "content must be a string"),
        ({"type": "ai", "content": "", "additional_kwargs": 5}, "must be an object"),
        ({"type": "tool", "tool_call_id": "c"}, "content must be a string or a list"),
        ("x", "must be a JSON object"),
    ],
)
def test_a_malformed_message_is_refused_with_its_place(message, why):
    with pytest.raises(UnreadableTranscript, match=why) as caught:
        parse_messages([{"type": "human", "content": "x"}, message], "langchain")
    assert caught.value.index == 1


@pytest.mark.parametrize(
    ("value", "is_found"),
    [
        ([{"type": "human", "content": "x"}], True),
        ([{"type": "human", "data": {"content": "x"}}], True),
        ([dumpd(HumanMessage("x"))], True),
        ({"values": {"messages": [{"type": "system", "content": "x"}]}, "next": []}, True),
        ([{"type": "chat", "role": "critic", "content": "x"}], True),
        ([{"type": "message", "role": "user", "content": "x"}], False),
        ([{"type": "tool", "content": "x"}], False),
        ([{"type": "human", "text": "x"}], False),
        ([{"type": "human", "role": "user", "content": "x"}], False),
    ],
)
def test_messages_are_found_by_what_they_need(value, is_found):
    try:
        assert (read_transcripts(json.dumps(value)).format == "langchain") == is_found
    except UnreadableTranscript:
        assert not is_found
