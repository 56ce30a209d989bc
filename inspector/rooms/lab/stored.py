"""Stored conversations, all together: recall, histories, and the budget of the windows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial

from django.db.models import Sum

from chatmemory.exceptions import InvalidValue, MemoryNotFound
from chatmemory.ledger.lookup import find_memory
from chatmemory.models import Stay
from chatmemory.reading.budget import Budget, kind_of
from chatmemory.reading.finding import MemoryFilter
from chatmemory.reading.recall import recall_history
from chatmemory.recall import RecallSums, for_each_policy
from chatmemory.recall.cost import NO_BOUNDS, CacheRules
from chatmemory.recall.history import History
from chatmemory.windows.policies import Policy
from chatmemory.windows.stored_policies import can_decide

READ_AT_ONCE = 20_000  # the most messages that an answer replays


def recall_of_stored(
    which: MemoryFilter,
    policies: Sequence[Policy | None],
    most: int | None = None,
    rules: CacheRules = NO_BOUNDS,
) -> RecallSums:
    """Return the recall of the conversations that match a filter under each policy.

    Conversations are read one after the other. One that is deleted meanwhile is left out. The
    policies in force are today's, where a policy decides. Raises InvalidValue if there are more
    than `most` messages, and UnknownEstimator.
    """
    rows = which.rows().order_by("id").values_list("id", "said_count")
    if most is not None and (amount := sum(count for _, count in rows)) > most:
        raise InvalidValue(
            f"these conversations have {amount:,} messages, and an answer reads up to {most:,}: "
            "choose fewer, or use manage.py recall"
        )
    found = RecallSums(policies, rules)
    for memory_id, _ in rows.iterator():
        with suppress(MemoryNotFound):
            read = partial(recall_history, memory_id)
            found.add(for_each_policy(policies, read), policy_today(memory_id))
    return found


def histories_today(which: MemoryFilter, estimator: str) -> Iterator[tuple[History, Policy | None]]:
    """Yield the histories of the conversations that match, each with its policy in force."""
    for memory_id in which.rows().order_by("id").values_list("id", flat=True).iterator():
        with suppress(MemoryNotFound):
            yield recall_history(memory_id, estimator), policy_today(memory_id)


def policy_today(memory_id: str) -> Policy | None:
    """Return the policy in force, or None if a client decides. Raises MemoryNotFound."""
    policy = find_memory(memory_id).policy
    return policy if can_decide(policy) and not policy.meters_only else None


def budget_of_all(which: MemoryFilter) -> Budget:
    """Return one sum for the windows of all conversations that match, without a limit."""
    open_stays = Stay.objects.filter(memory__in=which.rows(), left_step=None).order_by()
    sums = open_stays.values_list("type", "has_calls").annotate(sum=Sum("tokens"))
    tokens = dict.fromkeys(("system", "results", "user", "ai", "calls"), 0)
    for type, has_calls, amount in sums:
        tokens[kind_of(type, has_calls)] += amount
    return Budget(**tokens)
