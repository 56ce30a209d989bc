"""The time budget of the fuzz tests.

Normally a few examples, the same in each run. With FUZZ_SECONDS=600 (`make fuzz`) every search runs
for this time, with other examples each time; a failure that it finds becomes a test of its own
beside the code.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from hypothesis import HealthCheck, Phase, settings

SECONDS = float(os.environ.get("FUZZ_SECONDS", "0"))
ROUND = 500


def settings_of(examples: int, **options: int) -> settings:
    searching = SECONDS > 0
    return settings(
        max_examples=ROUND if searching else examples,
        derandomize=not searching,
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.target, Phase.shrink],
        suppress_health_check=list(HealthCheck),
        **options,
    )


def search(test: Callable[[], object]) -> int:
    """Run a hypothesis test once, or until the time is over; return the number of rounds."""
    end = time.monotonic() + SECONDS
    rounds = 0
    while not rounds or time.monotonic() < end:
        test()
        rounds += 1
    return rounds
