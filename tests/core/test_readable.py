"""Tool messages as people read them."""

from __future__ import annotations

import pytest

from chatmemory import (
    AiMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
)
from chatmemory.core.texts import readable_text


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ('{"order": "A-1182"}', 'find(order: "A-1182")'),
        (
            '{"days": 2, "deep": {"a": [1, null]}, "to": "Köln"}',
            'find(days: 2, deep: {"a": [1, null]}, to: "Köln")',
        ),
        ("{}", "find()"),
        (None, "find()"),
        ("not json", "find(not json)"),
        ("[1]", "find([1])"),
    ],
)
def test_a_call_shows_its_name_and_its_arguments(arguments, shown):
    assert readable_text(AiMessage(None, (ToolExecutionRequest("1", "find", arguments),))) == shown


def test_several_calls_follow_the_text_line_by_line():
    calls = tuple(ToolExecutionRequest(n, f"tool{n}", "{}") for n in "12")
    assert readable_text(AiMessage("One moment.", calls)) == "One moment.\ntool1()\ntool2()"


def test_a_result_names_its_tool():
    assert readable_text(ToolExecutionResultMessage("1", "find", "found it")) == "find found it"


def test_other_messages_are_as_they_were_said():
    assert readable_text(UserMessage("hello")) == "hello"
    assert readable_text(AiMessage("hi")) == "hi"
