"""Trials: drafts and another limit, to be simulated at any step.

Drafts have no seq, and a message may have the next one already. A simulated trial counts them down
from -1: the message -2 is the second draft, in the changes and in the window.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from chatmemory.core.codec import messages_from_json
from chatmemory.core.messages import ChatMessage
from chatmemory.core.policies import Policy
from chatmemory.core.storable import storable_id
from chatmemory.core.stored_policies import can_decide
from chatmemory.ledger.changes import ChangeResult
from chatmemory.ledger.snapshots import one_snapshot
from chatmemory.models import Trial as TrialRow
from chatmemory.queries.simulation import Simulation, simulated
from chatmemory.queries.windows import StoredState


@dataclass(frozen=True)
class Trial:
    """Drafts to add and another limit to try. `key` names a trial that is kept."""

    drafts: tuple[ChatMessage, ...] = ()
    limit: int | None = None
    key: str = ""

    def policy(self, current: Policy | None) -> Policy | None:
        """Return the current policy with the limit, or None if it would not change."""
        if not can_decide(current) or self.limit in (None, current.limit):
            return None
        return replace(current, limit=self.limit)


def trial(memory_id: str, key: str) -> Trial | None:
    """Return a kept trial of a conversation, or None if it is not kept any more.

    Raises UnstorableText.
    """
    row = TrialRow.objects.filter(memory_id=storable_id(memory_id), key=key).first()
    if row is None:
        return None
    drafts = tuple(draft for draft in messages_from_json(row.drafts) if draft is not None)
    return Trial(drafts, row.limit, row.key)


@one_snapshot()
def simulate_trial(memory_id: str, trial: Trial, at: int | None = None) -> Simulation:
    """Return the result of a trial now or at step `at`. Raises the exceptions of `simulate`."""
    return tried(StoredState.of(memory_id, at), trial)


def tried(stored: StoredState, trial: Trial) -> Simulation:
    """Return the same of a conversation that is already read."""
    simulation = simulated(stored, trial.drafts, trial.policy(stored.policy))
    numbers = {
        arrived.seq: -n
        for n, change in enumerate(simulation.changes, 1)
        for arrived in change.arrived
    }
    changes = tuple(_renumbered(change, numbers) for change in simulation.changes)
    return replace(simulation, changes=changes)


def _renumbered(change: ChangeResult, numbers: Mapping[int, int]) -> ChangeResult:
    def number(seq: int | None) -> int | None:
        return seq if seq is None else numbers.get(seq, seq)

    return replace(
        change,
        seq=number(change.seq),
        arrived=tuple(
            each._replace(seq=numbers.get(each.seq, each.seq)) for each in change.arrived
        ),
        evicted=tuple(
            each._replace(seq=numbers.get(each.seq, each.seq), because_seq=number(each.because_seq))
            for each in change.evicted
        ),
    )
