"""Conversations and messages for tests, made by the services that programs use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from chatmemory import ChatMessage, Policy, UserMessage, services
from chatmemory.core.sessions import Session


def users(*texts: str) -> list[UserMessage]:
    """Return a message of the user for each text."""
    return [UserMessage(text) for text in texts]


def numbered(count: int, words: str = "message") -> list[UserMessage]:
    """Return so many messages of the user: "message 0", "message 1", …"""
    return [UserMessage(f"{words} {n}") for n in range(count)]


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
