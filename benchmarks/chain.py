"""Measure what the chain of digests costs an add, as a ratio of adds with and without it.

    .venv/bin/python -m benchmarks.chain

Adds of both kinds take turns in one process, and write to a SQLite database in a temporary folder.
Without the chain, the same columns are written, with nothing in them.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from statistics import median
from unittest.mock import patch

from benchmarks.database import migrated

ROUNDS = 600
WINDOW = 20
COMPUTED = ("new_salt", "commitment_of", "encoded_stay", "digest_of")


def measure() -> None:
    from chatmemory import UserMessage, services
    from chatmemory.core.policies import MessageWindow
    from chatmemory.ledger import chain

    times: dict[bool, list[float]] = {True: [], False: []}
    services.create("m", MessageWindow(WINDOW))
    for n in range(ROUNDS):
        with_chain = n % 2 == 0
        with ExitStack() as patches:
            for name in () if with_chain else COMPUTED:
                patches.enter_context(patch.object(chain, name, lambda *_: b""))
            message = UserMessage(f"message number {n}, with some text to read")
            start = time.process_time()
            services.add("m", [message])
            times[with_chain].append(time.process_time() - start)
    cost = median(times[True]) / median(times[False]) - 1
    print(f"an add with the chain of digests: {cost:+.1%} processor time")


if __name__ == "__main__":
    with migrated():
        measure()
