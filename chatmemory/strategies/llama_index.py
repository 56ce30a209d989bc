"""Runs LlamaIndex's `Memory` without memory blocks, with a chat store in this process.

An agent sends its system prompt first, apart from its memory. LlamaIndex counts no tokens for tool
calls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import lru_cache

from llama_index.core.base.llms.types import ChatMessage as Written
from llama_index.core.base.llms.types import TextBlock, ToolCallBlock
from llama_index.core.memory import Memory
from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore, MessageStatus
from llama_index.core.utils import get_tokenizer
from pydantic import PrivateAttr

from chatmemory.messages.message import (
    AiMessage,
    ChatMessage,
    ToolExecutionResultMessage,
)
from chatmemory.strategies.runs import Run, Sent, Settings, flushed_at, spoken

COUNTED = 50_000  # texts whose tokens are remembered


def written(message: ChatMessage) -> Written:
    """Return a message as an object of LlamaIndex."""
    text = spoken(message)
    match message:
        case AiMessage():
            said = [TextBlock(text=text)] if text else []
            calls = [
                ToolCallBlock(
                    tool_call_id=each.id,
                    tool_name=each.name or "",
                    tool_kwargs=each.arguments or "",
                )
                for each in message.tool_execution_requests
                if each
            ]
            return Written(role="assistant", blocks=[*said, *calls])
        case ToolExecutionResultMessage():
            about = {"tool_call_id": message.id, "name": message.tool_name}
            return Written(role="tool", blocks=[TextBlock(text=text)], additional_kwargs=about)
    return Written(role="user", blocks=[TextBlock(text=text)])


class _Store(AsyncDBChatStore):
    """A chat store in this process. It keeps the active messages only."""

    _active: list[Written] = PrivateAttr(default_factory=list)

    async def get_messages(
        self, key: str, status: object = None, limit: object = None, offset: object = None
    ) -> list[Written]:
        return self._active[:] if status in (None, MessageStatus.ACTIVE) else []

    async def count_messages(self, key: str, status: object = None) -> int:
        return len(await self.get_messages(key, status))

    async def add_message(self, key: str, message: Written, status: object = None) -> None:
        self._active.append(message)

    async def add_messages(self, key: str, messages: list[Written], status: object = None) -> None:
        self._active += messages

    async def set_messages(self, key: str, messages: list[Written], status: object = None) -> None:
        self._active = list(messages)

    async def delete_message(self, key: str, idx: int) -> Written | None:
        return self._active.pop(idx)

    async def delete_messages(self, key: str, status: object = None) -> None:
        self._active.clear()

    async def delete_oldest_messages(self, key: str, n: int) -> list[Written]:
        oldest, self._active = self._active[:n], self._active[n:]
        return oldest

    async def archive_oldest_messages(self, key: str, n: int) -> list[Written]:
        return await self.delete_oldest_messages(key, n)

    async def get_keys(self) -> list[str]:
        return ["run"]


class MemoryRun(Run):
    """Runs `Memory.from_defaults(token_limit=…, token_flush_size=…)`. When the messages have more
    than 70 % of `token_limit`, LlamaIndex removes the oldest messages. It removes about a tenth of
    `token_limit` at once.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self._loop = asyncio.Runner()
        self._memory = Memory.from_defaults(
            session_id="run",
            token_limit=settings.tokens,
            token_flush_size=flushed_at(settings.tokens),
            tokenizer_fn=_remembering(get_tokenizer()),
            chat_store=_Store(),
        )
        self._positions: dict[int, int] = {}
        self._written: list[Written] = []  # so that no other message gets the id of one

    def take(self, position: int, message: ChatMessage) -> None:
        new = written(message)
        self._positions[id(new)] = position
        self._written.append(new)
        self._loop.run(self._memory.aput(new))

    def memory(self) -> Sequence[Sent]:
        return [self._positions[id(each)] for each in self._loop.run(self._memory.aget())]

    def close(self) -> None:
        self._loop.close()


def _remembering(tokens_of: Callable[[str], list[object]]) -> Callable[[str], list[int]]:
    """Return a tokenizer that caches its results, because the library counts all messages with each
    add.
    """
    return lru_cache(COUNTED)(lambda text: list(range(len(tokens_of(text)))))
