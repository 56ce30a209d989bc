"""Hand-made conversations for strategies, and an estimator that counts each message as one."""

from __future__ import annotations

from collections.abc import Iterable

from chatmemory import (
    AiMessage,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
)
from chatmemory.messages.message import ChatMessage
from chatmemory.strategies import Run
from chatmemory.strategies.runs import Sent


class EachIsOne:
    """Counts a message as one token."""

    family = "each-is-one"

    def estimate_token_count_in_text(self, text: str) -> int:
        return 1

    def estimate_token_count_in_message(self, message: ChatMessage) -> int:
        return 1

    def estimate_token_count_in_messages(self, messages: Iterable[ChatMessage]) -> int:
        return len(list(messages))


def chat(turns: int, system: str = "Be brief.") -> list[ChatMessage]:
    """A system message, and turns of a question and an answer."""
    said: list[ChatMessage] = [SystemMessage(system)]
    for turn in range(turns):
        said += [UserMessage(f"Question {turn}?"), AiMessage(f"Answer {turn}.")]
    return said


def lookups(turns: int, text: str = "found") -> list[ChatMessage]:
    """Turns of a question, a tool call, its result and an answer."""
    said: list[ChatMessage] = []
    for turn in range(turns):
        call = ToolExecutionRequest(f"call-{turn}", "look", "{}")
        said += [
            UserMessage(f"Look at {turn}."),
            AiMessage(None, (call,)),
            ToolExecutionResultMessage(f"call-{turn}", "look", text),
            AiMessage(f"It is {turn}."),
        ]
    return said


def prompt_at_the_end(run: Run, messages: Iterable[ChatMessage]) -> list[Sent]:
    """Return what a call would be sent after all messages, each prompt before being asked for."""
    for position, message in enumerate(messages):
        if isinstance(message, UserMessage) and position:
            run.end_turn()
        if isinstance(message, AiMessage):
            run.prompt()
        run.add(position, message)
    found = run.prompt()
    run.close()
    return found
