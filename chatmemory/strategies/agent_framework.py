"""Runs compaction strategies of Microsoft's Agent Framework before each model call."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Sequence

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it warns of its own experimental features
    from agent_framework import Content, Message, SlidingWindowStrategy, apply_compaction

from chatmemory.messages.message import (
    AiMessage,
    ChatMessage,
    ToolExecutionResultMessage,
)
from chatmemory.strategies.runs import Run, Sent, Settings, spoken


def written(position: int, message: ChatMessage) -> Message:
    """Return a message as an object of the Agent Framework. The id of the object is the message's
    position in the conversation.
    """
    text, id = spoken(message), str(position)
    match message:
        case AiMessage():
            said = [Content.from_text(text)] if text else []
            calls = [
                Content.from_function_call(each.id or "", each.name or "", arguments=each.arguments)
                for each in message.tool_execution_requests
                if each
            ]
            return Message("assistant", [*said, *calls], message_id=id)
        case ToolExecutionResultMessage():
            result = Content.from_function_result(message.id or "", result=text)
            return Message("tool", [result], message_id=id)
    return Message("user", [text], message_id=id)


class SlidingRun(Run):
    """Runs `SlidingWindowStrategy(keep_last_groups=…)`. A group is a message, or a tool call with
    its results.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self._loop = asyncio.Runner()
        self._strategy = SlidingWindowStrategy(keep_last_groups=settings.messages)
        self._messages: list[Message] = []

    def take(self, position: int, message: ChatMessage) -> None:
        self._messages.append(written(position, message))

    def memory(self) -> Sequence[Sent]:
        kept = self._loop.run(apply_compaction(self._messages, strategy=self._strategy))
        return [int(each.message_id or 0) for each in kept]

    def close(self) -> None:
        self._loop.close()
