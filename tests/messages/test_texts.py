"""Texts as people read them, and phrases in them."""

from __future__ import annotations

import pytest

from chatmemory import AiMessage, ToolExecutionRequest, ToolExecutionResultMessage, UserMessage
from chatmemory.messages.codec import frame_of
from chatmemory.messages.contents import Image, ImageContent, TextContent
from chatmemory.messages.message import text_of
from chatmemory.messages.phrases import has_phrase, phrase_place
from chatmemory.messages.texts import question_in, readable_stored_text, readable_text

PICTURE = ImageContent(Image(url="https://map"))


def call(arguments: str | None, name: str = "find") -> ToolExecutionRequest:
    return ToolExecutionRequest("1", name, arguments)


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (AiMessage(None, [call('{"order": "A-1182"}')]), 'find(order: "A-1182")'),
        (
            AiMessage(None, [call('{"days": 2, "deep": {"a": [1, null]}, "to": "Köln"}')]),
            'find(days: 2, deep: {"a": [1, null]}, to: "Köln")',
        ),
        (AiMessage(None, [call("{}"), call(None)]), "find()\nfind()"),
        (AiMessage("One moment.", [call("not json")]), "One moment.\nfind(not json)"),
        (AiMessage(None, [call("[1]")]), "find([1])"),
        (AiMessage("I look."), "I look."),
        (AiMessage("Both.", [None, ToolExecutionRequest()]), "Both.\n()"),
        (ToolExecutionResultMessage("1", "find", "found it"), "find found it"),
        (ToolExecutionResultMessage(None, None, " found it "), "found it"),
        (
            ToolExecutionResultMessage("1", "find", [TextContent("a map"), PICTURE]),
            "find a map\n[image https://map]",
        ),
        (UserMessage("hello"), "hello"),
    ],
)
def test_tool_messages_are_readable_and_others_as_they_were_said(message, shown):
    assert readable_text(message) == shown
    assert readable_stored_text(frame_of(message), text_of(message)) == shown


@pytest.mark.parametrize(
    ("frame", "shown"),
    [
        ("", "the text"),
        ("{", "the text"),
        ("null", "the text"),
        ('{"type":"AI","toolExecutionRequests":1}', "the text"),
        ('{"type":"AI","toolExecutionRequests":[1,{"name":2,"arguments":3}],"text":4}', "4\n2(3)"),
        ('{"type":"TOOL_EXECUTION_RESULT","toolName":5,"text":\x01}', "5 the text"),
    ],
)
def test_a_corrupt_frame_still_has_a_readable_text(frame, shown):
    assert readable_stored_text(frame, "the text") == shown


@pytest.mark.parametrize(
    ("text", "phrase", "hit"),
    [
        ("Wo ist das Paket?", "paket", "Paket"),
        ("İİİİ wo ist das Paket?", "Paket", "Paket"),
        ("Ist İZMİR weit?", "i̇zmi̇r", "İZMİR"),
        ("ΟΔΟΣΤΡΩΜΑ", "οδος", "ΟΔΟΣ"),
    ],
)
def test_the_place_of_a_phrase_is_that_of_the_text_as_it_was_written(text, phrase, hit):
    assert has_phrase(text, phrase)
    assert text[phrase_place(text, phrase)] == hit
    assert not has_phrase("İstanbul", phrase)
    assert phrase_place("İstanbul", phrase) is None


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Sorry.\nWhich order? I can look.", "Sorry. Which order?"),
        ("I can help. Please provide your user ID.", "I can help. Please provide your user ID."),
    ],
)
def test_a_request_needs_no_question_mark(text, shown):
    assert question_in(text) == shown
