"""Lists of entries in little memory: one step can begin hundreds of thousands of stays."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import overload

from chatmemory.core.messages import ChatMessage, MessageType
from chatmemory.ledger.entries import StayEntry

_TYPES = tuple(MessageType)
_PLACES = {type: place for place, type in enumerate(_TYPES)}


class StayList(Sequence[StayEntry]):
    """Entries, kept as columns of numbers and made again when they are asked for."""

    def __init__(self, entries: Iterable[StayEntry] = ()) -> None:
        self._numbers, self._seqs = array("q"), array("q")
        self._ranks, self._tokens = array("q"), array("q")
        self._facts = bytearray()  # of each, its type, whether it calls tools and is pinned
        self._messages: dict[int, ChatMessage] = {}  # by number
        self.extend(entries)

    def extend(self, entries: Iterable[StayEntry]) -> None:
        for entry in entries:
            self.append(entry)

    def append(self, entry: StayEntry) -> None:
        self._numbers.append(entry.n)
        self._seqs.append(entry.seq)
        self._ranks.append(entry.rank)
        self._tokens.append(entry.tokens)
        self._facts.append(_PLACES[entry.type] << 2 | entry.has_calls << 1 | entry.pinned)
        if entry.message is not None:
            self._messages[entry.n] = entry.message

    def keep(self, stays: Callable[[StayEntry], bool]) -> StayList:
        """Return the entries that stay: the list itself, if all do."""
        return self if all(map(stays, self)) else StayList(filter(stays, self))

    def by_rank(self) -> StayList:
        """Return the entries in the order of their ranks: the list itself, if they are."""
        ranks = self._ranks
        if all(map(int.__le__, ranks, islice(ranks, 1, None))):
            return self
        return StayList(map(self._made, sorted(range(len(self)), key=ranks.__getitem__)))

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[StayEntry]:
        return map(self._made, range(len(self)))

    @overload
    def __getitem__(self, index: int) -> StayEntry: ...
    @overload
    def __getitem__(self, index: slice) -> list[StayEntry]: ...
    def __getitem__(self, index: int | slice) -> StayEntry | list[StayEntry]:
        positions = range(len(self))[index]
        if isinstance(positions, range):
            return [self._made(position) for position in positions]
        return self._made(positions)

    def _made(self, position: int) -> StayEntry:
        facts, n = self._facts[position], self._numbers[position]
        return StayEntry(
            type=_TYPES[facts >> 2],
            has_calls=bool(facts & 2),
            tokens=self._tokens[position],
            message=self._messages.get(n),
            key=n,
            pinned=bool(facts & 1),
            n=n,
            seq=self._seqs[position],
            rank=self._ranks[position],
        )
