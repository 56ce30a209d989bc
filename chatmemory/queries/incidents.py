"""Incidents of stored conversations, read from the ledger as it was."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from chatmemory.conf import fact_words
from chatmemory.core.eviction import REASONS
from chatmemory.core.loads import Keeping
from chatmemory.core.recall.facts import facts_of
from chatmemory.core.recall.histories import History
from chatmemory.core.recall.incidents import (
    Arrival,
    Incident,
    MemoryTime,
    incidents_of,
    with_limits,
)
from chatmemory.core.stored_policies import can_decide
from chatmemory.ledger.lookup import find_memory
from chatmemory.ledger.snapshots import one_snapshot
from chatmemory.ledger.windows import read_message
from chatmemory.models import Memory, Message, Stay, Step
from chatmemory.queries.recalling import estimator_of, said_with_history

NEWEST_MESSAGES = 10_000  # that incidents are looked for among


@one_snapshot()
def computed_incidents(memory_id: str) -> list[Incident]:
    """Return the incidents among the newest 10,000 messages of a conversation, by step.

    The limit of each is that of the policy in force at its step. Raises MemoryNotFound.
    """
    memory = find_memory(memory_id)
    messages, history = said_with_history(memory_id, latest=NEWEST_MESSAGES)
    if not messages:
        return []
    first = history.numbers[0]
    times = _times(memory, first)
    steps: dict[int, int] = {}
    for time in times:
        steps[time.number] = min(time.entered, steps.get(time.number, time.entered))
    said = zip(history.numbers, messages, history.facts, strict=True)
    arrivals = [
        Arrival(seq, steps[seq], message, facts) for seq, message, facts in said if seq in steps
    ]
    injected = Message.objects.filter(
        memory=memory, seq__gte=first, origin=Message.Origin.SYNTHETIC
    )
    for row in injected:
        if row.seq in steps:
            message = read_message(row)
            facts = facts_of(message, fact_words())
            arrivals.append(Arrival(row.seq, steps[row.seq], message, facts, is_said=False))
    found = incidents_of(sorted(arrivals, key=lambda each: each.number), times)
    return list(_with_limits(memory, found, history))


def _times(memory: Memory, first: int) -> list[MemoryTime]:
    rows = Stay.objects.filter(memory=memory, seq__gte=first)
    return [
        MemoryTime(seq, entered, left, REASONS[reason] if reason else None)
        for seq, entered, left, reason in rows.values_list(
            "seq", "entered_step", "left_step", "reason"
        ).iterator()
    ]


def _with_limits(memory: Memory, found: list[Incident], own: History) -> Iterator[Incident]:
    """Yield incidents with their limits, in their order."""
    needed = {step for each in found for step in (each.step, each.left_step)}
    steps = {step.n: step for step in Step.objects.filter(memory=memory, n__in=needed)}
    histories = {estimator_of(memory): own}
    for each in found:
        policy = steps[each.step].policy
        if policy is None or not can_decide(policy) or steps[each.left_step].by_client:
            yield replace(each, keeping=Keeping(None))
            continue
        if policy.estimator not in histories:
            histories[policy.estimator] = said_with_history(
                memory.pk, policy.estimator, latest=NEWEST_MESSAGES
            )[1]
        yield from with_limits([each], histories[policy.estimator], policy)
