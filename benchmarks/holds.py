"""Measure how long the largest changes hold SQLite's only writer (`make attack`).

    .venv/bin/python -m benchmarks.holds

Writes to a SQLite database in a temporary folder. A hold is the time of one transaction, during
which other writers wait. The seconds depend on the machine, and have no limit.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from string import ascii_letters, digits
from time import perf_counter
from typing import Any
from unittest.mock import patch

from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from benchmarks.database import migrated
from benchmarks.texts import texts

MANY = 10_000  # messages in the largest window
BASE64 = ascii_letters + digits + "+/"
LONG = 400_000  # characters that do not repeat


@contextmanager
def holds(clock: Callable[[], float]) -> Iterator[list[float]]:
    """Yield a list that gets the seconds of each outermost transaction in a block.

    A transaction ends when it is committed: what waits for the commit comes after it, and may begin
    transactions of its own.
    """
    seconds: list[float] = []
    begun: list[float] = []
    enter = transaction.Atomic.__enter__
    commit, roll_back = BaseDatabaseWrapper.commit, BaseDatabaseWrapper.rollback

    def entering(atomic: Any) -> None:
        is_outermost = not transaction.get_connection(atomic.using).in_atomic_block
        enter(atomic)
        if is_outermost:
            begun.append(clock())

    def ending(end: Callable[[Any], None], connection: Any) -> None:
        end(connection)
        if begun:
            seconds.append(clock() - begun.pop())

    with (
        patch.object(transaction.Atomic, "__enter__", entering),
        patch.object(BaseDatabaseWrapper, "commit", lambda self: ending(commit, self)),
        patch.object(BaseDatabaseWrapper, "rollback", lambda self: ending(roll_back, self)),
    ):
        yield seconds


def changes() -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield changes of the largest allowed windows, in an order in which each can run."""
    from chatmemory import MessageWindow, UserMessage, services
    from chatmemory.ledger import protocol

    lines = texts()
    first, second = ([UserMessage(text) for text in islice(lines, MANY)] for _ in range(2))
    long = "".join(random.Random(1).choices(BASE64, k=LONG))
    whole = MessageWindow(MANY)
    for name in ("added", "set", "client", "long"):
        services.create(name, None if name == "client" else whole)
    yield "1,000 messages are added", lambda: services.add("added", first[:1_000])
    yield (
        "4 texts that do not repeat are added, 1.6 MB",
        lambda: services.add("long", [UserMessage(long[n:] + long[:n]) for n in range(4)]),
    )
    yield "a list of 10,000 is set", lambda: services.set_messages("set", first)
    yield "another takes its place", lambda: services.set_messages("set", second)
    yield "a client sends 10,000", lambda: protocol.update_messages("client", first)
    yield "and half of them", lambda: protocol.update_messages("client", first[::2])
    yield "10,000 are imported", lambda: services.import_conversation("imported", first, whole)
    yield "all but 10 are compacted", lambda: services.compact("imported", "So far.", keep_last=10)
    yield "a limit of 10,000 became 1, and a message comes", lambda: lowered("set")
    yield "5,000 are cleared", lambda: services.clear_messages("client")
    yield "20,000 messages are deleted", lambda: services.delete("set")


def lowered(memory_id: str) -> None:
    from chatmemory import MessageWindow, UserMessage, services

    services.change(memory_id, policy=MessageWindow(1))
    services.add(memory_id, [UserMessage("Hi")])


def main(folder: str) -> None:
    for what, change in changes():
        begun = perf_counter()
        with holds(perf_counter) as seconds:
            change()
        passed, count = perf_counter() - begun, len(seconds)
        print(f"{what}: {max(seconds):.2f} s; {count} transactions, {passed:.1f} s in all")


if __name__ == "__main__":
    with migrated() as folder:
        main(folder)
