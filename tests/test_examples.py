from __future__ import annotations

import subprocess
import sys

import pytest

from chatmemory import (
    AiMessage,
    ChatMemoryProvider,
    MessageWindowChatMemory,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
)
from examples.chat_loop import MOST_ROUNDS, Assistant

CALL = ToolExecutionRequest.of("find_order", {"order": "A-1182"}, id="1")


def assistant(*answers: AiMessage, limit: int = 20) -> Assistant:
    """An assistant whose model gives these answers; `assistant.model.seen` is what it saw."""
    given, seen = iter(answers), []

    def model(messages):
        seen.append(messages)
        return next(given)

    model.seen = seen
    memories = ChatMemoryProvider(lambda name: MessageWindowChatMemory(name, limit))
    return Assistant(model, memories, {"find_order": lambda order: f"{order}: shipped"}, "Brief.")


def test_the_results_of_tools_reach_the_model():
    chat = assistant(AiMessage(None, [CALL]), AiMessage("It is on its way."))
    assert chat.chat("a", "Where is it?") == "It is on its way."
    assert chat.model.seen[1] == [
        SystemMessage("Brief."),
        UserMessage("Where is it?"),
        AiMessage(None, [CALL]),
        ToolExecutionResultMessage("1", "find_order", "A-1182: shipped"),
    ]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (ToolExecutionRequest("1", "find_order", "{"), "JSONDecodeError"),
        (ToolExecutionRequest("1", "find_order", '{"number": 7}'), "TypeError"),
        (ToolExecutionRequest("1", "other", "{}"), "KeyError: 'other'"),
    ],
)
def test_the_model_hears_of_the_error_of_a_tool(call, error):
    chat = assistant(AiMessage(None, [call]), AiMessage("Sorry."))
    assert chat.chat("a", "Where is it?") == "Sorry."
    result = chat.model.seen[1][-1]
    assert result.is_error
    assert error in result.contents[0].text


def test_a_model_that_only_calls_tools_is_stopped():
    chat = assistant(*[AiMessage(None, [CALL])] * MOST_ROUNDS)
    with pytest.raises(RuntimeError, match="still calls tools after 10 rounds"):
        chat.chat("a", "Where is it?")


def test_it_runs_by_itself():
    command = [sys.executable, "-m", "examples.chat_loop"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stdout == "Here it is: A-1182: shipped.\n5 messages in memory\n"
