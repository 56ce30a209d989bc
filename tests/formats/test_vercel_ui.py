from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import (
    AiMessage,
    AudioContent,
    ImageContent,
    PdfFileContent,
    TextContent,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    VideoContent,
)
from chatmemory.exceptions import UnreadableTranscript
from chatmemory.formats import parse_messages, read_transcripts, render_messages
from chatmemory.messages.contents import Audio, DetailLevel, Image, PdfFile, Video
from chatmemory.messages.message import with_attributes

START = {"type": "step-start"}


def text(words: str, **more: object) -> dict:
    return {"type": "text", "text": words, **more}


def tool(id: str, state: str = "output-available", **more: object) -> dict:
    made = {"type": "tool-find", "toolCallId": id, "state": state, "input": {"q": id}}
    return made | ({"output": {"found": 3}} if state == "output-available" else {}) | more


def message(role: str, *parts: dict, **more: object) -> dict:
    return {"id": "m-1", "role": role, "parts": list(parts), **more}


def ai(*parts: dict, **more: object) -> dict:
    return message("assistant", *parts, **more)


def parse(*messages: dict):
    return parse_messages(list(messages), "vercel_ui")


def render(*messages):
    return render_messages(messages, "vercel_ui")


# Reading


def test_each_step_of_an_answer_is_a_message_with_its_results():
    answer = ai(
        START,
        {"type": "reasoning", "text": "hm"},
        text("I look"),
        tool("a"),
        tool("b", "output-error", errorText="no"),
        START,
        text("Found"),
    )
    calls = [ToolExecutionRequest(id, "find", f'{{"q": "{id}"}}') for id in ("a", "b")]
    assert [with_attributes(each, {}) for each in parse(answer).messages] == [
        AiMessage("I look", calls, "hm"),
        ToolExecutionResultMessage("a", "find", '{"found": 3}'),
        ToolExecutionResultMessage("b", "find", "no", True),
        AiMessage("Found"),
    ]


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ([text("a"), text("b")], ["a\nb"]),
        ([text("a"), tool("x", providerExecuted=True), text("b")], ["a", "b"]),
        ([text("a"), tool("x", "input-available"), text("b")], ["a\nb"]),
        ([START, text("a"), START, text("b")], ["a", "b"]),
        ([START, START, text("a")], ["a"]),
        ([], [None]),
        ([START], [None]),
        ([{"type": "data-chart", "data": {}}], ["[data-chart]"]),
        ([START, {"type": "file", "mediaType": "a/b", "filename": "c", "url": "u"}], ["[file c]"]),
        ([{"type": "source-url", "sourceId": "s", "url": "u"}, text("a")], ["a"]),
    ],
)
def test_texts_of_an_answer(parts, said):
    read = parse(ai(*parts)).messages
    assert [each.text for each in read if isinstance(each, AiMessage)] == said


@pytest.mark.parametrize(
    ("part", "result"),
    [
        (tool("a", output="as it is"), ("as it is", None)),
        (tool("a", output=None), ("null", None)),
        (tool("a", output=["ü", 1]), ('["ü", 1]', None)),
        (tool("a", "output-error"), ("", True)),
        (tool("a", "output-denied"), ("Tool execution denied.", True)),
        (
            tool("a", "output-denied", approval={"id": "x", "approved": False, "reason": "no!"}),
            ("no!", True),
        ),
    ],
)
def test_outputs_are_results(part, result):
    read = parse(ai(part)).messages[1]
    assert (read.contents[0].text, read.is_error) == result


@pytest.mark.parametrize("state", ["input-streaming", "input-available", "approval-requested"])
def test_a_call_may_wait_for_its_result(state):
    (read,) = parse(ai(tool("a", state))).messages
    assert [call.id for call in read.tool_execution_requests] == ["a"]


@pytest.mark.parametrize(
    ("file", "content"),
    [
        (
            {"mediaType": "image/png", "url": "data:image/png;base64,QQ=="},
            ImageContent(Image(None, "QQ==", "image/png"), DetailLevel.AUTO),
        ),
        ({"mediaType": "image/*", "url": "u"}, ImageContent(Image("u"), DetailLevel.AUTO)),
        ({"mediaType": "audio/mpeg", "url": "u"}, AudioContent(Audio("u", None, "audio/mpeg"))),
        ({"mediaType": "video/mp4", "url": "u"}, VideoContent(Video("u", None, "video/mp4"))),
        ({"mediaType": "application/pdf", "url": "u"}, PdfFileContent(PdfFile("u"))),
        ({"mediaType": "text/csv", "url": "u", "filename": "a.csv"}, TextContent("[file a.csv]")),
    ],
)
def test_files_are_contents(file, content):
    said = message("user", text("see"), {"type": "file", **file})
    (read,) = parse(said).messages
    assert read.contents == (TextContent("see"), content)
    assert render(read).value == [said]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"role": "user"}, "parts must be a list"),
        (message("user"), "parts is empty"),
        (message("robot", text("a")), "unknown role 'robot': use one of system, user, assistant"),
        (ai(text(5)), "text must be a string"),
        (ai(tool("")), "needs the field toolCallId"),
        (ai({"type": "dynamic-tool", "toolCallId": "a", "toolName": 5}), "toolName must be"),
        (ai(tool("a", "output-error", errorText={})), "errorText must be a string"),
        (ai("x"), "a part must be an object"),
        (message("user", {"type": "file", "mediaType": "image/png", "url": "a b"}), "Illegal"),
        ({"role": "assistant", "content": "", "toolInvocations": 5}, "must be a list"),
    ],
)
def test_a_malformed_message_is_refused_with_its_place(said, why):
    with pytest.raises(UnreadableTranscript, match=why) as caught:
        parse(message("user", text("a")), said)
    assert caught.value.index == 1


def test_messages_of_ai_sdk_4_are_written_as_those_of_today():
    call = {"state": "result", "toolCallId": "a", "toolName": "find", "args": {}, "result": "x"}
    open_call = {"state": "call", "toolCallId": "b", "toolName": "find", "args": {}}
    before = [
        {"id": "1", "role": "user", "content": "hi", "parts": [text("hi")]},
        {
            "id": "2",
            "role": "assistant",
            "content": "found",
            "parts": [
                {"type": "reasoning", "reasoning": "hm"},
                {"type": "tool-invocation", "toolInvocation": call},
                START,
                text("found"),
                {"type": "file", "mimeType": "a/b", "data": "QQ=="},
            ],
        },
        {"id": "3", "role": "assistant", "content": "more", "toolInvocations": [call, open_call]},
        {
            "id": "4",
            "role": "user",
            "content": "",
            "experimental_attachments": [{"name": "n", "contentType": "image/png", "url": "u"}],
        },
    ]
    found, waits = (
        {"type": "dynamic-tool", "toolName": "find", "toolCallId": id, "state": state, "input": {}}
        for id, state in (("a", "output-available"), ("b", "input-available"))
    )
    image = {"type": "file", "filename": "n", "mediaType": "image/png", "url": "u"}
    reading = read_transcripts(json.dumps(before))
    assert (reading.format, reading.refused) == ("vercel_ui", ())
    assert render(*reading.transcripts[0].messages).value == [
        {"id": "1", "role": "user", "parts": [text("hi")]},
        {
            "id": "2",
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "text": "hm"},
                {**found, "output": "x"},
                START,
                text("found"),
                {"type": "file", "mediaType": "a/b", "url": "data:a/b;base64,QQ=="},
            ],
        },
        {
            "id": "3",
            "role": "assistant",
            "parts": [{**found, "output": "x"}, waits, text("more")],
        },
        {"id": "4", "role": "user", "parts": [image]},
    ]


# Writing

words = st.text(max_size=20)


more = st.dictionaries(st.sampled_from(["state", "providerMetadata"]), words | st.none())
texts = st.builds(
    lambda kind, text, more: {"type": kind, "text": text} | more,
    st.sampled_from(["text", "reasoning"]),
    words,
    more,
)
others = st.sampled_from(
    [
        START,
        {"type": "data-note", "data": {"text": "a"}},
        {"type": "source-url", "sourceId": "s", "url": "https://example.org"},
        {"type": "file", "mediaType": "image/png", "url": "https://example.org/a.png"},
        {"type": "new-part", "text": "a"},
    ]
)
json_values = st.none() | words | st.just([]) | st.just({"a": ["b", 1]}) | st.integers()
tools = st.builds(
    lambda call, name, given_as, given, state, more: (
        {**name, "toolCallId": call, given_as: given} | state | more
    ),
    st.uuids().map(str),
    st.sampled_from([{"type": "tool-find"}, {"type": "dynamic-tool", "toolName": "find"}]),
    st.sampled_from(["input", "rawInput", "title"]),
    json_values,
    st.sampled_from(["output-available", "input-streaming", "approval-requested"]).map(
        lambda state: {"state": state}
    )
    | st.builds(lambda value: {"state": "output-available", "output": value}, json_values)
    | st.builds(lambda why: {"state": "output-error", "errorText": why}, words)
    | st.builds(
        lambda why: {"state": "output-denied", "approval": {"id": "x", "reason": why}}, words
    ),
    st.dictionaries(st.sampled_from(["callProviderMetadata", "preliminary", "title"]), words),
)
said = st.builds(
    lambda role, parts, more: {"role": role, "parts": parts} | more,
    st.sampled_from(["user", "assistant", "assistant", "system"]),
    st.lists(texts | tools | others, max_size=6),
    st.dictionaries(st.sampled_from(["metadata"]), json_values),
)


def is_sayable(message: dict) -> bool:
    words = [part["text"] for part in message["parts"] if part["type"] == "text"]
    return message["role"] == "assistant" or (
        bool(message["parts"])
        if message["role"] == "user"
        else any(character > " " for each in words for character in each)
    )


@given(st.lists(said.filter(is_sayable), max_size=4))
def test_what_was_said_comes_back(messages):
    messages = [{"id": f"m-{n}", **each} for n, each in enumerate(messages)]
    read = parse(*messages)
    assert (render(*read.messages).value, read.losses) == (messages, ())


def test_messages_from_elsewhere_get_ids_and_parts_that_the_sdk_takes():
    call = ToolExecutionRequest("a", "find", '{"q":1}')
    result = ToolExecutionResultMessage("a", "find", "x")
    value = render(UserMessage("hi"), AiMessage(None, [call]), result, AiMessage("found")).value
    user, answer = value
    assert user["id"] != answer["id"]
    assert answer["parts"] == [tool("a", input={"q": 1}, output="x"), START, text("found")]
    assert [each["parts"] for each in render(AiMessage(None)).value] == [[START]]


def test_calls_without_ids_are_written_with_ids_that_are_free():
    calls = [ToolExecutionRequest(id, "find", '{"q": 1}') for id in (None, "call_1")]
    results = [ToolExecutionResultMessage(id, "find", id or "x") for id in (None, "call_1")]
    (answer,) = render(AiMessage(None, calls), *results).value
    assert [(part["toolCallId"], part["output"]) for part in answer["parts"]] == [
        ("call_2", "x"),
        ("call_1", "call_1"),
    ]


def test_an_edit_after_reading_is_found():
    said = ai(
        START,
        text("a long text", state="done"),
        tool("a", input={"secret": 1}, rawInput='{"secret": 1}', output={"secret": "1234"}),
        tool("b", "output-denied", approval={"reason": "a secret reason"}),
    )
    spoken, *results = parse(said).messages
    assert "secret" not in str([each.attributes for each in (spoken, *results)])
    edited = [
        ToolExecutionResultMessage(each.id, "find", "[gone]", each.is_error) for each in results
    ]
    changed = [
        with_attributes(new, old.attributes) for new, old in zip(edited, results, strict=True)
    ]
    call = ToolExecutionRequest("a", "find", '{"q": 2}')
    asked = AiMessage(spoken.text, [call, spoken.tool_execution_requests[1]])
    (value,) = render(with_attributes(asked, spoken.attributes), *changed).value
    assert "secret" not in json.dumps(value)
    edited = {"input": {"q": 2}, "rawInput": '{"q": 2}', "output": "[gone]"}
    assert value["parts"][2] == said["parts"][2] | edited
    assert json.dumps(value).count("[gone]") == 2
