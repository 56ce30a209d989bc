from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from hypothesis import given

from chatmemory import (
    AiMessage,
    ImageContent,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
)
from chatmemory.exceptions import UnreadableTranscript
from chatmemory.formats import parse_messages, parse_objects, render_messages
from chatmemory.messages.contents import DetailLevel, Image
from chatmemory.messages.message import with_attributes

from .random_conversations import conversations

PDF = "data:application/pdf;base64,QQ=="


def parse(*messages):
    return parse_messages(list(messages), "openai_chat")


def calling(*functions, **properties):
    return {"role": "assistant", "content": None, "tool_calls": list(functions), **properties}


def call(name, **properties):
    return {"function": {"name": name, "arguments": "{}"}, **properties}


SPOKE = {"role": "user", "content": "never mind"}


def answer(**properties):
    return {"role": "tool", "content": "found", **properties}


@pytest.mark.parametrize(
    ("turns", "answers"),
    [
        # What answers a call without an id: in order, and none from before the user spoke
        ([calling(call("find"), call("pay")), answer(), answer()], ["call_1 find", "call_2 pay"]),
        ([calling(call("find"), call("pay", id="call_1")), answer()], ["call_2 find"]),
        ([calling(call("find")), SPOKE, calling(call("pay")), answer()], ["call_2 pay"]),
        ([calling(call("find", id="a")), SPOKE, answer(tool_call_id="a")], ["a find"]),
        ([answer(tool_call_id="a", name="find")], ["a find"]),
        ([answer(name="find")], ["None find"]),
    ],
)
def test_results_answer_calls(turns, answers):
    results = [m for m in parse(*turns).messages if isinstance(m, ToolExecutionResultMessage)]
    assert [f"{result.id} {result.tool_name}" for result in results] == answers


def test_calls_without_ids_are_written_with_ids_that_their_results_name():
    request = ToolExecutionRequest(None, "find", "{}")
    calls, result = render_messages(
        [AiMessage(None, (request,)), ToolExecutionResultMessage(None, "find", "found")],
        "openai_chat",
    ).value
    assert calls["tool_calls"][0]["id"] == result["tool_call_id"] == "call_1"
    alone = ToolExecutionResultMessage("a", "find", "found")
    assert parse(*render_messages([alone], "openai_chat").value).messages == (alone,)


def user(*parts: dict | str) -> dict:
    content = [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts]
    return {"role": "user", "content": content}


def ai(content: object = None, **properties: object) -> dict:
    return {"role": "assistant", "content": content, **properties}


def image(url: object, **properties: object) -> dict:
    return {"type": "image_url", "image_url": {"url": url, **properties}}


def parts_of(*types: str) -> list[dict]:
    return [{"type": type, "text": "hi"} for type in types]


CUSTOM = {"id": "c", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}


@pytest.mark.parametrize(
    "message",
    [
        {**user("x"), "cache_control": {"a": 1}},
        {"role": "developer", "content": "x"},
        {"role": "system", "content": [{"type": "text", "text": "x", "cache_control": {"a": 1}}]},
        ai("x", name="Bob"),
        ai("x", audio={"id": "a"}),
        ai("x", refusal="no"),
        ai(refusal="no"),
        ai([{"type": "refusal", "refusal": "no"}]),
        ai(parts_of("text", "text")),
        ai("x", annotations=[], weight=None),
        ai(None, tool_calls=[call("find", id="a", index=0), CUSTOM]),
        ai(reasoning_content="hm", tool_calls=[call("find", id="a")]),
        ai(function_call={"name": "f", "arguments": "{}"}),
        {"role": "assistant", "tool_calls": [CUSTOM]},
        user("x", {"type": "file", "file": {"file_id": "f"}}),
        user({"type": "file", "file": {"file_id": "f"}}),
        user({"type": "file", "file": {"filename": "a", "file_data": PDF}}),
        user({"type": "document_url", "document_url": "https://example.org/a.pdf"}),
        user(image("u", detail="x")),
        user("x", {"type": "reference", "reference_ids": [1]}),
        answer(content=None, tool_call_id="a"),
        answer(content=parts_of("text", "text"), tool_call_id="a"),
    ],
)
def test_details_beyond_the_model_come_back(message):
    said = [message, {"role": "user", "content": [{"type": "text", "text": "and then?"}]}]
    read = parse(*said)
    rendered = render_messages(read.messages, "openai_chat")
    assert (rendered.value, read.losses, rendered.losses) == (said, (), ())


def test_a_completion_is_its_message_with_its_details():
    usage = {"prompt_tokens": 3, "completion_tokens": 1}
    choices = [{"index": 0, "finish_reason": "stop", "message": ai("hi")}, {"message": ai("ho")}]
    completion = {"id": "chatcmpl-1", "model": "m", "choices": choices, "usage": usage}
    read = parse_objects(completion, "openai_chat")
    (message,) = read.messages
    response = {"id": "chatcmpl-1", "model": "m", "usage": usage, "finish_reason": "stop"}
    assert message == AiMessage("hi", attributes={"openai_chat": {"response": response}})
    assert [loss.what for loss in read.losses] == ["1 other choices"]
    assert render_messages(read.messages, "openai_chat").value == [ai("hi")]


@cache
def accepted() -> Any:
    pydantic = pytest.importorskip("pydantic")
    chat = pytest.importorskip("openai.types.chat")
    return pydantic.TypeAdapter(chat.ChatCompletionMessageParam)


@given(conversations("openai_chat"))
def test_openai_accepts_what_is_written(messages):
    for value in render_messages(messages, "openai_chat").value:
        accepted().validate_python(value, strict=True)


def test_objects_of_the_library_are_read():
    chat = pytest.importorskip("openai.types.chat")
    called = ai(None, tool_calls=[{**call("find", id="a"), "type": "function"}])
    choices = [{"index": 0, "finish_reason": "tool_calls", "message": called}]
    about = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m"}
    completion = chat.ChatCompletion.model_validate({**about, "choices": choices})
    for values in (completion, completion.choices[0].message, [completion.choices[0].message]):
        read = parse_objects(values, "openai_chat")
        assert render_messages(read.messages, "openai_chat").value == [called]
    (message,) = parse_objects(completion, "openai_chat").messages
    assert message.attributes["openai_chat"]["response"]["finish_reason"] == "tool_calls"


def _deep(levels: int) -> list:
    value: list = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (user({"type": "input_audio", "input_audio": "x"}), "input_audio must be an object"),
        (user({"type": "input_audio", "input_audio": {"data": 5}}), "data must be a string"),
        (user({"type": "file", "file": "x"}), "file must be an object"),
        (user({"type": "image_url"}), "an image needs the field url"),
        (user(image(5)), "the url of an image must be a string"),
        ({"role": ["user"]}, "unknown role"),
        (ai(function_call="auto"), "function_call must be an object"),
        (calling({"function": {"name": "f", "arguments": _deep(10_000)}}), "nested too deeply"),
        # Turns of which nothing can be read
        ({"role": "user"}, "content is missing"),
        ({"role": "user", "content": None}, "content is missing"),
        (user(), "content is missing"),
        ({"role": "system"}, "content is missing"),
        ({"role": "assistant"}, "content is missing"),
        ({"role": "tool", "tool_call_id": "a"}, "content is missing"),
        ({"role": "user", "parts": parts_of("text")}, "`parts` are of another format"),
        (ai(None, parts=parts_of("text")), "`parts` are of another"),
        (ai("", parts=parts_of("text")), "`parts` are of another"),
        (user(*parts_of("input_thing")), "parts of type 'input_thing'"),
        ({"role": "system", "content": parts_of("input_thing")}, "parts of type 'input_thing'"),
        (ai(parts_of("tool_use")), "parts of type 'tool_use'"),
        ({"role": "tool", "content": parts_of("tool_result")}, "parts of type 'tool_result'"),
    ],
)
def test_a_malformed_message_is_refused_with_its_place(message, why):
    with pytest.raises(UnreadableTranscript, match=why) as caught:
        parse(SPOKE, message)
    assert caught.value.index == 1


@pytest.mark.parametrize(
    ("turn", "message"),
    [
        ({"role": "user", "content": ""}, UserMessage("")),
        ({"role": "developer", "content": "x"}, SystemMessage("x")),
        (
            user({"type": "image_url", "image_url": "data:a/b;base64,Q"}),
            UserMessage([ImageContent(Image(None, "Q", "a/b"), DetailLevel.AUTO)]),
        ),
        (
            ai(function_call={"name": "f", "arguments": "{}"}),
            AiMessage(None, [ToolExecutionRequest("call_1", "f", "{}")]),
        ),
        ({"role": "assistant", "content": None}, AiMessage(None)),
        ({"role": "assistant", "reasoning_content": "hm"}, AiMessage(None, (), "hm")),
        (
            ai(parts_of("thinking"), tool_calls=[call("find")]),
            AiMessage(None, [ToolExecutionRequest("call_1", "find", "{}")]),
        ),
        ({"role": "tool", "content": None}, ToolExecutionResultMessage(None, None, "")),
        ({"role": "tool", "content": []}, ToolExecutionResultMessage(None, None, "")),
        ({"role": "user", "content": parts_of("input_thing", "text")}, UserMessage("hi")),
    ],
)
def test_a_turn_that_says_something_or_says_that_it_is_empty_is_read(turn, message):
    (read,) = parse(turn).messages
    attributes = {} if isinstance(read, SystemMessage) else read.attributes
    assert read == with_attributes(message, attributes)
