"""The costs of history and memory step by step, where a policy must weigh each message."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

from chatmemory.core.policies import Policy
from chatmemory.core.stored_policies import can_decide
from chatmemory.core.window import NOTHING
from chatmemory.ledger.windows import stay_entry
from chatmemory.models import Message, Stay
from chatmemory.queries.rows import MemoryRow
from chatmemory.queries.steps import LedgerState

KEPT = 8  # conversations


@dataclass(frozen=True)
class CostsByStep:
    """What was said up to the `steps` at which messages came or left, and what memory then held."""

    steps: Sequence[int]
    said: Sequence[int]
    memory: Sequence[int]

    def said_at(self, step: int) -> int:
        return self._at(self.said, step)

    def memory_at(self, step: int) -> int:
        return self._at(self.memory, step)

    def _at(self, costs: Sequence[int], step: int) -> int:
        position = bisect_right(self.steps, step)
        return costs[position - 1] if position else 0


def costs_by_step(memory: MemoryRow, policy: Policy | None) -> CostsByStep | None:
    """Return the costs of the steps of a conversation under a policy.

    None where the number of messages and tokens tells the costs. Otherwise all stays are read.
    """
    if not can_decide(policy) or policy.cost_of(NOTHING) is not None:
        return None
    state = memory.created_at, memory.last_step, bytes.fromhex(memory.head)
    return _costs_by_step(memory.id, policy, state)


@lru_cache(maxsize=KEPT)
def _costs_by_step(memory_id: str, policy: Policy, state: LedgerState) -> CostsByStep:
    """Return the costs of a conversation whose ledger has not changed since this state."""
    messages = Message.objects.filter(memory=memory_id, origin=Message.Origin.SYNTHETIC)
    known = set(messages.values_list("seq", flat=True))
    said, memory = Counter[int](), Counter[int]()
    for stay in Stay.objects.filter(memory=memory_id).order_by("n").iterator():
        cost = policy.weigh(stay_entry(stay))
        if stay.seq not in known:
            known.add(stay.seq)
            said[stay.entered_step] += cost
        memory[stay.entered_step] += cost
        if stay.left_step is not None:
            memory[stay.left_step] -= cost
    steps = sorted(said.keys() | memory.keys())
    sums = (list(accumulate(costs[step] for step in steps)) for costs in (said, memory))
    return CostsByStep(steps, *sums)
