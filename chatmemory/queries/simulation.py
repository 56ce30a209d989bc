"""What adding would do: the same recorder as for real, and nothing is written."""

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
from chatmemory.queries.rows import WindowPlace


@dataclass(frozen=True)
class Simulation:
    """What would happen: one result per message, and the window that would remain, in order.

    Messages that were added in the simulation have the seqs behind the last of its first step.
    """

    changes: tuple[ChangeResult, ...]
    remaining: tuple[WindowPlace, ...]
    policy: Policy

    @property
    def totals(self) -> Totals:
        return Totals(len(self.remaining), sum(each.tokens for each in self.remaining))


def simulate(
    memory_id: str,
    messages: Iterable[ChatMessage],
    policy: Policy | None = None,
    at: int | None = None,
) -> Simulation:
    """What adding would do, now or after step `at`, under this policy or another.

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
        WindowPlace(entry.seq, entry.type, entry.has_calls, entry.tokens)
        for entry in stay_entries(visible(recorder.window, in_force))
    )
    return Simulation(tuple(changes), remaining, in_force)
