from __future__ import annotations

import json
import warnings
from datetime import UTC, datetime

import pytest
from hypothesis import given
from pydantic_ai import messages as library
from pydantic_ai.messages import (
    BinaryContent,
    CachePoint,
    DocumentUrl,
    FilePart,
    ImageUrl,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    RetryPromptPart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UploadedFile,
    UserPromptPart,
)
from pydantic_ai.usage import RequestUsage

from chatmemory import MessageWindowChatMemory, SystemMessage, ToolExecutionRequest
from chatmemory.exceptions import UnreadableTranscript
from chatmemory.formats import parse_messages, parse_objects, read_transcripts, render_messages
from chatmemory.messages.message import text_of, with_attributes

from .random_conversations import conversations
from .test_difference import assert_edits_are_found

NOW = datetime(2026, 11, 24, tzinfo=UTC)
ERRORS = [
    {"type": "missing", "loc": ("city",), "msg": "Field required", "input": {"a": "bcdefghij"}}
]
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    RETRY = ModelRequest(
        [
            RetryPromptPart("no such city", tool_name="find", tool_call_id="c"),
            RetryPromptPart(ERRORS),
        ]
    )
FEEDBACK = (
    [ModelRequest([library.RetryFeedbackPart("say more", retry=library.RetryInfo("no_output"))])]
    if hasattr(library, "RetryFeedbackPart")  # since 2.60
    else []
)
OBJECTS = [
    ModelRequest(
        [SystemPromptPart("You are brief."), UserPromptPart("the weather, please")],
        instructions="Answer in rhymes.",
        timestamp=NOW,
        run_id="r",
    ),
    ModelResponse(
        [
            ThinkingPart("I should look", signature="s==", provider_name="anthropic"),
            TextPart("Let me look."),
            ToolCallPart("find", {"city": "Paris in France"}, "c"),
            ToolCallPart("find", '{"city":"Rome in Italy"}', "d"),
        ],
        usage=RequestUsage(input_tokens=3),
        model_name="m",
    ),
    ModelRequest(
        [
            ToolReturnPart("find", {"weather": "sunny in Paris"}, "c", metadata={"a": 1}),
            ToolReturnPart("find", "no such city", "d", outcome="failed"),
        ],
        instructions="Answer in rhymes.",
    ),
    ModelResponse(
        [
            NativeToolCallPart("web_search", {"query": "the weather"}, "s"),
            NativeToolReturnPart("web_search", [{"title": "It is sunny"}], "s"),
            TextPart("It is sunny there."),
            FilePart(BinaryContent(b"picture", media_type="image/png")),
        ],
    ),
    ModelRequest(
        [
            UserPromptPart(
                [
                    "look at this",
                    ImageUrl("https://example.org/a.png", vendor_metadata={"detail": "high"}),
                    BinaryContent(b"a picture", media_type="image/png"),
                    DocumentUrl("https://example.org/a.pdf"),
                    UploadedFile("file-1", "openai"),
                    CachePoint(),
                ]
            )
        ]
    ),
    ModelRequest([ToolReturnPart("find", ["see this", ImageUrl("https://example.org/b")], "c")]),
    ModelRequest([ToolReturnPart("find", None, "c"), UserPromptPart("and now?")]),
    *FEEDBACK,
    ModelRequest([], instructions="Answer in prose."),
    RETRY,
    ModelResponse([]),
    ModelResponse([ThinkingPart("", signature="s==")]),
]


def dumped(messages=OBJECTS):
    return ModelMessagesTypeAdapter.dump_python(messages, mode="json")


def parse(*messages):
    return parse_messages(list(messages), "pydantic_ai")


def render(messages):
    return render_messages(messages, "pydantic_ai")


@given(conversations("pydantic_ai"))
def test_pydantic_ai_reads_what_is_written(messages):
    rendered = render(messages)
    read = ModelMessagesTypeAdapter.validate_json(json.dumps(rendered.value))
    back = parse_objects(read, "pydantic_ai")
    plain = [with_attributes(message, {}) for message in back.messages]
    assert (plain, rendered.losses, back.losses) == (messages, (), ())


def test_dumps_of_pydantic_ai_come_back_unchanged():
    read = parse_objects(OBJECTS, "pydantic_ai")
    rendered = render(read.messages)
    assert (rendered.value, read.losses, rendered.losses) == (dumped(), (), ())
    assert read.messages == parse(*dumped()).messages
    for message in dumped():
        assert render(parse(message).messages).value == [message]


@pytest.mark.parametrize("said", dumped(), ids=range(len(OBJECTS)))
def test_edits_are_found_and_attributes_repeat_no_text(said):
    assert_edits_are_found(parse(said).messages, "pydantic_ai", names={"missing"})


def test_a_request_is_instructions_prompts_and_results():
    read = parse(*dumped()[:3]).messages
    assert [text_of(message) for message in read] == [
        "Answer in rhymes.",
        "You are brief.",
        "the weather, please",
        'Let me look.\nfind({"city": "Paris in France"})\nfind({"city":"Rome in Italy"})',
        '{"weather": "sunny in Paris"}',
        "no such city",
    ]
    assert [read[-2].is_error, read[-1].is_error] == [None, True]


def test_instructions_are_edited_once_for_all_requests():
    first, *others = parse(*dumped()[:3]).messages
    change = SystemMessage("Answer in prose.", first.attributes)
    request, _, again = render([change, *others]).value
    assert request["instructions"] == again["instructions"] == "Answer in prose."


def test_tools_that_the_provider_runs_are_calls_results_and_what_follows():
    called, result, said = parse(dumped()[3]).messages
    request = ToolExecutionRequest("s", "web_search", '{"query": "the weather"}')
    assert called.tool_execution_requests == (request,)
    assert text_of(result) == '[{"title": "It is sunny"}]'
    assert text_of(said) == "It is sunny there.\n[image/png]"


def test_a_memory_takes_the_messages_of_a_run():
    memory = MessageWindowChatMemory("a", 20)
    assert memory.add_from(OBJECTS[3:6], "pydantic_ai") == ()
    assert memory.render("pydantic_ai") == dumped(OBJECTS[3:6])


def request(*parts, **about):
    return {"kind": "request", "parts": list(parts), **about}


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ("x", "must be a JSON object"),
        ({"kind": "event", "parts": []}, "unknown kind 'event'"),
        ({"kind": "request"}, "parts must be a list"),
        (request(), "no part of the request can be read: parts of kind none"),
        (request("x"), "a part must be an object"),
        (request({"part_kind": "instruction-delta"}), "parts of kind 'instruction-delta'"),
        (request({"part_kind": "user-prompt", "content": []}), "parts of kind 'user-prompt'"),
        (request({"part_kind": "user-prompt"}), "content must be a string or a list"),
        (request({"part_kind": "user-prompt", "content": [5]}), "an item of the content must be"),
        ({"kind": "response", "parts": [{"part_kind": "x"}]}, "parts of kind 'x'"),
    ],
)
def test_a_malformed_message_is_refused_with_its_place(message, why):
    with pytest.raises(UnreadableTranscript, match=why) as caught:
        parse(request({"part_kind": "user-prompt", "content": "x"}), message)
    assert caught.value.index == 1


@pytest.mark.parametrize(
    ("value", "is_found"),
    [
        (dumped(), True),
        ({"messages": dumped()[:2], "conversation_id": "a"}, True),
        ([{"kind": "request", "parts": "x"}], False),
        ([{"kind": "request", "parts": [{"text": "x"}]}], False),
        ([{"parts": [{"part_kind": "text"}]}], False),
    ],
)
def test_messages_are_found_by_what_they_need(value, is_found):
    try:
        assert (read_transcripts(json.dumps(value)).format == "pydantic_ai") == is_found
    except UnreadableTranscript:
        assert not is_found
