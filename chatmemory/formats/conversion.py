"""What readers and writers of formats share: one message after the other, and what each loses."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import count
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


def is_list_of(value: Any, *keys: str) -> bool:
    """Return whether a value is a list whose first item is an object with all these keys."""
    return (
        isinstance(value, list)
        and bool(value)
        and isinstance(value[0], dict)
        and all(key in value[0] for key in keys)
    )


def name_of(value: Mapping[str, Any], *keys: str) -> str | None:
    """Return the first of these properties that can be a conversation's id: text or a number."""
    for key in keys:
        found = value.get(key)
        if isinstance(found, str | int) and not isinstance(found, bool) and found != "":
            return str(found)
    return None


def unread(where: str, value: Mapping[str, Any], read: Collection[str]) -> Iterator[Loss]:
    """Yield a loss for each property that is not in `read` and holds something."""
    for name in value:
        if name not in read and value[name] not in (None, "", [], {}):
            yield Loss(where, f"the property {name!r}")


def object_in(value: Any, what: str) -> dict[str, Any]:
    """Return the value, which must be a JSON object. Raises InvalidMessage."""
    if not isinstance(value, dict):
        raise InvalidMessage(what)
    return value


def text_in(value: Mapping[str, Any], name: str) -> str | None:
    """Return a property that must be a string or missing. Raises InvalidMessage."""
    found = value.get(name)
    if found is None or isinstance(found, str):
        return found
    raise InvalidMessage(f"{name} must be a string")


def arguments_text(value: Any) -> str | None:
    """Return a call's arguments as JSON text; text stays as it is. Raises InvalidMessage."""
    if value is None or isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except (RecursionError, ValueError) as error:
        why = "the arguments are nested too deeply or hold too long a number"
        raise InvalidMessage(why) from error


class Calls:
    """The calls of a conversation so far: paired by id, and by position where there are no ids.

    `taken` holds the ids that made-up ones must not repeat.
    """

    def __init__(self, taken: frozenset[str] = frozenset()) -> None:
        self._new_ids = (id for n in count(1) if (id := f"call_{n}") not in taken)
        self._names: dict[str, str | None] = {}
        self._waiting: dict[str, None] = {}

    def opened(self, id: str | None, name: str | None) -> str:
        """Return the id of a new call: its own, else the next free of `call_1`, `call_2`…"""
        id = id or next(self._new_ids)
        self._names[id] = name
        self._waiting[id] = None
        return id

    def answered(self, id: str | None, name: str | None = None) -> tuple[str | None, str | None]:
        """Return the call id and tool name of a result; without an id the oldest open call's."""
        id = id or next(iter(self._waiting), None)
        if id is None:
            return None, name
        self._waiting.pop(id, None)
        return id, name or self._names.get(id)

    def interrupted(self) -> None:
        """Close all open calls: a result after a user message cannot answer an earlier call."""
        self._waiting.clear()
