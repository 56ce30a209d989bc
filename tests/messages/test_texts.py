"""Texts as people read them, and phrases in them."""

from __future__ import annotations

import pytest

from chatmemory import AiMessage, ToolExecutionRequest, ToolExecutionResultMessage, UserMessage
from chatmemory.messages.phrases import has_phrase, phrase_place
from chatmemory.messages.texts import question_in, readable_text


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
        (ToolExecutionResultMessage("1", "find", "found it"), "find found it"),
        (UserMessage("hello"), "hello"),
    ],
)
def test_tool_messages_are_readable_and_others_as_they_were_said(message, shown):
    assert readable_text(message) == shown


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
