"""Another policy for many conversations, one step each, in slices."""

from __future__ import annotations

import time

from chatmemory.core.exceptions import DeletionUnfinished, ImportUnfinished, MemoryNotFound
from chatmemory.core.policies import Policy
from chatmemory.queries.filters import MemoryFilter
from chatmemory.queries.fleet import having_another
from chatmemory.services.memories import change

SECONDS = 2.0


def adopt_policy(
    which: MemoryFilter, policy: Policy, *, actor: str = "", seconds: float = SECONDS
) -> int:
    """Put a policy in force where another one is, for about so long; return how many were changed.

    Those that cannot be changed now, such as one whose import goes on, are left out. Call it again
    for the rest. Raises InvalidValue, UnknownEstimator.
    """
    changed = 0
    end = time.monotonic() + seconds
    for memory_id in list(having_another(which, policy).values_list("id", flat=True)):
        try:
            change(memory_id, policy=policy, actor=actor)
            changed += 1
        except (ImportUnfinished, DeletionUnfinished, MemoryNotFound):
            continue
        if time.monotonic() >= end:
            break
    return changed
