from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import (
    AiMessage,
    CustomMessage,
    ImageContent,
    PdfFileContent,
    SystemMessage,
    TextContent,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
)
from chatmemory.exceptions import UnreadableTranscript
from chatmemory.formats import (
    FORMATS,
    parse_messages,
    parse_objects,
    read_transcripts,
    render_messages,
)
from chatmemory.messages.contents import Image, PdfFile
from chatmemory.messages.message import text_of, with_attributes

NONE = json.dumps({})


def parse(*turns):
    return parse_messages(list(turns), "anthropic")


def render(*messages):
    return render_messages(messages, "anthropic")


def user(*blocks: dict | str) -> dict:
    return {"role": "user", "content": [text(b) if isinstance(b, str) else b for b in blocks]}


def ai(*blocks: dict | str) -> dict:
    return {**user(*blocks), "role": "assistant"}


def text(said: str, **properties: object) -> dict:
    return {"type": "text", "text": said, **properties}


def call(id="a", name="find", type="tool_use", **properties):
    return {"type": type, "id": id, "name": name, "input": {"what": "a key"}, **properties}


def result(content="found", id="a", type="tool_result", **properties):
    return {"type": type, "tool_use_id": id, "content": content, **properties}


def thinking(said="hm", signature="c2ln"):
    return {"type": "thinking", "thinking": said, "signature": signature}


def document(**source: object) -> dict:
    return {"type": "document", "source": source}


FOUND = {"type": "code_result", "stdout": "as said", "content": [{"type": "file", "file_id": "f"}]}
PAGES = [{"type": "page", "title": "A page", "url": "u", "encrypted_content": "b3BhcXVl"}]
SEARCHED = ai(
    thinking(),
    "I look.",
    call("s", "web_search", "server_tool_use"),
    result(PAGES, "s", "web_search_tool_result"),
    text("It says so.", citations=[{"type": "c", "cited_text": "so"}]),
)
ASKED = ai(
    call("m", "ask", "mcp_tool_use", server_name="wiki"),
    result([text("an answer", citations=None)], "m", "mcp_tool_result", is_error=False),
    thinking(""),
    "So it is.",
    call("t", "find"),
)


said_blocks = st.sampled_from(
    [
        *(text("x"), text("", mark=1), text("y", cache_control={"type": "ephemeral"})),
        {"type": "image", "source": {"type": "url", "url": "https://example.org/a"}},
        {"type": "image", "source": {"type": "file", "file_id": "f"}},
        document(type="base64", media_type="application/pdf", data="QQ=="),
        {**document(type="text", media_type="text/plain", data="a text"), "title": "t"},
        document(type="content", content=[text("a"), text("b")]),
        document(type="content", content="a string"),
        {"type": "search_result", "source": "u", "title": "t", "content": [text("x")]},
        {"type": "container_upload", "file_id": "f"},
        {"type": "unheard_of", "text": "x"},
        *(result(), result([text("x")]), result([]), result("", is_error=True), result(None)),
        *(result([{"type": "tool_reference", "tool_name": "find"}]), result([{"type": "new"}])),
        {"type": "tool_result", "tool_use_id": "a"},
    ]
)
model_blocks = st.sampled_from(
    [
        *(text("x"), text("y", citations=None), text(""), thinking(), thinking("")),
        {"type": "redacted_thinking", "data": "b3BhcXVl"},
        *(call(), call("b", caller={"type": "direct"}), {"type": "tool_use", "name": "f"}),
        {"type": "compaction", "content": "a summary"},
        {"type": "unheard_of", "text": "x"},
        *(SEARCHED["content"] + ASKED["content"]),
        call("c", "code", "server_tool_use"),
        result(FOUND, "c", "code_tool_result"),
        result({"type": "code_tool_result_error", "error_code": "e"}, "c", "code_tool_result"),
        result("a string", "c", "code_tool_result"),
    ]
)
said_turns = st.one_of(
    st.builds(lambda blocks: user("x", *blocks), st.lists(said_blocks, max_size=4)),
    st.builds(lambda blocks: user(result(), *blocks), st.lists(said_blocks, max_size=4)),
    st.builds(lambda blocks: ai(*blocks), st.lists(model_blocks, max_size=6)).filter(
        lambda turn: turn["content"] != [{"type": "unheard_of", "text": "x"}] * len(turn["content"])
    ),
    st.sampled_from(
        [
            *({"role": role, "content": "x"} for role in ("user", "assistant", "system")),
            {"role": "assistant", "content": ""},
            {**ai("x"), "id": "msg_1", "model": "m"},
            {"role": "system", "content": [text("x", cache_control=None), {"type": "new"}]},
            {"role": "system", "content": [{"type": "tool_addition", "tool": {"name": "find"}}]},
        ]
    ),
)


@given(st.lists(said_turns, min_size=1, max_size=4))
def test_what_was_said_comes_back(turns):
    read = parse(*turns)
    rendered = render(*read.messages)
    assert (rendered.value, read.losses, rendered.losses) == ({"messages": turns}, (), ())


def test_recorded_answers_come_back(data_file):
    recorded = json.loads(data_file("provider_exchanges.json").read_text())
    accepted = [r for r in recorded if r["format"] == "anthropic-messages" and r["status"] == 200]
    for answer in (each["response"] for each in accepted):
        (read,) = parse_objects(answer, "anthropic").messages[:1]
        assert read.attributes["anthropic"]["response"]["stop_reason"] == answer["stop_reason"]
        said = [{"role": "assistant", "content": answer["content"]}]
        messages = parse_objects(answer, "anthropic").messages
        assert render(*messages).value == {"messages": said}


def test_results_and_words_of_a_turn_are_messages_of_their_own():
    turns = [ai(call("a"), call("b")), user(result("1", "a"), result("2", "b"), "and now?")]
    messages = parse(*turns).messages
    assert [(m.type, text_of(m)) for m in messages[1:]] == [
        ("TOOL_EXECUTION_RESULT", "1"),
        ("TOOL_EXECUTION_RESULT", "2"),
        ("USER", "and now?"),
    ]
    assert [m.tool_name for m in messages[1:3]] == ["find", "find"]


def test_a_servers_tool_is_a_call_its_result_and_the_words_after_it():
    call, result, words = parse(SEARCHED).messages
    assert (call.text, call.thinking) == ("I look.", "hm")
    assert call.tool_execution_requests == (
        ToolExecutionRequest("s", "web_search", '{"what": "a key"}'),
    )
    assert (result.id, result.tool_name) == ("s", "web_search")
    assert json.loads(text_of(result)) == [{"type": "page", "title": "A page", "url": "u"}]
    assert words.text == "It says so."
    _, answer, after = parse(ASKED).messages
    assert (text_of(answer), answer.is_error) == ("an answer", False)
    assert (after.text, after.tool_execution_requests[0].id) == ("So it is.", "t")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([{"type": "tool_reference", "tool_name": "find"}], "[tool find]"),
        ([{"type": "unheard_of"}], "[unheard_of]"),
        ([], ""),
        (None, ""),
    ],
)
def test_a_result_that_is_not_a_text_becomes_a_text(content, text):
    (read,) = parse(user(result(content))).messages
    assert text_of(read) == text


def test_an_error_of_a_servers_tool_is_one():
    error = {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}
    (read,) = parse(ai(result(error, "s", "web_search_tool_result"))).messages
    assert read.is_error


def test_edits_of_a_servers_tool_are_found():
    call, result, words = parse(SEARCHED).messages
    (asked,) = call.tool_execution_requests
    call = AiMessage("I see.", [replace(asked, arguments='{"of": 1}')], "hm", call.attributes)
    pages = [{"type": "page", "title": "Another", "url": "u"}]
    result = ToolExecutionResultMessage("s", None, json.dumps(pages), None, result.attributes)
    words = AiMessage("It does not.", (), None, words.attributes)
    (turn,) = render(call, result, words).value["messages"]
    said = SEARCHED["content"]
    assert turn["content"][:4] == [
        said[0],
        text("I see."),
        {**said[2], "input": {"of": 1}},
        {**said[3], "content": [{**PAGES[0], "title": "Another"}]},
    ]
    assert turn["content"][4]["text"] == "It does not."


def test_a_servers_result_that_was_edited_to_no_json_is_text():
    call, result, _ = parse(SEARCHED).messages
    result = ToolExecutionResultMessage("s", None, "gone", None, result.attributes)
    (turn,) = render(call, result).value["messages"]
    assert turn["content"][-1]["content"] == "gone"


def test_results_in_a_row_are_written_as_one_turn():
    asked = AiMessage(None, [ToolExecutionRequest(None, "f", "{}")] * 2)
    one, two = (ToolExecutionResultMessage(None, "f", said) for said in ("1", ""))
    turns = render(asked, one, two, UserMessage("and?")).value["messages"]
    blocks = [result([text("1")], "call_1"), {"type": "tool_result", "tool_use_id": "call_2"}]
    assert turns[1:] == [user(*blocks), user("and?")]


def test_results_in_turns_of_their_own_stay_apart():
    turns = [ai(call("a"), call("b")), user(result([text("1")], "a")), user(result([], "b"))]
    assert render(*parse(*turns).messages).value["messages"] == turns


def test_messages_join_only_what_is_there_still():
    words = parse(SEARCHED).messages[-1]
    assert render(UserMessage("x"), words).value["messages"] == [
        user("x"),
        ai(SEARCHED["content"][-1]),
    ]


def test_an_answer_is_its_message_with_its_details():
    usage = {"input_tokens": 3, "output_tokens": 1}
    answer = {"id": "msg_1", "type": "message", **ai("hi"), "model": "m", "stop_sequence": None}
    read = parse_objects({**answer, "stop_reason": "end_turn", "usage": usage}, "anthropic")
    about = {"id": "msg_1", "model": "m", "stop_reason": "end_turn", "usage": usage}
    assert read.messages == (AiMessage("hi", attributes={"anthropic": {"response": about}}),)
    assert render(*read.messages).value == {"messages": [ai("hi")]}


# What stands beside, and what cannot be said


def test_other_properties_of_a_request_are_losses():
    request = {"id": "c", "model": "m", "max_tokens": 9, "system": "s", "messages": [user("x")]}
    read = parse_objects(request, "anthropic")
    assert [loss.what for loss in read.losses] == [
        "the property 'model'",
        "the property 'max_tokens'",
    ]
    (transcript,) = read_transcripts(json.dumps(request)).transcripts
    assert (transcript.name, transcript.messages) == ("c", read.messages)


def test_a_system_message_in_the_middle_loses_its_place_and_keeps_its_text():
    said = [SystemMessage("one"), UserMessage("x"), SystemMessage("two")]
    rendered = render(*said)
    assert rendered.value == {"system": [text("one"), text("two")], "messages": [user("x")]}
    assert [(loss.where, loss.what) for loss in rendered.losses] == [
        ("message 3", "the place of a system message: its text is in `system`")
    ]
    assert render(*said[1:]).value == {"system": "two", "messages": [user("x")]}


def test_a_system_prompt_in_parts_keeps_its_marks():
    beside = [text("one", cache_control={"type": "ephemeral"}), text("two")]
    read = parse_objects({"system": beside, "messages": [user("x")]}, "anthropic")
    assert read.messages[0] == SystemMessage("one\ntwo")
    assert render(*read.messages).value["system"] == beside
    edited = with_attributes(SystemMessage("three"), read.messages[0].attributes)
    edited_parts = [text("three", cache_control={"type": "ephemeral"})]
    assert render(edited, read.messages[1]).value["system"] == edited_parts


def test_a_system_turn_that_changes_the_tools_does_not_replace_the_system_message():
    change = {"role": "system", "content": [{"type": "tool_addition", "tool": {"name": "find"}}]}
    (read,) = parse(change).messages
    assert isinstance(read, CustomMessage)
    (spoken,) = parse({"role": "system", "content": "Be brief."}).messages
    assert spoken == SystemMessage("Be brief.")


@pytest.mark.parametrize(
    ("arguments", "input"),
    [(None, {}), ("", {}), ('{"a": 1}', {"a": 1}), ("[1]", {"INVALID_JSON": "[1]"})],
)
def test_arguments_are_written_as_an_object(arguments, input):
    rendered = render(AiMessage(None, [ToolExecutionRequest("a", "f", arguments)]))
    assert rendered.value["messages"][0]["content"] == [{**call("a", "f"), "input": input}]
    is_lost = "INVALID_JSON" in input
    assert [loss.what for loss in rendered.losses] == [
        "that the arguments are no JSON object"
    ] * is_lost


@pytest.mark.parametrize(
    ("turn", "why"),
    [
        ("x", "a message must be a JSON object"),
        ({"role": "tool", "content": "x"}, "unknown role 'tool'"),
        ({"role": ["user"]}, "unknown role"),
        ({"role": "beside"}, "unknown role 'beside'"),
        *(({"role": role}, "content is missing") for role in ("user", "assistant", "system")),
        (user(), "content is missing"),
        ({"role": "user", "content": 5}, "content must be a string or a list of blocks"),
        ({"role": "user", "content": ["x"]}, "a block of the content must be an object"),
        (
            user({"type": "new"}, {"type": "input_text"}),
            "no part of its content can be read: 'new', 'input_text'",
        ),
        (ai({"type": "output_text", "text": "x"}), "can be read: 'output_text'"),
        (user({"type": "image"}), "image needs the field source, an object"),
        (user({"type": "image", "source": {"type": "url", "url": 5}}), "url must be a string"),
        (user(text(5)), "text must be a string"),
        (ai(call(id=5)), "id must be a string"),
        (user(result(is_error="no")), "is_error"),
        (user(result(content=5)), "content must be a string or a list of blocks"),
    ],
)
def test_a_malformed_turn_is_refused_with_its_place(turn, why):
    with pytest.raises(UnreadableTranscript, match=why) as caught:
        parse(user("x"), turn)
    assert caught.value.index == 1


@pytest.mark.parametrize(
    ("value", "format"),
    [
        ({"system": "s", "messages": [user("x")]}, "anthropic"),
        ([user("x"), ai(call())], "anthropic"),
        ([[{"role": "user", "content": "x"}], [ai(thinking(), "x")]], "anthropic"),
        ({"messages": [user(document(type="url", url="https://example.org"))]}, "anthropic"),
        ({**ai("x"), "type": "message", "stop_reason": "end_turn"}, "anthropic"),
        ([user("x"), ai("y")], "openai_chat"),
        ({"messages": [user("x")]}, "openai_chat"),
        ([user("x"), {**ai(thinking(), "y"), "tool_calls": []}], "openai_chat"),
        (
            [user("x", {"type": "image", "source": {}}), {"role": "tool", "content": "x"}],
            "openai_chat",
        ),
        ([ai({"type": "thinking", "thinking": [text("hm")]}, "x")], "openai_chat"),
    ],
)
def test_a_conversation_with_what_only_anthropic_has_is_recognised(value, format):
    reading = read_transcripts(json.dumps(value))
    assert (reading.format, reading.refused) == (format, ())


def test_an_answer_of_openai_is_no_answer_of_anthropic():
    answer = {**ai({"type": "output_text", "text": "x"}), "type": "message"}
    assert FORMATS["anthropic"].find(answer) is None


def test_plain_turns_are_read_where_the_format_is_named():
    (transcript,) = read_transcripts(json.dumps([user("x")]), "anthropic").transcripts
    assert transcript.messages == (UserMessage("x"),)


# Anthropic's own library


def whole(value):
    """Return a value of the library with its lazy lists read."""
    if isinstance(value, dict):
        return {name: whole(each) for name, each in value.items()}
    is_list = hasattr(value, "__iter__") and not isinstance(value, str)
    return [whole(each) for each in value] if is_list else value


def test_the_library_takes_the_written_values():
    types = pytest.importorskip("anthropic.types")
    pydantic = pytest.importorskip("pydantic")
    asked = AiMessage("x", [ToolExecutionRequest("a", "f", '{"b": 1}')])
    media = [ImageContent(Image(None, "QQ==", "image/png")), PdfFileContent(PdfFile("u"))]
    answer = ToolExecutionResultMessage("a", "f", [TextContent("x"), *media], True)
    written = render(UserMessage([TextContent("x"), *media]), asked, answer, AiMessage("y"))
    turns = written.value["messages"]
    known = pydantic.TypeAdapter(list[types.MessageParam])
    assert len(turns) == 4
    assert whole(known.validate_python(turns)) == turns


def test_objects_of_the_library_are_read():
    types = pytest.importorskip("anthropic.types")
    answer = types.Message(
        id="msg_1",
        type="message",
        role="assistant",
        model="m",
        content=[
            types.ThinkingBlock(type="thinking", thinking="hm", signature="c2ln"),
            types.TextBlock(type="text", text="I look."),
            types.ToolUseBlock(type="tool_use", id="a", name="find", input={"b": 1}),
        ],
        stop_reason="tool_use",
        usage=types.Usage(input_tokens=3, output_tokens=1),
    )
    (read,) = parse_objects(answer, "anthropic").messages
    assert (read.text, read.thinking) == ("I look.", "hm")
    assert read.tool_execution_requests == (ToolExecutionRequest("a", "find", '{"b": 1}'),)
    assert read.attributes["anthropic"]["response"]["usage"]["output_tokens"] == 1
    asked = {"role": "assistant", "content": answer.content}
    said = [thinking(), text("I look."), {**call(), "input": {"b": 1}}]
    assert render(*parse_objects([asked], "anthropic").messages).value["messages"] == [ai(*said)]
