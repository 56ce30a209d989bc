"""Caches what functions find in short texts, because each message of a conversation is read again
whenever another message comes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, update_wrapper
from typing import Concatenate, Generic, ParamSpec, TypeVar

# Texts of users, and of assistants, whose reading is kept in the process, and the characters of the
# longest one. Of a thousand messages, five hundred are by users.
MOST_KEPT, LONGEST_KEPT = 512, 2_000
T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R")


class KeptReading(Generic[T, P, R]):
    """A function that reads a text, with a cache of up to `most` results. Results for texts of more
    than 2,000 characters are not cached.

    `length_of` returns the number of characters in a text. The text can be a string, or an object
    such as a `UserText`.
    """

    def __init__(
        self, read: Callable[Concatenate[T, P], R], most: int, length_of: Callable[[T], int]
    ) -> None:
        self._read, self._length_of = read, length_of
        self._kept = lru_cache(maxsize=most)(read)
        update_wrapper(self, read)

    def __call__(self, text: T, *args: P.args, **kwargs: P.kwargs) -> R:
        is_short = self._length_of(text) <= LONGEST_KEPT
        # lru_cache's types want hashable arguments
        return self._kept(text, *args, **kwargs) if is_short else self._read(text, *args, **kwargs)  # type: ignore[arg-type]

    def forget(self) -> None:
        """Empty the cache."""
        self._kept.cache_clear()


def kept_if_short(
    most: int,
) -> Callable[[Callable[Concatenate[str, P], R]], KeptReading[str, P, R]]:
    """Return a decorator that caches a function's results for texts of at most 2,000 characters.
    The cache holds up to `most` results, namely those used last.
    """
    return lambda read: KeptReading(read, most, len)
