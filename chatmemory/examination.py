"""Examines conversations while this process stores many of them: derives their rows beside the
storing.

An import would otherwise leave its conversations to the thread of a site, which pauses between its
rounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic

from chatmemory.keeping import Rounds

SHARE = 4  # while conversations are stored, every fourth second is spent on examining
AT_ONCE = 4  # conversations between two yields of `rest`


class Examination:
    """The examination of the conversations that this process stores, newest conversation first.

    Beside storing, examining takes a quarter of the time, as the thread of a site does. Afterwards
    `rest` examines what is left, without pauses. Conversations that an interrupted process leaves
    are examined by the site.
    """

    def __init__(self) -> None:
        self._rounds = Rounds()
        self._new: list[str] = []
        self._known: list[str] = []
        self._began, self._spent = monotonic(), 0.0
        self.examined = 0

    @property
    def left(self) -> int:
        """The number of conversations that are not examined yet. Known ones count until `rest` has
        looked at them.
        """
        return len(self._new) + len(self._known)

    @property
    def total(self) -> int:
        return self.examined + self.left

    def add(self, memory_id: str, is_known: bool = False) -> None:
        """Take a conversation that was stored just now. With `is_known`, an earlier process stored
        the conversation, and may have been interrupted before it was examined.
        """
        (self._known if is_known else self._new).append(memory_id)

    def go_on(self) -> None:
        """Examine the newest conversation if examining has taken less than its share of the
        time.
        """
        began = monotonic()
        if self._new and SHARE * self._spent <= began - self._began:
            self._examine([self._new.pop()])
            self._spent += monotonic() - began

    def rest(self) -> Iterator[int]:
        """Examine the conversations that are left, a few at a time. Yield the number of these."""
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
