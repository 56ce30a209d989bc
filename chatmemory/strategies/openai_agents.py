"""Runs the compacting session of the OpenAI Agents SDK. No request is sent: an object in place of
OpenAI's client does the compaction.

OpenAI's compaction keeps all user messages, and replaces all other items by one encrypted item. The
SDK compacts after the last answer to a user message, if at least 10 items are neither user messages
nor encrypted. Until then, each call sends all items.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import cast

from agents import OpenAIResponsesCompactionSession
from agents.memory import SessionABC

from chatmemory.messages.json_values import JsonDict, JsonList, JsonValue, LibraryValue
from chatmemory.messages.message import (
    AiMessage,
    ChatMessage,
    ToolExecutionResultMessage,
)
from chatmemory.strategies.runs import Run, Sent, Settings, spoken
from chatmemory.strategies.summaries import WRITTEN, Summary


def written(message: ChatMessage) -> list[JsonDict]:
    """Return a message as items of OpenAI's Responses API."""
    text = spoken(message)
    match message:
        case AiMessage():
            said = [{"type": "output_text", "text": text, "annotations": []}]
            answer = {"type": "message", "role": "assistant", "content": said}
            calls = [
                {
                    "type": "function_call",
                    "call_id": each.id or "",
                    "name": each.name or "",
                    "arguments": each.arguments or "{}",
                }
                for each in message.tool_execution_requests
                if each
            ]
            return [*([answer] if text else []), *calls]
        case ToolExecutionResultMessage():
            return [{"type": "function_call_output", "call_id": message.id or "", "output": text}]
    return [{"role": "user", "content": text}]


class _Items(SessionABC):
    """A session in this process."""

    def __init__(self) -> None:
        self.session_id = "run"
        self.session_settings = None
        self.items: JsonList = []

    async def get_items(self, limit: int | None = None) -> JsonList:
        return self.items[:] if limit is None else self.items[-limit:] if limit else []

    async def add_items(self, items: JsonList) -> None:
        self.items += items

    async def pop_item(self) -> JsonValue:
        return self.items.pop() if self.items else None

    async def clear_session(self) -> None:
        self.items.clear()


class _Responses:
    """Replaces OpenAI's client: compacts as OpenAI's service does, and keeps what it got."""

    def __init__(self) -> None:
        self.responses = self
        self.given: list[str] = []

    async def compact(self, *, model: str, input: JsonList) -> SimpleNamespace:
        self.given.append(json.dumps(input, ensure_ascii=False))
        kept = [each for each in input if each.get("role") == "user"]
        item = {"type": "compaction", "encrypted_content": WRITTEN}
        return SimpleNamespace(output=[*kept, item], usage=None)


class ResponsesCompactionRun(Run):
    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self._loop = asyncio.Runner()
        self._client = cast(LibraryValue, _Responses())
        self._items = _Items()
        self._session = OpenAIResponsesCompactionSession(
            "run", self._items, client=self._client, compaction_mode="input"
        )
        self._sent: list[Sent] = []  # what each item stands for, in the order of the items

    def take(self, position: int, message: ChatMessage) -> None:
        items: JsonList = written(message)
        self._sent += [position] * len(items)
        self._loop.run(self._session.add_items(items))

    def memory(self) -> Sequence[Sent]:
        return list(dict.fromkeys(self._sent))

    def end_turn(self) -> None:
        before = len(self._client.given)
        users = [
            sent
            for item, sent in zip(self._items.items, self._sent, strict=True)
            if item.get("role") == "user"
        ]
        self._loop.run(self._session.run_compaction({"response_id": "run", "store": False}))
        if self._client.given[before:]:
            self._sent = [*users, Summary(before)]
            self.billed += self._client.given[before:]

    def close(self) -> None:
        self._loop.close()
