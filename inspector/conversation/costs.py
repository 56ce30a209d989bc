"""The sizes of history and memory after each step, for policies that must look at each message.

For most policies, a size follows from the numbers of messages and tokens. A policy whose `cost_of`
returns None, such as a window of turns, must look at every message.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

from chatmemory.messages.message import TYPES
from chatmemory.models import Message, Stay
from chatmemory.reading.rows import MemoryRow
from chatmemory.reading.steps import LedgerState
from chatmemory.windows.policies import Policy
from chatmemory.windows.stored_policies import can_decide
from chatmemory.windows.window import NOTHING, Entry

KEPT = 8  # conversations
_COLUMNS = ("seq", "type", "has_calls", "tokens", "entered_step", "left_step")


@dataclass(frozen=True, eq=False)
class CostsByStep:
    """The sizes of history and memory after each of the `steps` at which messages came or left.

    `steps` are the numbers of these steps in ascending order. `history` and `memory` have one size
    for each step, in the policy's unit.
    """

    steps: Sequence[int]
    history: Sequence[int]
    memory: Sequence[int]

    def history_at(self, step: int) -> int:
        return self._at(self.history, step)

    def memory_at(self, step: int) -> int:
        return self._at(self.memory, step)

    def _at(self, costs: Sequence[int], step: int) -> int:
        position = bisect_right(self.steps, step)
        return costs[position - 1] if position else 0


def costs_by_step(memory: MemoryRow, policy: Policy | None) -> CostsByStep | None:
    """Return the sizes of history and memory after each step of a conversation, in a policy's unit.

    None if the sizes can be computed from the numbers of messages and tokens. Otherwise this
    function reads all stays (periods of messages in memory).
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
    history, memory = Counter[int](), Counter[int]()
    stays = Stay.objects.filter(memory=memory_id).order_by("n").values_list(*_COLUMNS)
    for seq, type, has_calls, tokens, entered, left in stays.iterator():
        cost = policy.weigh(Entry(TYPES[type], has_calls, tokens, key=None))
        if seq not in known:
            known.add(seq)
            history[entered] += cost
        memory[entered] += cost
        if left is not None:
            memory[left] -= cost
    steps = sorted(history.keys() | memory.keys())
    sums = (list(accumulate(costs[step] for step in steps)) for costs in (history, memory))
    return CostsByStep(steps, *sums)
