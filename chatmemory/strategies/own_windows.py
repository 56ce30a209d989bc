"""Runs chatmemory's own message windows and token windows."""

from __future__ import annotations

from chatmemory.memories.limited import MessageWindowChatMemory, TokenWindowChatMemory
from chatmemory.memories.memory import ChatMemory
from chatmemory.messages.message import ChatMessage
from chatmemory.strategies.runs import Run, Sent, Settings


class WindowRun(Run):
    """Runs a memory of this library. The memory contains the system message, too."""

    def __init__(self, memory: ChatMemory) -> None:
        super().__init__()
        self._memory = memory
        self._positions: dict[int, int] = {}
        self._added: list[ChatMessage] = []  # so that no other message gets the id of one

    def add(self, position: int, message: ChatMessage) -> None:
        self._positions[id(message)] = position
        self._added.append(message)
        self._memory.add(message)

    def prompt(self) -> list[Sent]:
        return [self._positions.get(id(each), each) for each in self._memory.messages()]


def message_window(settings: Settings) -> Run:
    return WindowRun(MessageWindowChatMemory(max_messages=settings.messages))


def token_window(settings: Settings) -> Run:
    estimator = settings.estimator
    return WindowRun(TokenWindowChatMemory(max_tokens=settings.tokens, estimator=estimator))


def token_window_in_blocks(settings: Settings) -> Run:
    limit, estimator = settings.tokens, settings.estimator
    return WindowRun(TokenWindowChatMemory(max_tokens=limit, estimator=estimator, low_water=0.5))
