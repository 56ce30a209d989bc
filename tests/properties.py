"""The number of examples of property tests: normally half of their number, always the same ones.

With EXAMPLES=50 (`make fuzz`) there are fifty times as many, different each time. A failure found
by them becomes a test of its own beside the property.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

TIMES = int(os.environ.get("EXAMPLES", "0"))


def examples(count: int = 100) -> settings:
    """Return the settings of a property test. The default number of examples is 100."""
    return settings(
        max_examples=count * TIMES or count // 2,
        derandomize=not TIMES,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
