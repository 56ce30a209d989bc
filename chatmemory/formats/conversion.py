"""The common part of readers and writers: one message after the other, and what each loses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from chatmemory.core.exceptions import InvalidMessage, UnreadableTranscript
from chatmemory.core.messages import (
    AiMessage,
    ChatMessage,
    CustomMessage,
    SystemMessage,
    ToolExecutionRequest,
)
from chatmemory.formats.format import Loss, Rendered, Rendering, Transcript
from chatmemory.formats.json_values import unread
from chatmemory.formats.pairing import Calls


class _Conversion:
    def __init__(self, taken: frozenset[str] = frozenset()) -> None:
        self.calls = Calls(taken)
        self.losses: list[Loss] = []
        self._place = ""

    def at(self, index: int) -> None:
        self._place = f"message {index + 1}"

    def lose(self, what: str) -> None:
        """Record a loss in the message at hand."""
        self.losses.append(Loss(self._place, what))


class Reader(_Conversion, ABC):
    """Reads the turns of one conversation; subclasses read one turn."""

    def __init__(self, taken: frozenset[str] = frozenset()) -> None:
        super().__init__(taken)
        self.messages: list[ChatMessage] = []

    def read_all(self, turns: Sequence[Any]) -> Transcript:
        """Return the messages of all turns. Raises UnreadableTranscript with a turn's index."""
        places: list[int] = []
        for index, turn in enumerate(turns):
            self.at(index)
            try:
                for message in self.read(turn):
                    self.add(message)
            except InvalidMessage as error:
                raise UnreadableTranscript(index, str(error)) from error
            places += [index] * (len(self.messages) - len(places))
        return Transcript(None, tuple(self.messages), tuple(self.losses), turns=tuple(places))

    @abstractmethod
    def read(self, turn: Any) -> Iterable[ChatMessage]:
        """Return the messages of one turn. Raises InvalidMessage."""

    def add(self, message: ChatMessage) -> None:
        self.messages.append(message)

    def expect(self, value: Mapping[str, Any], *read: str) -> None:
        """Record every property that is not in `read` as a loss."""
        self.losses += unread(self._place, value, read)

    def system(self, text: str | None) -> Iterator[SystemMessage]:
        """Yield a system message; a blank one, which LangChain4j refuses, is a loss."""
        if text is None or all(character <= " " for character in text):
            self.lose("a blank system message")
        else:
            yield SystemMessage(text)


class Writer(_Conversion, ABC):
    """Writes the messages of one conversation; subclasses write one message."""

    def write_all(self, messages: Iterable[ChatMessage]) -> Rendered:
        """Return all messages as JSON values. Attributes and custom messages are losses."""
        return self.write_each(messages).whole()

    def write_each(self, messages: Iterable[ChatMessage]) -> Rendering:
        """Return the same, to be written message by message."""
        return Rendering(self._values(messages), self.losses)

    def _values(self, messages: Iterable[ChatMessage]) -> Iterator[dict[str, Any]]:
        for index, message in enumerate(messages):
            self.at(index)
            if isinstance(message, CustomMessage):
                self.lose(f"a whole {message.type} message")
                continue
            if getattr(message, "attributes", None):
                self.lose("attributes")
            yield from self.write(message)

    @abstractmethod
    def write(self, message: ChatMessage) -> Iterable[dict[str, Any]]:
        """Return the JSON values of one message, which is not a custom one."""

    def requests(self, message: AiMessage) -> list[ToolExecutionRequest]:
        """Return the tool calls of a message; its thinking and empty calls are losses."""
        if message.thinking:
            self.lose("thinking")
        calls = [call for call in message.tool_execution_requests if call is not None]
        if len(calls) < len(message.tool_execution_requests):
            self.lose("an empty tool call")
        return calls
