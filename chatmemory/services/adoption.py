"""Another policy for many conversations, one step each, in slices."""

from __future__ import annotations

import time
from contextlib import suppress

from chatmemory.core.exceptions import (
    CorruptRow,
    DeletionUnfinished,
    ImportUnfinished,
    MemoryNotFound,
)
from chatmemory.core.policies import Policy
from chatmemory.queries.lab import having_another
from chatmemory.queries.searching import MemoryFilter
from chatmemory.services.conversations import change
from chatmemory.services.validation import check_policy

SECONDS = 2.0


def adopt_policy(
    which: MemoryFilter, policy: Policy, *, actor: str = "", seconds: float = SECONDS
) -> int:
    """Put a policy in force where another one is, for about so long; return how many were changed.

    Those that cannot be changed, such as one whose import goes on or one that cannot be read, are
    left out. Call it again for the rest. Raises InvalidValue, UnknownEstimator.
    """
    policy = check_policy(policy)
    changed = 0
    end = time.monotonic() + seconds
    for memory_id in list(having_another(which, policy).values_list("id", flat=True)):
        with suppress(CorruptRow, DeletionUnfinished, ImportUnfinished, MemoryNotFound):
            change(memory_id, policy=policy, actor=actor)
            changed += 1
        if time.monotonic() >= end:
            break
    return changed
