"""Entries of a stored window, with the numbers of their message and stay, and their rank."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from chatmemory.core.codec import message_from_frame, message_to_json
from chatmemory.core.eviction import Reason
from chatmemory.core.exceptions import CorruptRow, InvalidMessage
from chatmemory.core.messages import TYPES, ChatMessage
from chatmemory.core.transitions import Transition
from chatmemory.core.window import Entry
from chatmemory.models import Message


@dataclass(slots=True, eq=False)
class StayEntry(Entry):
    """An entry with the numbers of its rows; its key is `n`, the number of its stay.

    `size` are the bytes of its message's JSON.
    """

    n: int = 0
    seq: int = 0
    rank: int = 0
    size: int = 0
    origin: str = Message.Origin.SAID


def numbered(entry: Entry, n: int, seq: int, rank: int, origin: str = "") -> StayEntry:
    """Return an entry with numbers."""
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
        size=entry.size if isinstance(entry, StayEntry) else size_of(entry.message),
        origin=origin or Message.Origin.SAID,
    )


def size_of(message: ChatMessage | None) -> int:
    """Return the bytes of a message's JSON."""
    return len(message_to_json(message).encode(errors="surrogatepass"))


STAY_COLUMNS = ("n", "seq", "rank", "type", "has_calls", "tokens", "pinned", "size")


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
        has_calls=stay.has_calls,
        tokens=stay.tokens,
        message=message,
        key=stay.n,
        pinned=stay.pinned,
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


class Leaving(NamedTuple):
    """An entry whose stay ends, with the reason and the entry because of which it does."""

    entry: StayEntry
    reason: Reason
    because_seq: int | None


class NumberedTransition(NamedTuple):
    """A transition on a stored window: which stays begin, and which end, in order.

    An arrival that the transition evicts is in both.
    """

    transition: Transition
    entering: tuple[StayEntry, ...]
    leaving: tuple[Leaving, ...]

    @classmethod
    def of(cls, transition: Transition, last_stay: int) -> NumberedTransition:
        """All entries must be numbered; arrivals up to `last_stay` have a stay already."""
        arrivals = stay_entries(transition.arrivals)
        entries = stay_entries(eviction.entry for eviction in transition.evictions)
        leaving = (
            Leaving(entry, eviction.reason, getattr(eviction.because, "seq", None))
            for entry, eviction in zip(entries, transition.evictions, strict=True)
        )
        entering = tuple(entry for entry in arrivals if entry.n > last_stay)
        return cls(transition, entering, tuple(leaving))


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
