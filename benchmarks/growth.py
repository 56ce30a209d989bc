"""Measure the cost of an add and of a read for long windows and histories, as ratios of one run.

    .venv/bin/python -m benchmarks.growth

The second part writes to a SQLite database in a temporary folder.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

from benchmarks.database import migrated

ROUNDS = 200


def per_call(call: Callable[[], object]) -> float:
    """Return the median time of many calls, which a busy machine changes less than the mean."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return median(times)


def show(what: str, small: float, large: float) -> None:
    print(f"{what}: {large / small:.2f} times")


def in_memory() -> None:
    from chatmemory import TokenWindowChatMemory, UserMessage

    def add_cost(window: int) -> float:
        memory = TokenWindowChatMemory(max_tokens=window * 20)
        memory.extend(UserMessage(f"message number {n}, with some text") for n in range(window * 2))
        numbers = iter(range(10**9))
        return per_call(lambda: memory.add(UserMessage(f"one more, number {next(numbers)}")))

    show("in memory, an add at 20,000 messages against 200", add_cost(200), add_cost(20_000))


def in_database() -> None:
    from chatmemory import UserMessage, queries, services
    from chatmemory.core.policies import TokenWindow

    def fill(memory_id: str, history: int) -> None:
        services.create(memory_id, TokenWindow(2_000))
        for start in range(0, history, 5_000):
            services.add(
                memory_id,
                [UserMessage(f"message {n}") for n in range(start, min(history, start + 5_000))],
            )

    fill("short", 500)
    fill("long", 50_000)
    cost = {
        name: per_call(lambda name=name: services.add(name, [UserMessage("one more")]))
        for name in ("short", "long")
    }
    show("in SQLite, an add at 50,000 messages of history against 500", *cost.values())
    for step in (250, 25_000):
        read = {
            "short": per_call(lambda: queries.window("short", 250)),
            "long": per_call(lambda step=step: queries.window("long", step)),
        }
        show(f"reading the window at step {step:,} of 50,000 against 250 of 500", *read.values())


if __name__ == "__main__":
    in_memory()
    with migrated():
        in_database()
