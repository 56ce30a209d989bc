"""Measure reads of past windows of a long conversation against its current window."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial

from benchmarks.made import DATABASES, made, opened
from benchmarks.measuring import QUICK, Figure, compared, in_turns

STEPS = 100_000 if QUICK else 1_000_000
KEPT = 100
ROUNDS = 300


def figures(folder: str) -> Iterator[Figure]:
    from tests.long_conversations import long_conversation

    name = made(f"long-{STEPS}", partial(long_conversation, "long", STEPS, KEPT))
    DATABASES.read_once(name)
    with opened(name):
        yield past_windows()


def past_windows() -> Figure:
    from chatmemory.reading import windows

    chance = random.Random(1)
    times = in_turns(
        {
            "the past": lambda: windows.window("long", chance.randrange(KEPT, STEPS)),
            "now": lambda: windows.window("long"),
        },
        ROUNDS,
    )
    return compared(f"window at a random step of {STEPS:,}, of {KEPT} messages", 3, times)
