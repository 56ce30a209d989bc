"""What every format has in common."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from chatmemory.core.exceptions import UnreadableTranscript
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

    _made: int = 0
    _open: deque[tuple[str, str | None]] = field(default_factory=deque)

    def opened(self, id: str | None, name: str | None) -> str:
        """The id of a call; `call_1`, `call_2`… where it has none."""
        self._made += 1
        id = id or f"call_{self._made}"
        self._open.append((id, name))
        return id

    def answered(self, id: str | None, name: str | None = None) -> tuple[str | None, str | None]:
        """The id and tool name of a result: of the call it names, else of the oldest open one."""
        for call in self._open:
            if id is None or call[0] == id:
                self._open.remove(call)
                return call[0], name or call[1]
        return id, name


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


def text_or_none(value: Any, index: int, what: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise UnreadableTranscript(index, f"{what} must be a string")
