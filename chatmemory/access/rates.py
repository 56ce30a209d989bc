"""How many requests a caller may make, counted over all processes and machines.

Each process counts by itself, and adds what it has counted to a counter that all share whenever it
is a twentieth of the limit. So a caller who asks seldom costs no write, and the processes together
allow more than the limit by less than a twentieth of it for each of them.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from time import monotonic
from typing import NamedTuple, Protocol

PARTS = 20
KEYS_MAX = 10_000


class Total(NamedTuple):
    """What all processes have counted, and in how many seconds the count begins anew."""

    requests: int
    seconds: float


class Counter(Protocol):
    """Counts for all processes."""

    def add(self, key: str, count: int, seconds: float) -> Total | None:
        """Add to the count of a key, which begins anew some seconds after its first addition.

        Return None if nothing can be added at present.
        """


class CountsAlone:
    """The counter of a process that shares its counts with no other."""

    def add(self, key: str, count: int, seconds: float) -> None:
        return None


@dataclass
class _Tally:
    """The count of a key: what was in the shared one, and what this process has not yet added."""

    ends_at: float
    due: int
    shared: int = 0
    own: int = 0


class Rates:
    """The counts of this process; of very many keys, those of the latest requests."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self._tallies: OrderedDict[str, _Tally] = OrderedDict()
        self._lock = threading.Lock()

    def wait(self, key: str, limit: int, seconds: float) -> float | None:
        """Count a request and return None, or return in how many seconds it may be made.

        `limit` is how many may be made in `seconds`.
        """
        part = max(1, limit // PARTS)
        with self._lock:
            tally = self._tally(key, part, seconds)
            if tally.shared + tally.own >= limit:
                return tally.ends_at - monotonic()
            tally.own += 1
            if tally.own < tally.due:
                return None
            added, tally.own = tally.own, 0
            tally.shared += added
        total = self._counter.add(key, added, seconds)
        with self._lock:
            if total is None:
                tally.shared, tally.own = tally.shared - added, tally.own + added
                tally.due = tally.own + part
                return None
            tally.shared, tally.due = total.requests, part
            tally.ends_at = monotonic() + total.seconds
            return total.seconds if total.requests > limit else None

    def _tally(self, key: str, due: int, seconds: float) -> _Tally:
        """Return the tally of a key, a new one if there is none or its time is over."""
        tally = self._tallies.pop(key, None)
        if tally is None or tally.ends_at <= monotonic():
            tally = _Tally(monotonic() + seconds, due)
        self._tallies[key] = tally
        if len(self._tallies) > KEYS_MAX:
            self._tallies.popitem(last=False)
        return tally
