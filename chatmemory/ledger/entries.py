"""Entries of a stored window, with the numbers of their message and stay, and their rank."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from chatmemory.core.codec import message_from_frame, message_to_json
from chatmemory.core.exceptions import CorruptRow, InvalidMessage
from chatmemory.core.messages import TYPES, ChatMessage, MessageType
from chatmemory.core.window import Entry, Window
from chatmemory.models import Message


@dataclass(slots=True, eq=False)
class StayEntry(Entry):
    """An entry with the numbers of its rows; its key is `n`, the number of its stay.

    `size` are the bytes of its message's JSON. A new message has that JSON as `payload`.
    """

    n: int = 0
    seq: int = 0
    rank: int = 0
    size: int = 0
    origin: str = Message.Origin.SAID
    payload: str = ""


def numbered(
    entry: Entry, n: int, seq: int, rank: int, origin: str = "", payload: str = ""
) -> StayEntry:
    """Return an entry with numbers; `payload` is the JSON of a message that is not stored yet."""
    if isinstance(entry, StayEntry):
        size = entry.size
    else:
        payload = payload or message_to_json(entry.message)
        size = size_of(payload)
    return StayEntry(
        type=entry.type,
        has_calls=entry.has_calls,
        tokens=entry.tokens,
        message=entry.message,
        key=n,
        pinned=entry.pinned,
        n=n,
        seq=seq,
        rank=rank,
        size=size,
        origin=origin or Message.Origin.SAID,
        payload=payload,
    )


def size_of(payload: str) -> int:
    """Return the bytes of a message's JSON."""
    return len(payload.encode(errors="surrogatepass"))


class StayRow(Protocol):
    """A stay, or a row with these columns of one."""

    @property
    def n(self) -> int: ...
    @property
    def seq(self) -> int: ...
    @property
    def rank(self) -> int: ...
    @property
    def type(self) -> str: ...
    @property
    def has_calls(self) -> bool: ...
    @property
    def tokens(self) -> int: ...
    @property
    def pinned(self) -> bool: ...
    @property
    def size(self) -> int: ...


def stay_entry(stay: StayRow, message: ChatMessage | None = None) -> StayEntry:
    """Return the entry of a stored stay, with its message if that has been read."""
    return StayEntry(
        type=TYPES[stay.type],
        has_calls=bool(stay.has_calls),  # SQLite has 0 and 1
        tokens=stay.tokens,
        message=message,
        key=stay.n,
        pinned=bool(stay.pinned),
        n=stay.n,
        seq=stay.seq,
        rank=stay.rank,
        size=stay.size,
    )


def stay_entries(entries: Iterable[Entry]) -> Iterator[StayEntry]:
    """Yield the entries of a stored window with their actual type."""
    for entry in entries:
        assert isinstance(entry, StayEntry)
        yield entry


def unprotected(window: Window) -> Iterator[StayEntry]:
    """Yield the entries of a stored window without pinned ones and a leading system message."""
    is_first = True
    for entry in stay_entries(window):
        if entry.pinned:
            continue
        if not is_first or entry.type is not MessageType.SYSTEM:
            yield entry
        is_first = False


class MessageRow(Protocol):
    """A row that holds a message: the frame of its JSON, and its text."""

    @property
    def memory_id(self) -> str: ...
    @property
    def seq(self) -> int: ...
    @property
    def frame(self) -> str: ...
    @property
    def text(self) -> str: ...


def read_message(row: MessageRow) -> ChatMessage:
    """Return the message of a row. Raises CorruptRow if it cannot be read."""
    try:
        message = message_from_frame(row.frame, row.text)
    except InvalidMessage as error:
        raise CorruptRow(
            f"message #{row.seq} of {row.memory_id!r} cannot be read: {error}"
        ) from error
    if message is None:
        raise CorruptRow(f"message #{row.seq} of {row.memory_id!r} is null")
    return message
