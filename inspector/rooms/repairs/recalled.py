"""The facts that other policies would hold, for a preview."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from chatmemory import database
from chatmemory.exceptions import ChatMemoryError
from chatmemory.reading.recall import recall_history
from chatmemory.recall.cost import NO_BOUNDS
from chatmemory.recall.tallies import Tallies
from chatmemory.windows.policies import Policy

SECONDS = 1.0
LATEST = 1_000  # messages of a conversation that are replayed


@dataclass(frozen=True)
class Recalled:
    """The number of facts that the assistant needed again in some conversations, and how many of
    them the policies in force and other policies hold. `read` of the `of` conversations were read.
    """

    read: int = 0
    of: int = 0
    recalls: int = 0
    before: int = 0
    after: int = 0


def recalled(policies: Mapping[str, tuple[Policy, Policy]], seconds: float = SECONDS) -> Recalled:
    """Compare the facts that the first and the second policy of each conversation would hold.

    The call ends after about `seconds`. A conversation that cannot be read is left out.
    """
    read = recalls = before = after = 0
    for memory_id in database.for_seconds(seconds, list(policies)):
        with suppress(ChatMemoryError):
            now, then = policies[memory_id]
            history = recall_history(memory_id, now.estimator, latest=LATEST)
            tallies = Tallies(history, now, NO_BOUNDS)
            recalls += tallies.of(None).held
            before += tallies.of(now).held
            after += tallies.of(then).held
            read += 1
    return Recalled(read, len(policies), recalls, before, after)
