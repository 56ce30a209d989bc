from __future__ import annotations

import base64
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import (
    AiMessage,
    MessageWindowChatMemory,
    SystemMessage,
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
from chatmemory.messages.message import text_of, with_attributes

from .random_conversations import conversations


def parse(*turns):
    return parse_messages(list(turns), "gemini")


def render(*messages):
    return render_messages(messages, "gemini")


def user(*parts: dict | str) -> dict:
    return {
        "role": "user",
        "parts": [{"text": part} if isinstance(part, str) else part for part in parts],
    }


def ai(*parts: dict | str) -> dict:
    return {**user(*parts), "role": "model"}


def call(name="find", **properties):
    return {"functionCall": {"name": name, "args": {"what": "a long text"}, **properties}}


def response(value, name="find", **properties):
    return {"functionResponse": {"name": name, "response": value, **properties}}


def blob(kind: str, **properties: object) -> dict:
    return {"inlineData": {"mimeType": kind, "data": "QQ==", **properties}}


CODE = {"executableCode": {"language": "PYTHON", "code": "print(6 * 7)"}}
OUTCOME = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "42\n"}}
THOUGHT = {"text": "hm", "thought": True}
SEARCH = {"toolCall": {"id": "s", "toolType": "GOOGLE_SEARCH", "args": {"queries": ["a key"]}}}
HITS = {"toolResponse": {"id": "s", "toolType": "GOOGLE_SEARCH", "response": {"hits": ["a hit"]}}}
RAN = ai(THOUGHT, "I run it.", CODE, OUTCOME, {"text": "It is 42.", "thoughtSignature": "c2ln"})


said_parts = st.sampled_from(
    [
        *({"text": "x"}, {"text": ""}, {"text": "y", "partMetadata": {"a": 1}}),
        *(blob("image/png"), blob("audio/wav"), blob("video/mp4"), blob("text/csv")),
        *(blob("image/png", displayName="a"), blob("application/pdf")),
        {"inline_data": {"mime_type": "image/png", "data": "QQ=="}},
        {"fileData": {"mimeType": "video/mp4", "fileUri": "gs://a/b.mp4"}, "videoMetadata": {}},
        *({"fileData": {"fileUri": "files/1"}}, {"file_data": {"file_uri": "files/1"}}),
        {"unheardOf": {"a": 1}},
        *(response({"result": "a text"}), response({"output": "a text"}), response({"a": [1]})),
        *(response({"error": "a text"}), response({"error": {"a": 1}}), response({})),
        *(response({"result": '{"a": 1}'}), response({"result": {"error": 1}}), response(None)),
        response({"result": "x"}, id="a", parts=[blob("image/png")]),
        {"function_response": {"name": "find", "response": {"result": "a text"}}},
        {"functionResponse": {"name": "find"}},
    ]
)
model_parts = st.sampled_from(
    [
        *({"text": "x"}, {"text": "y"}, {"text": ""}, THOUGHT, {"thought": True, "text": "so"}),
        *(call(), call(id="a"), {"functionCall": {"name": "find"}}, SEARCH, HITS, CODE, OUTCOME),
        {**call("f"), "thoughtSignature": "c2ln"},
        {"function_call": {"name": "find", "args": {"what": "a long text"}}},
        {"executable_code": {"language": "PYTHON", "code": "print()"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_FAILED"}},
        {"text": "", "thoughtSignature": "c2ln"},
        *(blob("image/png"), {"unheardOf": {"a": 1}}),
    ]
)
said_turns = st.one_of(
    st.builds(lambda parts: user("x", *parts), st.lists(said_parts, max_size=4)),
    st.builds(
        lambda role, parts: {**user(response({"a": 1}), *parts), "role": role},
        st.sampled_from(["user", "function"]),
        st.lists(said_parts, max_size=4),
    ),
    st.builds(lambda parts: ai(*parts, "x"), st.lists(model_parts, max_size=6)),
    st.sampled_from([{"parts": [{"text": "x"}]}, ai(), ai(blob("image/png"))]),
)


@given(st.lists(said_turns, min_size=1, max_size=4))
def test_what_was_said_comes_back(turns):
    read = parse(*turns)
    rendered = render(*read.messages)
    assert (rendered.value, read.losses, rendered.losses) == ({"contents": turns}, (), ())


@pytest.mark.parametrize(
    "beside",
    [
        {"systemInstruction": {"parts": [{"text": "Be brief."}]}},
        {"systemInstruction": {"role": "system", "parts": [{"text": "Be brief."}]}},
        {"system_instruction": {"parts": [{"text": "Be"}, {"text": "brief."}]}},
        {"system_instruction": "Be brief."},
    ],
)
def test_a_system_instruction_comes_back_as_it_was_spelt(beside):
    request = {**beside, "contents": [user("x")]}
    read = parse_objects(request, "gemini")
    assert text_of(read.messages[0]).split() == ["Be", "brief."]
    assert render(*read.messages).value == request
    edited = with_attributes(SystemMessage("Speak."), read.messages[0].attributes)
    assert "Speak." in json.dumps(render(edited, UserMessage("x")).value)
    assert "Be" not in json.dumps(render(edited, UserMessage("x")).value)


@pytest.mark.parametrize(
    ("turns", "answers"),
    [
        # Calls have no ids: a response answers the oldest open call of its name
        ([ai(call("a"), call("b")), user(response({}, "b"), response({}, "a"))], ["2 b", "1 a"]),
        ([ai(call("a"), call("a")), user(response({}, "a"), response({}, "a"))], ["1 a", "2 a"]),
        ([ai(call("a"), call("b")), user(response({}, "c"))], ["1 c"]),
        ([ai(call("a", id="call_1"), call("b")), user(response({}, "b"))], ["2 b"]),
    ],
)
def test_responses_answer_calls_by_name_and_place(turns, answers):
    results = [m for m in parse(*turns).messages if isinstance(m, ToolExecutionResultMessage)]
    assert [f"{m.id} {m.tool_name}" for m in results] == [f"call_{each}" for each in answers]


@pytest.mark.parametrize(
    ("value", "text", "is_error"),
    [
        ({"result": "a text"}, "a text", None),
        ({"output": "a text"}, "a text", None),
        ({"error": "a text"}, "a text", True),
        ({"error": {"code": 5}}, '{"code": 5}', True),
        ({"result": 5}, '{"result": 5}', None),
        ({"result": "a", "b": 1}, '{"result": "a", "b": 1}', None),
        ({"result": {"error": "a text"}}, '{"error": "a text"}', None),
        ({"result": '{"a": 1}'}, json.dumps({"result": '{"a": 1}'}), None),
    ],
)
def test_a_response_is_its_json_text_or_the_text_in_it(value, text, is_error):
    (read,) = parse(user(response(value))).messages
    assert (text_of(read), read.is_error) == (text, is_error)
    plain = ToolExecutionResultMessage(None, "find", text, is_error)
    if "output" not in value:
        assert render(plain).value == {"contents": [user(response(value))]}


def test_code_is_a_call_its_result_and_the_words_after_it():
    call, result, words = parse(RAN).messages
    assert (call.text, call.thinking) == ("I run it.", "hm")
    (code,) = call.tool_execution_requests
    assert (code.name, json.loads(code.arguments)) == ("code_execution", CODE["executableCode"])
    assert (result.id, result.tool_name, text_of(result)) == (code.id, "code_execution", "42\n")
    assert words.text == "It is 42."


def test_code_that_failed_is_an_error():
    failed = {"codeExecutionResult": {"outcome": "OUTCOME_FAILED", "output": "no"}}
    read = parse(ai(CODE, OUTCOME, CODE, failed)).messages
    assert [read[1].is_error, read[3].is_error] == [None, True]


def test_edits_of_code_and_its_result_are_found():
    call, result, words = parse(RAN).messages
    (code,) = call.tool_execution_requests
    written = {"language": "PYTHON", "code": "print(43)"}
    call = AiMessage(
        "I try.", [replace(code, arguments=json.dumps(written))], None, call.attributes
    )
    result = ToolExecutionResultMessage(code.id, None, "none", True, result.attributes)
    words = AiMessage("It is not.", (), None, words.attributes)
    assert render(call, result, words).value["contents"] == [
        ai(
            "I try.",
            {"executableCode": written},
            {"codeExecutionResult": {"outcome": "OUTCOME_FAILED", "output": "none"}},
            {"text": "It is not.", "thoughtSignature": "c2ln"},
        )
    ]


@pytest.mark.parametrize("names", ["camelCase", "snake_case"])
def test_edits_are_found_and_attributes_hold_no_text(names):
    asked, answer = call(id="a"), response({"output": "a long answer"}, id="a")
    if names == "snake_case":
        asked = {"function_call": asked["functionCall"]}
        answer = {"function_response": answer["functionResponse"]}
    turns = [ai("some words", asked), user(answer), ai(SEARCH, HITS)]
    messages = parse(*turns).messages
    for message in messages:
        for said in ("a long text", "some words", "a long answer", "a key", "a hit"):
            assert said not in json.dumps(message.attributes)
    ask, result, search, hits = messages
    (request,) = ask.tool_execution_requests
    ask = AiMessage("words", [replace(request, arguments='{"b": 1}')], None, ask.attributes)
    result = ToolExecutionResultMessage("a", None, "an answer", None, result.attributes)
    (query,) = search.tool_execution_requests
    search = AiMessage(None, [replace(query, arguments='{"c": 2}')], None, search.attributes)
    hits = ToolExecutionResultMessage("s", None, '{"hits": 0}', None, hits.attributes)
    first, second, third = render(ask, result, search, hits).value["contents"]
    (of_call,) = first["parts"][1].values()
    (of_response,) = second["parts"][0].values()
    assert [first["parts"][0]["text"], of_call["args"]] == ["words", {"b": 1}]
    assert first["parts"][1].keys() == asked.keys()
    assert list(of_response["response"].values()) == ["an answer"]
    assert third["parts"][0]["toolCall"]["args"] == {"c": 2}
    assert third["parts"][1]["toolResponse"]["response"] == {"hits": 0}


def test_responses_in_a_row_are_written_as_one_turn():
    asked = AiMessage(None, [ToolExecutionRequest(None, "f", None)] * 2)
    one, two = (ToolExecutionResultMessage(None, "f", said) for said in ("1", '{"a": 2}'))
    turns = render(asked, one, two, UserMessage("and?")).value["contents"]
    assert turns == [
        ai(*({"functionCall": {"name": "f", "args": {}, "id": f"call_{n}"}} for n in (1, 2))),
        user(response({"result": "1"}, "f", id="call_1"), response({"a": 2}, "f", id="call_2")),
        user("and?"),
    ]


def test_a_response_after_the_users_words_answers_no_earlier_call():
    *_, answer = parse(ai(call()), user("never mind"), user(response({}, "other"))).messages
    assert (answer.id, answer.tool_name) == (None, "other")


def test_a_picture_of_the_model_is_mentioned():
    (read,) = parse(ai(blob("image/png"))).messages
    assert read.text == "[file image/png]"


def test_a_response_is_its_message_with_its_details():
    usage = {"promptTokenCount": 3}
    candidate = {"content": ai("hi", " there"), "finishReason": "STOP"}
    given = {"candidates": [candidate, candidate], "usageMetadata": usage}
    read = parse_objects(given, "gemini")
    (message,) = read.messages
    assert message.text == "hi there"
    about = {"usageMetadata": usage, "finishReason": "STOP"}
    assert message.attributes["gemini"]["response"] == about
    assert [loss.what for loss in read.losses] == ["1 other candidates"]
    assert render(message).value == {"contents": [ai("hi", " there")]}
    called = {**given, "automaticFunctionCallingHistory": [user("x")]}
    assert parse_objects(called, "gemini").losses[0].what == (
        "the property 'automaticFunctionCallingHistory'"
    )
    stopped = {"candidates": [{"finishReason": "SAFETY"}]}
    assert parse_objects(stopped, "gemini").messages[0].text is None


# What stands beside, and what cannot be said


def test_other_properties_of_a_request_are_losses():
    request = {"model": "m", "contents": [user("x")], "generationConfig": {"topK": 1}}
    (transcript,) = read_transcripts(json.dumps(request)).transcripts
    assert [loss.what for loss in transcript.losses] == [
        "the property 'model'",
        "the property 'generationConfig'",
    ]


def test_a_system_message_in_the_middle_loses_its_place_and_keeps_its_text():
    rendered = render(SystemMessage("one"), UserMessage("x"), SystemMessage("two"))
    instruction = {"parts": [{"text": "one"}, {"text": "two"}]}
    assert rendered.value == {"systemInstruction": instruction, "contents": [user("x")]}
    assert [(loss.where, loss.what) for loss in rendered.losses] == [
        ("message 3", "the place of a system message: its text is in `systemInstruction`")
    ]


@pytest.mark.parametrize(
    ("turn", "why"),
    [
        ("x", "a message must be a JSON object"),
        ({"role": "assistant", "parts": [{"text": "x"}]}, "unknown role 'assistant'"),
        ({"role": "user"}, "parts is missing"),
        (user(), "parts is missing"),
        ({"role": "model"}, "parts is missing"),
        ({"role": "user", "parts": "x"}, "parts must be a list"),
        ({"role": "user", "parts": ["x"]}, "a part must be an object"),
        (user({"newKind": 1}, {"type": "text"}), "can be read: 'newKind', 'type'"),
        (ai({"type": "text", "content": "x"}), "can be read: 'type'"),
        (user({"inlineData": "x"}), "inlineData must be an object"),
        (user({"text": 5}), "text must be a string"),
        (ai({"functionCall": "x"}), "functionCall must be an object"),
        (ai({"functionCall": {"name": 5}}), "name must be a string"),
        (user({"functionResponse": "x"}), "functionResponse must be an object"),
        (user(response({}, parts=5)), "parts must be a list"),
    ],
)
def test_a_malformed_turn_is_refused_with_its_place(turn, why):
    with pytest.raises(UnreadableTranscript, match=why) as caught:
        parse(user("x"), turn)
    assert caught.value.index == 1


@pytest.mark.parametrize(
    "value",
    [
        [user("x")],
        [[user("x")], [{"parts": [{"text": "x"}]}]],
        {"system_instruction": "s", "contents": [user({"function_response": {"name": "f"}})]},
        {"candidates": [{"content": ai("x")}]},
    ],
)
def test_a_conversation_with_parts_of_gemini_is_recognised(value):
    reading = read_transcripts(json.dumps(value))
    assert (reading.format, reading.refused) == ("gemini", ())


@pytest.mark.parametrize(
    "value",
    [
        {"candidates": [{"name": "Ada"}]},
        {"candidates": [{"content": "x"}]},
        {"candidates": []},
        {"contents": ["x"]},
        [{"role": "user", "parts": [{"type": "text", "text": "x"}]}],
        [{"role": "user", "parts": []}],
    ],
)
def test_files_that_only_look_like_gemini_are_not_recognised(value):
    assert FORMATS["gemini"].find(value) is None


# Google's own library


@given(conversations("gemini"))
def test_the_library_takes_the_written_values(messages):
    types = pytest.importorskip("google.genai.types")
    for turn in render(*messages).value["contents"]:
        known = types.Content.model_validate(turn)
        assert known.model_dump(mode="json", by_alias=True, exclude_unset=True) == turn


def test_objects_of_the_library_are_read():
    types = pytest.importorskip("google.genai.types")
    signature = bytes(range(250, 256))
    parts = [
        types.Part(text="hm", thought=True),
        types.Part(text="I look."),
        types.Part(
            function_call=types.FunctionCall(name="find", args={"b": None, "cD": [1]}),
            thought_signature=signature,
        ),
        types.Part(inline_data=types.Blob(mime_type="image/png", data=signature)),
    ]
    content = types.Content(role="model", parts=parts)
    candidate = types.Candidate(content=content, finish_reason=types.FinishReason.STOP)
    usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=3)
    answer = types.GenerateContentResponse(candidates=[candidate], usage_metadata=usage)
    (read,) = parse_objects(answer, "gemini").messages
    assert (read.text, read.thinking) == ("I look.", "hm")
    (request,) = read.tool_execution_requests
    assert (request.name, json.loads(request.arguments)) == ("find", {"b": None, "cD": [1]})
    about = read.attributes["gemini"]["response"]
    assert (about["usageMetadata"], about["finishReason"]) == ({"promptTokenCount": 3}, "STOP")
    (turn,) = render(read).value["contents"]
    assert types.Content.model_validate(turn) == content
    said = [types.Content(role="user", parts=[types.Part(text="hi")]), content]
    assert parse_objects(said, "gemini").messages[0] == UserMessage("hi")
    image = types.Content(role="user", parts=[parts[3]])
    (sent,) = parse_objects([image], "gemini").messages
    assert base64.b64decode(sent.contents[0].image.base64_data) == signature


def test_a_stream_of_the_library_is_added_as_one_answer():
    types = pytest.importorskip("google.genai.types")

    def chunk(*parts, **more):
        candidate = {"content": {"role": "model", "parts": [*parts]}, **more}
        return types.GenerateContentResponse.model_validate({"candidates": [candidate]})

    call = {"function_call": {"id": "c1", "name": "look", "args": {"at": "it"}}}
    chunks = [
        chunk({"text": "Hm", "thought": True}),
        chunk({"text": "m.", "thought": True}, {"text": "I "}),
        chunk({"text": "look."}),
        chunk(call, finish_reason="STOP"),
    ]
    for values in (
        iter(chunks),
        chunks,
        [each.model_dump(mode="json", exclude_none=True) for each in chunks],
    ):
        memory = MessageWindowChatMemory("streamed")
        assert memory.add_from(values, "gemini") == ()
        (answer,) = memory.messages()
        assert (answer.text, answer.thinking) == ("I look.", "Hmm.")
        assert [each.name for each in answer.tool_execution_requests] == ["look"]
