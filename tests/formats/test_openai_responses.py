from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import (
    AiMessage,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
)
from chatmemory.exceptions import UnreadableTranscript
from chatmemory.formats import parse_messages, parse_objects, read_transcripts, render_messages
from chatmemory.messages.message import text_of, with_attributes

from ..properties import examples
from .random_conversations import conversations

FORMAT = "openai_responses"
PDF = "data:application/pdf;base64,QQ=="


def parse(*items):
    return parse_messages(list(items), FORMAT)


def items_of(messages):
    return render_messages(messages, FORMAT).value["input"]


@cache
def accepted() -> Any:
    pydantic = pytest.importorskip("pydantic")
    return pydantic.TypeAdapter(pytest.importorskip("openai.types.responses").ResponseInputParam)


@given(conversations(FORMAT))
@examples(30)
def test_openai_accepts_what_is_written(messages):
    for item in items_of(messages):
        accepted().validate_python([item], strict=True)


# Items of all types


def user(content: object = "hi", **properties: object) -> dict:
    return {"role": "user", "content": content, **properties}


def output_message(text: str, **properties: object) -> dict:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    head = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
    return {**head, "content": content, **properties}


def thought(summary: str | None = None, content: str | None = None, id: str = "rs_1") -> dict:
    summaries = [{"type": "summary_text", "text": summary}] if summary else []
    item = {"type": "reasoning", "id": id, "summary": summaries, "encrypted_content": "gAAA"}
    texts = {"content": [{"type": "reasoning_text", "text": content}]} if content else {}
    return item | texts


def call(id: str = "c1", name: str = "find", **properties: object) -> dict:
    return {
        "type": "function_call",
        "call_id": id,
        "name": name,
        "arguments": '{"of":1}',
        **properties,
    }


def output(id: str = "c1", output: object = "found", **properties: object) -> dict:
    return {"type": "function_call_output", "call_id": id, "output": output, **properties}


def typed(type: str, **properties: object) -> dict:
    return {"type": type, **properties}


TOOLS = typed("additional_tools", role="developer", tools=[{"type": "function", "name": "pay"}])
MCP = {"id": "mcp_1", "server_label": "wiki", "name": "ask", "arguments": '{"q":"why"}'}
ERROR = {"type": "http_error", "code": 500, "message": "no"}
WHOLE = [  # items that are a call and its result
    (typed("mcp_call", **MCP, output="because", error=None), '{"q":"why"}', "because"),
    (typed("mcp_call", **MCP, output=None, error=ERROR), '{"q":"why"}', json.dumps(ERROR)),
    (typed("mcp_call", **MCP, output=None, error=None, status="calling"), '{"q":"why"}', ""),
    (
        typed(
            "code_interpreter_call",
            id="ci_1",
            code="1 + 1",
            container_id="cntr_1",
            outputs=[{"type": "logs", "logs": "2"}],
            status="completed",
        ),
        "1 + 1",
        '[{"type": "logs", "logs": "2"}]',
    ),
    (
        typed(
            "web_search_call",
            id="ws_1",
            status="completed",
            action={"type": "search", "query": "news"},
        ),
        '{"type": "search", "query": "news"}',
        "completed",
    ),
    (
        typed("file_search_call", id="fs_1", queries=["q"], results=None, status="completed"),
        '["q"]',
        "",
    ),
    (
        typed(
            "image_generation_call",
            id="ig_1",
            status="completed",
            result="QQ==",
            revised_prompt="a cat",
        ),
        "a cat",
        "[image]",
    ),
]
CLICK = {"type": "click", "button": "left", "x": 1, "y": 2}
SCREEN = {"type": "computer_screenshot", "image_url": "https://example.org/screen.png"}
PAIRS = [  # a call, its result, and what both say
    (call(), output(), '{"of":1}', "found"),
    ({**call(), "id": "fc_1", "status": "completed"}, output(output=None), '{"of":1}', ""),
    (
        typed("custom_tool_call", call_id="c1", name="sql", input="select 1"),
        typed("custom_tool_call_output", call_id="c1", output=[typed("input_text", text="1")]),
        "select 1",
        "1",
    ),
    (
        typed("tool_search_call", call_id=None, id="tsc_1", execution="server", arguments={"q": 1}),
        typed("tool_search_output", call_id=None, id="tso_1", tools=[{"name": "pay"}]),
        '{"q": 1}',
        '[{"name": "pay"}]',
    ),
    (
        typed("computer_call", id="cu_1", call_id="c1", action=CLICK, pending_safety_checks=[]),
        typed("computer_call_output", call_id="c1", output=SCREEN),
        json.dumps({"action": CLICK}),
        "[image https://example.org/screen.png]",
    ),
    (
        typed("computer_call", id="cu_1", call_id="c1", actions=[CLICK], status="completed"),
        typed("computer_call_output", call_id="c1", output={**SCREEN, "image_url": "data:x/y"}),
        json.dumps({"actions": [CLICK]}),
        "[image]",
    ),
    (
        typed("local_shell_call", id="ls_1", call_id="c1", action={"command": ["ls"]}),
        typed("local_shell_call_output", id="c1", output='{"stdout":"a"}'),
        '{"command": ["ls"]}',
        '{"stdout":"a"}',
    ),
    (
        typed("shell_call", call_id="c1", action={"commands": ["ls"]}, status="completed"),
        typed("shell_call_output", call_id="c1", output=[{"stdout": "a", "stderr": ""}]),
        '{"commands": ["ls"]}',
        '[{"stdout": "a", "stderr": ""}]',
    ),
    (
        typed("apply_patch_call", call_id="c1", operation={"type": "delete_file", "path": "a"}),
        typed("apply_patch_call_output", call_id="c1", status="failed", output=None),
        '{"type": "delete_file", "path": "a"}',
        "",
    ),
    (
        typed("mcp_approval_request", id="ap_1", name="ask", arguments="{}", server_label="wiki"),
        typed("mcp_approval_response", approval_request_id="ap_1", approve=False, reason="no"),
        "{}",
        '{"approve": false, "reason": "no"}',
    ),
    (
        typed("program", id="p_1", call_id="c1", code="pay()", fingerprint="f"),
        typed("program_output", id="po_1", call_id="c1", result="paid", status="completed"),
        "pay()",
        "paid",
    ),
]


@pytest.mark.parametrize(("item", "arguments", "result"), WHOLE)
def test_an_item_that_is_a_call_and_its_result_is_both_and_one_again(item, arguments, result):
    items = [user(), thought("hm"), item, output_message("so it is")]
    read = parse(*items)
    _, ai, answer, words = read.messages
    assert ai.tool_execution_requests[0].arguments == arguments
    assert (answer.id, text_of(answer)) == (ai.tool_execution_requests[0].id, result)
    assert (ai.thinking, text_of(words)) == ("hm", "so it is")
    rendered = render_messages(read.messages, FORMAT)
    assert (rendered.value, rendered.losses) == ({"input": items}, ())


@pytest.mark.parametrize(("asked", "told", "arguments", "result"), PAIRS)
def test_calls_and_their_results_are_read_whatever_their_types(asked, told, arguments, result):
    read = parse(asked, told)
    ai, answer = read.messages
    (request,) = ai.tool_execution_requests
    assert (request.arguments, text_of(answer)) == (arguments, result)
    assert (answer.id, answer.tool_name) == (request.id, request.name)
    rendered = render_messages(read.messages, FORMAT)
    assert (rendered.value, rendered.losses) == ({"input": [asked, told]}, ())


@pytest.mark.parametrize(
    ("items", "property"),
    [([item], "arguments") for item, _, _ in WHOLE] + [([*pair[:2]], "both") for pair in PAIRS],
)
def test_edited_arguments_and_results_are_written(items, property):
    ai, answer = parse(*items).messages
    (request,) = ai.tool_execution_requests
    request = ToolExecutionRequest(request.id, request.name, '{"edited": 1}')
    ai = AiMessage(ai.text, [request], ai.thinking, ai.attributes)
    answer = ToolExecutionResultMessage(
        answer.id, answer.tool_name, "also edited", answer.is_error, answer.attributes
    )
    written = render_messages([ai, answer], FORMAT)
    spelt = json.dumps(written.value)
    assert "edited" in spelt
    assert "also edited" in spelt
    assert [item["type"] for item in written.value["input"]] == [item["type"] for item in items]


@pytest.mark.parametrize(
    "items",
    [
        [user([typed("input_text", text="a"), typed("input_text", text="b", x=1)])],
        [user([typed("input_image", image_url="data:image/png;base64,QQ==", detail="original")])],
        [user([typed("input_image", file_id="file-1", detail="auto")])],
        [user([typed("input_file", file_id="file-1"), typed("input_file", file_url="u/a.mp3")])],
        [user([typed("input_file", filename="a.pdf", file_data=PDF)])],
        [user([typed("input_audio", input_audio={"data": "QQ==", "format": "wav"})])],
        [user([typed("input_text", text="a"), typed("input_video", url="u")])],
        [user(type="message", status="completed", id="msg_0")],
        [{"role": "developer", "content": "x"}],
        [{"role": "system", "content": [typed("input_text", text="x")]}, user()],
        [
            output_message("a", phase="commentary"),
            output_message("b", phase="final_answer", id="msg_2"),
        ],
        [output_message("", content=[typed("refusal", refusal="no")])],
        [output_message("", content=[typed("output_text", text=text) for text in "ab"])],
        [{"role": "assistant", "content": ""}, call()],
        [thought(content="hm"), thought("hm", "hm"), call(), call("c2"), output("c2"), output()],
        [
            thought("a"),
            output_message("so"),
            thought("b"),
            call(),
            output_message("and"),
            output(),
            output_message("done"),
        ],
        [thought()],
        [typed("compaction", id="cmp_1", encrypted_content="gAAA"), user()],
        [user(), typed("compaction", id="cmp_1", encrypted_content="gAAA"), output_message("x")],
        [typed("item_reference", id="rs_1"), call(), output()],
        [{"id": "msg_1"}],
        [TOOLS],
        [TOOLS, user()],
        [call(), output(), TOOLS, call("c2"), output("c2"), TOOLS],
        [output_message("x"), TOOLS, user()],
        [typed("mcp_list_tools", id="mcpl_1", server_label="w", tools=[]), WHOLE[0][0]],
        [WHOLE[0][0], TOOLS, output_message("x")],
        [call(), TOOLS, output()],
        [call(), WHOLE[0][0], TOOLS, WHOLE[3][0], output_message("x"), output()],
        [typed("new_thing", id="n_1", text="so it is"), user()],
        [typed("new_thing", id="n_1"), user()],
        [user("é" * 3, prompt_cache_breakpoint={"mode": "explicit"})],
    ],
)
def test_details_beyond_the_model_come_back(items):
    read = parse(*items)
    rendered = render_messages(read.messages, FORMAT)
    assert (rendered.value, read.losses, rendered.losses) == ({"input": items}, (), ())
    assert all(text_of(message) or message == AiMessage("") for message in read.messages)


items = st.lists(
    st.sampled_from(
        [
            *([item] for item, _, _ in WHOLE),
            *([asked, told] for asked, told, _, _ in PAIRS),
            [call("c1"), call("c2"), output("c1"), output("c2")],
            [call("c1"), output_message("a"), thought("b"), output("c1")],
            [user()],
            [user([typed("input_text", text="a")])],
            [output_message("a")],
            [output_message("b", id="msg_2")],
            [{"role": "assistant", "content": "a"}],
            [{"role": "system", "content": "a"}],
            [thought()],
            [thought("a")],
            [thought("a", "b")],
            [TOOLS],
            [typed("compaction", id="cmp_1", encrypted_content="gAAA")],
            [typed("new_thing", text="a")],
        ]
    ),
    max_size=6,
).map(lambda groups: [item for group in groups for item in group])


@given(items)
def test_any_items_come_back(items):
    read = parse(*items)
    rendered = render_messages(read.messages, FORMAT)
    assert (rendered.value, read.losses, rendered.losses) == ({"input": items}, (), ())


# Which messages the items are


def test_items_of_one_answer_are_one_message():
    items = [user(), thought("a"), thought("b"), output_message("so"), call("c1"), call("c2")]
    read = parse(*items, output("c2", "2"), output("c1", "1"), output_message("done"))
    _, ai, two, one, done = read.messages
    assert (ai.text, ai.thinking) == ("so", "a\nb")
    assert [request.id for request in ai.tool_execution_requests] == ["c1", "c2"]
    assert [(each.id, text_of(each)) for each in (two, one)] == [("c2", "2"), ("c1", "1")]
    assert text_of(done) == "done"
    assert read.turns == (0, 1, 6, 7, 8)


def test_words_after_words_are_another_message():
    read = parse(output_message("a"), thought("b"), output_message("c"))
    assert [(m.text, m.thinking) for m in read.messages] == [("a", None), ("c", "b")]


def test_an_item_without_a_message_is_visible_in_the_history():
    compaction = typed("compaction", id="cmp_1", encrypted_content="gAAA")
    read = parse(compaction, user(), typed("new_thing", text="so it is"))
    assert [text_of(m) for m in read.messages] == ["[compaction cmp_1]", "hi", "so it is"]
    assert "so it is" not in json.dumps(read.messages[2].attributes)


def test_edited_texts_are_written_and_stand_in_no_attributes():
    (ai,) = parse(
        thought("first", "second"), output_message("one"), call(), output_message("two")
    ).messages
    assert not {"first", "second", "one", "two"} & {*texts_of(ai.attributes)}
    edited = AiMessage("others", ai.tool_execution_requests, "thoughts", ai.attributes)
    written = items_of([edited])
    assert [item["type"] for item in written] == ["reasoning", "message", "function_call"]
    assert written[0] == thought("thoughts")
    assert written[1] == output_message("others")


def texts_of(value: object) -> list[str]:
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return [text for each in inner for text in texts_of(each)]
    return [value] if isinstance(value, str) else []


def test_a_result_without_its_item_is_a_loss():
    call, result = parse(WHOLE[0][0]).messages
    plain = with_attributes(call, {})
    rendered = render_messages([plain, result], FORMAT)
    assert [item["type"] for item in rendered.value["input"]] == ["function_call"]
    assert [(loss.where, loss.what) for loss in rendered.losses] == [
        ("message 2", "a tool result without its call")
    ]


# Requests and responses


def test_instructions_stand_beside_the_input():
    request = {
        "instructions": "Be brief.",
        "input": [user(), output_message("ok")],
        "model": "gpt-5",
    }
    read = parse_objects(request, FORMAT)
    assert read.messages[0] == SystemMessage("Be brief.")
    assert "Be brief." not in json.dumps(read.messages[0].attributes)
    assert [loss.what for loss in read.losses] == ["the property 'model'"]
    rendered = render_messages(read.messages, FORMAT).value
    assert rendered == {"instructions": "Be brief.", "input": request["input"]}
    edited = SystemMessage("Be very brief.", read.messages[0].attributes)
    assert render_messages([edited], FORMAT).value == {
        "instructions": "Be very brief.",
        "input": [],
    }


def test_a_system_message_of_elsewhere_is_an_item():
    assert items_of([SystemMessage("x")]) == [{"role": "system", "content": "x"}]


def test_an_input_of_one_text_is_a_user_message():
    read = parse_objects({"model": "gpt-5", "instructions": "s", "input": "hi"}, FORMAT)
    assert read.messages == (SystemMessage("s"), UserMessage("hi"))


def test_a_response_is_its_output_with_its_details():
    usage = {"input_tokens": 3, "output_tokens": 1}
    response = {"object": "response", "id": "resp_1", "usage": usage, "instructions": "s"}
    read = parse_objects({**response, "output": [thought("hm"), call()]}, FORMAT)
    (message,) = read.messages
    assert message.attributes[FORMAT]["response"] == {"id": "resp_1", "usage": usage}
    assert items_of([message]) == [thought("hm"), call()]
    empty = parse_objects({**response, "output": []}, FORMAT)
    assert [loss.what for loss in empty.losses] == ["an answer without items"]


def test_objects_of_the_library_are_read():
    responses = pytest.importorskip("openai.types.responses")
    output = [thought("hm"), WHOLE[0][0], output_message("so"), call(id="fc_1", status="completed")]
    about = {"id": "resp_1", "created_at": 1.0, "model": "gpt-5", "object": "response"}
    settings = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    response = responses.Response.model_validate({**about, **settings, "output": output})
    for values in (response, response.output, [*response.output]):
        read = parse_objects(values, FORMAT)
        assert items_of(read.messages) == output
    (message,) = parse_objects(response.output[2], FORMAT).messages
    assert text_of(message) == "so"


def test_a_result_without_an_id_answers_the_call_of_its_tool():
    search, found = PAIRS[3][:2]
    ai, searched, _ = parse(call(), search, found, output()).messages
    assert [each.id for each in ai.tool_execution_requests] == ["c1", "tsc_1"]
    assert (searched.id, searched.tool_name) == ("tsc_1", "tool_search")


def test_results_answer_calls_of_earlier_messages():
    earlier = parse(call()).messages
    (result,) = parse_messages([output()], FORMAT, earlier).messages
    assert (result.id, result.tool_name) == ("c1", "find")


# Which format a file has


@pytest.mark.parametrize(
    ("value", "format"),
    [
        ([user(), output_message("x")], FORMAT),
        ([user(), call()], FORMAT),
        ([user([typed("input_text", text="x")])], FORMAT),
        ([user(), {"role": "assistant", "content": "x"}], "openai_chat"),
        ({"input": [user()]}, FORMAT),
        ({"model": "gpt-5", "input": "x"}, FORMAT),
        ({"object": "response", "output": [output_message("x")]}, FORMAT),
        ({"output": [output_message("x")], "model": "gpt-5"}, FORMAT),
        ([user([{"type": "image_url", "image_url": {"url": "u"}}])], "openai_chat"),
    ],
)
def test_files_are_recognised(value, format):
    assert read_transcripts(json.dumps(value)).format == format


@pytest.mark.parametrize(
    "value",
    [
        {"input": "x", "output": "y"},
        {"model": "m", "input": "x", "output": "y"},
        {"input": ["x"], "model": "text-embedding-3-small"},
        [{"type": "reasoning", "content": "x"}],
        {"output": []},
    ],
)
def test_other_files_are_of_no_format(value):
    with pytest.raises(UnreadableTranscript, match="no conversation"):
        read_transcripts(json.dumps(value))


@pytest.mark.parametrize(
    ("item", "why"),
    [
        ("x", "an item must be a JSON object"),
        ({}, "needs the field type or the field role"),
        ({"type": 5}, "needs the field type or the field role"),
        ({"role": "robot", "content": "x"}, "unknown role 'robot'"),
        ({"role": ["user"], "content": "x"}, "unknown role"),
        ({"role": "user"}, "content is missing"),
        ({"role": "assistant", "content": None}, "content is missing"),
        (user([]), "no part of its content can be read"),
        (user([typed("text_of_tomorrow")]), "no part of its content can be read"),
        (user(5), "content must be a string or a list of parts"),
        ({"role": "system", "content": [typed("input_file", file_id=5)]}, "must be a string"),
        ({"role": "assistant", "content": [typed("input_image", image_url="u")]}, "no text in"),
        (output(output={"a": 1}), "output must be a string or a list"),
        (typed("function_call_output", call_id="c1"), "output is missing"),
        (call(name=5), "name must be a string"),
        (user([typed("input_audio", input_audio="x")]), "input_audio must be an object"),
    ],
)
def test_a_malformed_item_is_refused_with_its_place(item, why):
    with pytest.raises(UnreadableTranscript, match=why) as caught:
        parse(user(), item)
    assert caught.value.index == 1


def test_an_item_that_is_written_again_under_its_id_is_read_once():
    """Sessions of agents store an item again when it is complete."""
    part = {"type": "output_text", "text": "Hel"}
    message = {"type": "message", "id": "msg_1", "role": "assistant", "content": [part]}
    whole = {**message, "content": [{**part, "text": "Hello"}]}
    call = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "c1", "output": "found"}
    asked = {"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}

    def texts(*items):
        (read,) = read_transcripts(json.dumps(items)).transcripts
        assert read.losses == ()
        return [text_of(each) for each in read.messages]

    once = texts(asked, whole, call, result)
    assert texts(asked, message, whole, call, call, result) == once
    other = {**message, "content": [{**part, "text": "Good day"}]}
    assert "Hel" in "".join(texts(asked, message, other))
    unnamed = [{**each, "id": "__fake_id__"} for each in (message, whole)]
    assert "HelHello" in "".join(texts(asked, *unnamed)).replace("\n", "")
