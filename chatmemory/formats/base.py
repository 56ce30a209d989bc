"""What every format has in common."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from chatmemory.core.exceptions import InvalidMessage, UnreadableTranscript
from chatmemory.core.messages import ChatMessage


@dataclass(frozen=True)
class Loss:
    """Something that the other side has no place for, and where it was."""

    where: str
    what: str


@dataclass(frozen=True)
class Transcript:
    """One conversation of a file. `name` is its id there, or None."""

    name: str | None
    messages: tuple[ChatMessage, ...]
    losses: tuple[Loss, ...] = ()


@dataclass(frozen=True)
class Refused:
    """A conversation of a file that cannot be read, and why; the others are."""

    where: str
    why: str


@dataclass(frozen=True)
class Rendered:
    """Messages in a format's own shape."""

    value: list[dict[str, Any]]
    losses: tuple[Loss, ...] = ()


@dataclass(frozen=True)
class RawTranscript:
    """A conversation found in a file, not read yet."""

    name: str | None
    turns: Sequence[Any]
    losses: tuple[Loss, ...] = ()


class Format(Protocol):
    """A module of this package."""

    NAME: str

    def find(self, value: Any) -> RawTranscript | None:
        """The conversation that this JSON value is in this format; None if it is none."""

    def parse(self, turns: Sequence[Any]) -> Transcript: ...

    def render(self, messages: Sequence[ChatMessage]) -> Rendered: ...


@dataclass
class Calls:
    """Pairs tool calls with their results: by id, and by position where there are no ids."""

    taken: frozenset[str] = frozenset()
    _made: int = 0
    _names: dict[str, str | None] = field(default_factory=dict)
    _waiting: OrderedDict[str, None] = field(default_factory=OrderedDict)

    def opened(self, id: str | None, name: str | None) -> str:
        """The id of a call; where it has none, the next of `call_1`, `call_2`… not in `taken`."""
        id = id or self._new_id()
        self._names[id] = name
        self._waiting[id] = None
        return id

    def answered(self, id: str | None, name: str | None = None) -> tuple[str | None, str | None]:
        """The id and tool name of a result: of the call it names, else of the oldest open one."""
        id = id or next(iter(self._waiting), None)
        if id is None:
            return None, name
        self._waiting.pop(id, None)
        return id, name or self._names.get(id)

    def interrupted(self) -> None:
        """The user spoke: no result without an id answers a call from before that."""
        self._waiting.clear()

    def _new_id(self) -> str:
        self._made += 1
        while (id := f"call_{self._made}") in self.taken:
            self._made += 1
        return id


def objects(turns: Sequence[Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Turns that are JSON objects, with their index. Raises UnreadableTranscript for others."""
    for index, turn in enumerate(turns):
        if not isinstance(turn, dict):
            raise UnreadableTranscript(index, "a message is a JSON object")
        yield index, turn


def is_list_of(value: Any, *keys: str) -> bool:
    """A non-empty list of objects, the first of which has all these keys."""
    return (
        isinstance(value, list)
        and bool(value)
        and isinstance(value[0], dict)
        and all(key in value[0] for key in keys)
    )


def name_of(value: Mapping[str, Any], *keys: str) -> str | None:
    """The id of a conversation: the first of these properties that is a text or a number."""
    for key in keys:
        found = value.get(key)
        if isinstance(found, str | int) and not isinstance(found, bool) and found != "":
            return str(found)
    return None


def unread(where: str, value: Mapping[str, Any], read: Collection[str]) -> Iterator[Loss]:
    """A loss for each property that is not `read` and holds something."""
    for name in value:
        if name not in read and value[name] not in (None, "", [], {}):
            yield Loss(where, f"the property {name!r}")


def arguments_text(value: Any) -> str | None:
    """A call's arguments as JSON text; text stays as it is. Raises InvalidMessage."""
    if value is None or isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except (RecursionError, ValueError) as error:
        why = "the arguments are nested too deeply or hold too long a number"
        raise InvalidMessage(why) from error


def text_or_none(value: Any, index: int, what: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise UnreadableTranscript(index, f"{what} must be a string")
