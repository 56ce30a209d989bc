"""What a process keeps of the calls that it has stored last."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from operator import is_not
from threading import Lock
from typing import Any, Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")

NUMBER = 64  # of values that are kept
SIZE = 2**25  # of these values together


class Newest(Generic[Key, Value]):
    """The values that were put in last, by key."""

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
        """Keep a value of this size in place of the former one, and forget the oldest ones."""
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


def same_beginning(one: Sequence[Any], other: Sequence[Any]) -> int:
    """Return with how many objects both lists begin: with the same ones, not with equal ones."""
    shortest = min(len(one), len(other))
    differ = (n for n, is_other in enumerate(map(is_not, one, other)) if is_other)
    return next(differ, shortest)
