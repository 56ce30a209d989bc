"""The records of a session in little memory: as JSON values they take several times their file."""

from __future__ import annotations

import json
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

BLOCK = 2**17  # characters of JSON that are packed together


class PackedRecords(Sequence[Any]):
    """A list of JSON values that are packed in blocks.

    One block is unpacked at a time, so read them in their order, and keep no more of them than is
    needed.
    """

    def __init__(self, records: Iterable[Any] = ()) -> None:
        self._blocks: list[bytes] = []
        self._starts: list[int] = []
        self._waiting: list[str] = []  # records of the next block, as JSON
        self._size = self._count = 0
        self._unpacked: tuple[int, list[Any]] = -1, []
        for record in records:
            self.append(record)

    def append(self, record: Any) -> None:
        text = json.dumps(record, separators=(",", ":"))
        self._waiting.append(text)
        self._size += len(text)
        self._count += 1
        if self._size >= BLOCK:
            self._pack()

    def _pack(self) -> None:
        if self._waiting:
            packed = f"[{','.join(self._waiting)}]".encode()
            self._starts.append(self._count - len(self._waiting))
            self._blocks.append(zlib.compress(packed, 1))
            self._waiting, self._size = [], 0

    def _block(self, number: int) -> list[Any]:
        if self._unpacked[0] != number:
            self._unpacked = number, json.loads(zlib.decompress(self._blocks[number]))
        return self._unpacked[1]

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[n] for n in range(*place.indices(self._count))]
        if not 0 <= place < self._count:
            raise IndexError(f"there are {self._count:,} records")
        self._pack()
        number = bisect_right(self._starts, place) - 1
        return self._block(number)[place - self._starts[number]]

    def __iter__(self) -> Iterator[Any]:
        self._pack()
        for number in range(len(self._blocks)):
            yield from self._block(number)


def records_in(value: Any) -> Sequence[Any]:
    """Return the records that a value is: a list of them, or one."""
    return value if isinstance(value, list | PackedRecords) else [value]
