"""A bounded cache of data about the newest calls that this process has stored."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from operator import is_not
from threading import Lock
from typing import Generic, TypeVar

from chatmemory.messages.json_values import JsonValue

Key = TypeVar("Key")
Value = TypeVar("Value")

NUMBER = 64  # of values that are kept
SIZE = 2**25  # of these values together


class Newest(Generic[Key, Value]):
    """A cache of the values that were put in last, bounded in number and total size."""

    def __init__(self) -> None:
        self._values: OrderedDict[Key, tuple[Value, int]] = OrderedDict()
        self._lock = Lock()
        self._size = 0

    def __contains__(self, key: Key) -> bool:
        return key in self._values

    def get(self, key: Key) -> Value | None:
        with self._lock:
            found = self._values.get(key)
        return found[0] if found else None

    def put(self, key: Key, value: Value, size: int) -> None:
        """Store a value, and drop the oldest values while the cache has too many values or their
        total size is too large. `size` is the size of this value in a unit that the caller chooses,
        such as characters.
        """
        with self._lock:
            self._size += size - self._values.pop(key, (value, 0))[1]
            self._values[key] = value, size
            while self._values and (len(self._values) > NUMBER or self._size > SIZE):
                _, (_, freed) = self._values.popitem(last=False)
                self._size -= freed

    def values(self) -> list[Value]:
        """Return all values, the newest first."""
        with self._lock:
            return [value for value, _ in reversed(self._values.values())]


def same_beginning(one: Sequence[JsonValue], other: Sequence[JsonValue]) -> int:
    """Return the number of leading objects that are identical (`is`, not `==`) in both lists."""
    shortest = min(len(one), len(other))
    differ = (n for n, is_other in enumerate(map(is_not, one, other)) if is_other)
    return next(differ, shortest)
