"""Simulation of adds with the recorder of real adds, without writing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from chatmemory.core.messages import ChatMessage
from chatmemory.core.policies import Policy
from chatmemory.core.transitions import visible
from chatmemory.core.window import Totals
from chatmemory.ledger.adding import add_all, required_policy
from chatmemory.ledger.changes import ChangeResult, NewMessage
from chatmemory.ledger.counting import change_policy
from chatmemory.ledger.entries import stay_entries
from chatmemory.ledger.lookup import find_memory, find_step
from chatmemory.ledger.recorder import Recorder
from chatmemory.ledger.snapshots import one_snapshot
from chatmemory.queries.rows import WindowPlace


@dataclass(frozen=True)
class Simulation:
    """The result of a simulation: one change per message, and the resulting window in order.

    Simulated messages have the seqs after the last one of the step that the simulation starts from.
    """

    changes: tuple[ChangeResult, ...]
    remaining: tuple[WindowPlace, ...]
    policy: Policy

    @property
    def totals(self) -> Totals:
        return Totals(len(self.remaining), sum(place.tokens for place in self.remaining))


@one_snapshot()
def simulate(
    memory_id: str,
    messages: Iterable[ChatMessage],
    policy: Policy | None = None,
    at: int | None = None,
) -> Simulation:
    """Return the result of adding messages now or at step `at`, under its policy or another.

    Raises MemoryNotFound, StepNotFound, PolicyRequired (neither the step nor the call has a
    policy), PolicyUnavailable.
    """
    memory = find_memory(memory_id)
    recorder = Recorder(memory, at=find_step(memory, at) if at is not None else None)
    if policy is not None:
        change_policy(recorder, policy)
    in_force = required_policy(recorder.memory)
    changes = add_all(recorder, [NewMessage(message) for message in messages])
    remaining = tuple(
        WindowPlace(entry.seq, entry.type, entry.has_calls, entry.tokens, pinned=entry.pinned)
        for entry in stay_entries(visible(recorder.window, in_force))
    )
    return Simulation(tuple(changes), remaining, in_force)
