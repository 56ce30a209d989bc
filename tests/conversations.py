"""Conversations and messages for tests, made by the same services that programs use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from chatmemory import (
    AiMessage,
    ChatMessage,
    Policy,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    services,
)
from chatmemory.messages.sessions import Session
from chatmemory.models import Memory
from chatmemory.reading import windows

HI, BRIEF = UserMessage("hi"), SystemMessage("Be brief.")


def users(*texts: str) -> list[UserMessage]:
    """Return a message of the user for each text."""
    return [UserMessage(text) for text in texts]


def numbered(count: int, words: str = "message") -> list[UserMessage]:
    """Return so many messages of the user: "message 0", "message 1", …"""
    return [UserMessage(f"{words} {n}") for n in range(count)]


def call(*ids: str, arguments: str = "{}") -> AiMessage:
    """Return an answer that calls the tool "find" once for each id."""
    return AiMessage(None, tuple(ToolExecutionRequest(id, "find", arguments) for id in ids))


def result(id: str, text: str = "found") -> ToolExecutionResultMessage:
    """Return the result of a call of `call`."""
    return ToolExecutionResultMessage(id, "find", text)


CALL, RESULT = call("1"), result("1")


def create_and_add(
    memory_id: str,
    policy: Policy | None,
    messages: Iterable[ChatMessage],
    labels: Mapping[str, str] | None = None,
) -> None:
    """Create a conversation, and add messages to it: a step for each."""
    services.create(memory_id, policy, labels)
    services.add(memory_id, messages)


def window_of(session: Session, at: int) -> list[int]:
    """Return the positions that an agent saw after `at` messages, cleared ones included."""
    done = [each for each in session.compactions if each.summary < at]
    if not done:
        return list(range(at))
    return [*done[-1].window, *range(done[-1].summary + 1, at)]


def seqs(memory_id: str = "m", at: int | None = None) -> list[int]:
    """Return the seqs of the messages in memory, after a step or now."""
    return [row.seq for row in windows.window(memory_id, at).rows]


def texts(memory_id: str = "m", at: int | None = None) -> list[str]:
    """Return the texts of the messages in memory, after a step or now."""
    return [row.text for row in windows.window(memory_id, at).rows]


def keep(*memory_ids: str) -> None:
    """Keep the derived rows of some conversations, or of all."""
    for memory_id in memory_ids or Memory.objects.order_by("id").values_list("id", flat=True):
        services.keep(memory_id)
