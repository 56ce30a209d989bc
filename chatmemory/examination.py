"""Derives data, such as incidents, of conversations while this process stores them, such as in an
import.

Otherwise the thread of a site would derive the data later, and more slowly, because it pauses
between its rounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic

from chatmemory.keeping import Rounds

SHARE = 4  # while conversations are stored, every fourth second is spent on examining
AT_ONCE = 4  # conversations between two yields of `rest`


class Examination:
    """Examines the conversations that this process stores: derives their data, such as incidents.
    The newest conversation comes first.

    While conversations are stored, `go_on` spends a quarter of the time on examining. When all are
    stored, `rest` examines those that are left, without pauses. If the process is interrupted, the
    site examines the rest later.
    """

    def __init__(self) -> None:
        self._rounds = Rounds()
        self._new: list[str] = []
        self._known: list[str] = []
        self._began, self._spent = monotonic(), 0.0
        self.examined = 0

    @property
    def left(self) -> int:
        """The number of conversations that are not examined yet. Conversations added with
        `is_known` count until `rest` has checked whether they need examining.
        """
        return len(self._new) + len(self._known)

    @property
    def total(self) -> int:
        return self.examined + self.left

    def add(self, memory_id: str, is_known: bool = False) -> None:
        """Note a stored conversation, so that it will be examined. With `is_known`, an earlier
        process stored the conversation, and may have been interrupted before examining it.
        """
        (self._known if is_known else self._new).append(memory_id)

    def go_on(self) -> None:
        """Examine the newest conversation, unless examining has already taken a quarter of the
        time.
        """
        began = monotonic()
        if self._new and SHARE * self._spent <= began - self._began:
            self._examine([self._new.pop()])
            self._spent += monotonic() - began

    def rest(self) -> Iterator[int]:
        """Examine the conversations that are left, a few at a time. After each time, yield the
        number of conversations done.
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
