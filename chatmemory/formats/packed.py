"""Lists that save memory: their items are pickled and compressed. As Python objects, the items of a
file would take several times the size of the file.
"""

from __future__ import annotations

import pickle
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from itertools import chain
from operator import eq
from typing import TypeVar, overload

from chatmemory.messages.json_values import JsonValue

T = TypeVar("T")
BLOCK = 2**16  # bytes of the items that are compressed together
BLOCKS = 3  # unpacked at a time


class Packed(Sequence[T]):
    """A list whose items are pickled, and compressed in blocks.

    Reading an item decompresses its block. Go through the items in order, because only a few
    decompressed blocks are kept. A change of an item is not stored until you assign the item to its
    index. An item that you assign in a compressed block is stored uncompressed.
    """

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._blocks: list[bytes] = []
        self._ends: list[int] = []  # the number of items up to the end of each block
        self._waiting: list[bytes] = []  # the items after the last block
        self._size = 0  # their bytes
        self._replaced: dict[int, bytes] = {}
        self._unpacked: dict[int, list[T]] = {}
        for item in items:
            self.append(item)

    def append(self, item: T) -> None:
        packed = pickle.dumps(item, pickle.HIGHEST_PROTOCOL)
        self._waiting.append(packed)
        self._size += len(packed)
        if self._size >= BLOCK:
            self._ends.append(len(self))
            self._blocks.append(zlib.compress(b"".join(self._waiting), 1))
            self._waiting, self._size = [], 0

    def __setitem__(self, place: int, item: T) -> None:
        packed, at = pickle.dumps(item, pickle.HIGHEST_PROTOCOL), self._place(place)
        if at < self._packed:
            self._replaced[at] = packed
        else:
            self._size += len(packed) - len(self._waiting[at - self._packed])
            self._waiting[at - self._packed] = packed

    def _place(self, place: int) -> int:
        if not -len(self) <= place < len(self):
            raise IndexError(f"there are {len(self):,} items")
        return place % len(self)

    @property
    def _packed(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __len__(self) -> int:
        return self._packed + len(self._waiting)

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[T, ...]: ...
    def __getitem__(self, place: int | slice) -> T | tuple[T, ...]:
        if isinstance(place, slice):
            return tuple(self[n] for n in range(*place.indices(len(self))))
        at = self._place(place)
        if at in self._replaced:
            found: T = _item(self._replaced[at])
        elif at >= self._packed:
            found = _item(self._waiting[at - self._packed])
        else:
            number = bisect_right(self._ends, at)
            found = self._block(number)[at - self._ends[number]]
        return found

    def __iter__(self) -> Iterator[T]:
        blocks = (self._block(number) for number in range(len(self._blocks)))
        waiting = map(_item, self._waiting)
        for place, item in enumerate(chain(chain.from_iterable(blocks), waiting)):
            yield _item(self._replaced[place]) if place in self._replaced else item

    def __eq__(self, other: object) -> bool:
        """Return whether another Packed, a list or a tuple has the same items."""
        if not isinstance(other, list | tuple | Packed):
            return NotImplemented
        return len(self) == len(other) and all(map(eq, self, other))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def _block(self, number: int) -> list[T]:
        """Return the items of a block. The block stays uncompressed until several other blocks were
        used.
        """
        found = self._unpacked.pop(number, None)
        if found is None:
            first = self._ends[number - 1] if number else 0
            block = BytesIO(zlib.decompress(self._blocks[number]))
            found = [pickle.load(block) for _ in range(first, self._ends[number])]  # noqa: S301 (packed in this process)
            if len(self._unpacked) == BLOCKS:
                del self._unpacked[next(iter(self._unpacked))]
        self._unpacked[number] = found
        return found


def is_list(value: JsonValue) -> bool:
    """Return whether a JSON value is a list or a `Packed` list."""
    return isinstance(value, list | Packed)


def _item(packed: bytes) -> JsonValue:
    return pickle.loads(packed)  # noqa: S301 (packed in this process)
