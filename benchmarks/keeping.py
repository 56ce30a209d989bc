"""Measure the delay until derived rows are kept after a change, and its cost for other adds.

    .venv/bin/python -m benchmarks.keeping

A fleet of 10,000 conversations on a new database (POSTGRESQL=1 for one of a PostgreSQL), the thread
of a server in this process, and 1,000 changes of conversations in turn. Prints the median and the
longest time until every kept row is at the step of the change, and the ratio of an add with the
thread to one without it, in rounds that take turns.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import cycle, islice
from statistics import median
from time import perf_counter, sleep

from benchmarks.database import analyse, migrated
from benchmarks.fleets import fleet

CONVERSATIONS, CHANGES = 10_000, 1_000
APART = 0.05  # seconds between changes
ROUNDS, ADDS = 10, 100


def say(n: int) -> tuple[str, int]:
    """Add a message to a conversation of the fleet; return its id and step."""
    from chatmemory import UserMessage, services

    memory_id = f"chat-{100_000 + n}"
    (*_, result) = services.add(memory_id, [UserMessage(f"My order is A-{n}.")])
    return memory_id, result.step or 0


def known_steps(memory_ids: Iterable[str]) -> dict[str, int]:
    """Return the step up to which all kept rows of these conversations are known."""
    from chatmemory.services import keepers

    found: dict[str, int] = {}
    for keeper in keepers():
        rows = keeper.model.objects.filter(memory__in=list(memory_ids))
        for memory_id, step in rows.values_list("memory_id", "step"):
            found[memory_id] = min(step, found.get(memory_id, step))
    return found


@contextmanager
def thread() -> Iterator[None]:
    from inspector.shell.keeping import KeeperThread

    keeper = KeeperThread()
    keeper.start()
    yield
    keeper.stop()
    keeper.join()


def lags() -> list[float]:
    """Return the seconds until the derived rows of each change were kept."""
    found: list[float] = []
    waiting: dict[str, tuple[int, float]] = {}
    changes = iter(range(CHANGES))
    due = perf_counter()
    while waiting or due:
        if due and perf_counter() >= due:
            n = next(changes, None)
            due = 0 if n is None else perf_counter() + APART
            if n is not None:
                memory_id, step = say(n)
                waiting[memory_id] = (step, perf_counter())
        for memory_id, known in known_steps(waiting).items():
            step, at = waiting[memory_id]
            if known >= step:
                found.append(perf_counter() - at)
                del waiting[memory_id]
        sleep(0.02)
    return found


def seconds_of_adds(numbers: Iterator[int]) -> list[float]:
    found = []
    for n in islice(numbers, ADDS):
        start = perf_counter()
        say(n)
        found.append(perf_counter() - start)
    return found


def main() -> None:
    from chatmemory.services import Rounds

    fleet(CONVERSATIONS)
    analyse()
    began, rounds = perf_counter(), Rounds()
    while rounds.keep_some(10):
        pass
    print(f"{CONVERSATIONS:,} conversations were examined in {perf_counter() - began:.0f} s")
    with thread():
        known = lags()
    print(f"lists know after {median(known):.2f} s (median), {max(known):.2f} s (worst)")
    numbers = cycle(range(CHANGES, 2 * CHANGES))
    beside, alone = list[float](), list[float]()
    for _ in range(ROUNDS):
        with thread():
            beside += seconds_of_adds(numbers)
        alone += seconds_of_adds(numbers)
    print(
        f"an add beside the thread: {median(beside) / median(alone):.2f} of one without it "
        f"(median), {sum(beside) / sum(alone):.2f} (mean)"
    )


if __name__ == "__main__":
    with migrated():
        main()
    sys.exit(0)
