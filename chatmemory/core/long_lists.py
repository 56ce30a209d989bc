"""Lists of very many messages, each made from its columns when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, Protocol, TypeVar, overload

Columns = tuple[Any, ...]
Made = TypeVar("Made", covariant=True)

# The first columns of every list: the number of the message, its type, whether it calls tools, and
# its tokens.
SEQ, TYPE, HAS_CALLS, TOKENS = range(4)


class LongList(Sequence[Made], Generic[Made]):
    """A list whose items are made from plain tuples, which begin with the four columns above.

    The items are tuples themselves, so that they may be columns as well.

    Hundreds of thousands of objects take a second to make, and as long for the garbage collector
    to go through; it passes over tuples of numbers and texts. What goes through a whole list reads
    `columns`, `seqs_of` or `tokens_of`, and calls no function for each item: where Python's stack
    of frames grows at such a call, each one takes microseconds.
    """

    __slots__ = ("_make", "columns")

    def __init__(self, columns: Sequence[Columns], make: Callable[[Columns], Made]) -> None:
        self.columns = columns
        self._make = make

    def __len__(self) -> int:
        return len(self.columns)

    def __iter__(self) -> Iterator[Made]:
        return map(self._make, self.columns)

    @overload
    def __getitem__(self, index: int) -> Made: ...
    @overload
    def __getitem__(self, index: slice) -> LongList[Made]: ...
    def __getitem__(self, index: int | slice) -> Made | LongList[Made]:
        if isinstance(index, slice):
            return LongList(self.columns[index], self._make)
        return self._make(self.columns[index])

    def picked(self, positions: Iterable[int]) -> LongList[Made]:
        """Return the items at some positions."""
        columns = self.columns
        return LongList([columns[position] for position in positions], self._make)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]  # like that of a list


class _Counted(Protocol):
    @property
    def seq(self) -> int: ...
    @property
    def tokens(self) -> int: ...


class _Typed(Protocol):
    @property
    def type(self) -> str: ...
    @property
    def tokens(self) -> int: ...


def seqs_of(messages: Sequence[_Counted]) -> list[int]:
    """Return the numbers of messages in order."""
    if isinstance(messages, LongList):
        return [columns[SEQ] for columns in messages.columns]
    return [message.seq for message in messages]


def tokens_of(messages: Sequence[_Counted]) -> list[int]:
    """Return the tokens of messages in order."""
    if isinstance(messages, LongList):
        return [columns[TOKENS] for columns in messages.columns]
    return [message.tokens for message in messages]


def types_and_tokens_of(messages: Sequence[_Typed]) -> list[tuple[str, int]]:
    """Return the types and the tokens of messages in order."""
    if isinstance(messages, LongList):
        return [(columns[TYPE], columns[TOKENS]) for columns in messages.columns]
    return [(message.type, message.tokens) for message in messages]
