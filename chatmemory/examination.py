"""Derives data, such as incidents, while a process stores conversations, such as during an import.

This is faster than the site's background thread, which would otherwise derive the data later.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic

from chatmemory.keeping import Rounds

SHARE = 4  # while conversations are stored, every fourth second is spent on examining
AT_ONCE = 4  # conversations between two yields of `rest`


class Examination:
    """Derives data, such as incidents, for the conversations that a process stores. The last added
    conversation comes first.

    After each stored conversation, the process calls `add` and `go_on`. At the end, it calls
    `rest`. `go_on` takes at most about a quarter of the process's time. If the process is
    interrupted, the site's background thread derives the rest.
    """

    def __init__(self) -> None:
        self._rounds = Rounds()
        self._new: list[str] = []
        self._known: list[str] = []
        self._began, self._spent = monotonic(), 0.0
        self.examined = 0

    @property
    def left(self) -> int:
        """The number of added conversations that still wait for `go_on` or `rest`."""
        return len(self._new) + len(self._known)

    @property
    def total(self) -> int:
        return self.examined + self.left

    def add(self, memory_id: str, is_known: bool = False) -> None:
        """Note a stored conversation whose data must be derived.

        `is_known` says that an earlier process stored the conversation and may have derived its
        data. Such a conversation waits for `rest`, which derives only missing data.
        """
        (self._known if is_known else self._new).append(memory_id)

    def go_on(self) -> None:
        """Derive the data of the newest conversation that was added without `is_known`.

        Does nothing if no such conversation is left. Also does nothing while earlier calls took
        more than a quarter of the time since this object was created.
        """
        began = monotonic()
        if self._new and SHARE * self._spent <= began - self._began:
            self._examine([self._new.pop()])
            self._spent += monotonic() - began

    def rest(self) -> Iterator[int]:
        """Derive the missing data of all conversations that are left, up to four at a time. After
        each batch, yield the number of conversations in the batch.
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
