"""Derives data, such as incidents, in the same process that stores the conversations: in an import,
for example.

Without this, the thread of a site would derive the data later and more slowly.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic

from chatmemory.keeping import Rounds

SHARE = 4  # while conversations are stored, every fourth second is spent on examining
AT_ONCE = 4  # conversations between two yields of `rest`


class Examination:
    """Derives data, such as incidents, for the conversations that this process stores, newest
    first.

    While conversations are stored, `go_on` takes a quarter of the time. When all are stored, `rest`
    derives what is left. If the process is interrupted, the thread of the site derives the data
    later.
    """

    def __init__(self) -> None:
        self._rounds = Rounds()
        self._new: list[str] = []
        self._known: list[str] = []
        self._began, self._spent = monotonic(), 0.0
        self.examined = 0

    @property
    def left(self) -> int:
        """The number of conversations that are not examined yet.

        Conversations that were added with `is_known` count until `rest` has checked them.
        """
        return len(self._new) + len(self._known)

    @property
    def total(self) -> int:
        return self.examined + self.left

    def add(self, memory_id: str, is_known: bool = False) -> None:
        """Note a stored conversation, so that its data are derived.

        With `is_known`, an earlier process stored the conversation and may have been interrupted
        before deriving its data. Such a conversation waits for `rest`, which derives only what is
        missing.
        """
        (self._known if is_known else self._new).append(memory_id)

    def go_on(self) -> None:
        """Examine the newest conversation that this process stored and did not examine yet. Does
        nothing if there is none, or if examining has already taken a quarter of the time.
        """
        began = monotonic()
        if self._new and SHARE * self._spent <= began - self._began:
            self._examine([self._new.pop()])
            self._spent += monotonic() - began

    def rest(self) -> Iterator[int]:
        """Examine all conversations that are left, a few at a time. After each few, yields how many
        they were.
        """
        for waiting in (self._new, self._known):
            while waiting:
                some = waiting[: -AT_ONCE - 1 : -1]
                self._examine(self._rounds.stale(some))
                del waiting[-AT_ONCE:]
                yield len(some)
        self._rounds.end()

    def _examine(self, memory_ids: list[str]) -> None:
        self._rounds.examine(memory_ids)
        self.examined += len(memory_ids)
