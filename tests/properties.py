"""How many examples properties are tested with: normally a few, the same in each run.

With EXAMPLES=50 (`make fuzz`) there are fifty times as many, others each time; what they find
becomes a test of its own beside the property.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

TIMES = int(os.environ.get("EXAMPLES", "0"))


def examples(count: int = 100) -> settings:
    """Return the settings of a property; without them it is tested with 100 examples."""
    return settings(
        max_examples=count * max(1, TIMES),
        derandomize=not TIMES,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
