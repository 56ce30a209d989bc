"""Sets a policy for many conversations, after a preview of the changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from django.db.models import Q

from chatmemory import database
from chatmemory.exceptions import CorruptRow, DeletionUnfinished, ImportUnfinished, MemoryNotFound
from chatmemory.ledger.validation import check_policy
from chatmemory.managers import MemoryQuerySet
from chatmemory.messages.estimators import family_named
from chatmemory.messages.message import TYPES
from chatmemory.models import Memory, Stay
from chatmemory.reading.clients import decided_by_clients
from chatmemory.reading.finding import MemoryFilter
from chatmemory.services import change
from chatmemory.windows.policies import Policy
from chatmemory.windows.window import NOTHING, Entry, Totals
from chatmemory.windows.written_policies import measured
from inspector.shell.advice import policy_to_set

ROWS_AT_ONCE = 500
ADOPTION_SECONDS = 2.0
_COLUMNS = ("memory_id", "type", "has_calls", "tokens")


@dataclass(frozen=True)
class PolicyAdoption:
    """The effect that a new policy would have on the conversations that match a filter.
    Conversations that the caller leaves out are not counted.

    - `matching`: how many conversations match, except those whose client decides the window.
    - `differing`: how many of the matching conversations have another policy now.
    - `over`: how many of the differing conversations exceed the new limit. Their next message
      evicts older messages.
    - `recounted`: how many of the differing conversations may exceed the new limit. Nobody knows,
      because another estimator counted their tokens.
    - `of_clients`: how many conversations match, but keep their policy because a client decides the
      window.
    """

    matching: int
    differing: int
    over: int
    recounted: int
    of_clients: int


def adopting(
    which: MemoryFilter, policy: Policy | None, apart: Collection[str] = ()
) -> PolicyAdoption:
    """Return how many of the matching conversations would change, and how, if a policy were set. A
    policy of None means sending everything.

    Conversations with an ID in `apart` are left out. Raises UnknownEstimator.
    """
    policy = policy and measured(policy)
    is_apart = database.in_list("id", list(apart))
    chosen = which.rows().exclude(is_apart)
    of_clients = chosen.filter(decided_by_clients()).count()
    matching = chosen.count() - of_clients
    found = having_another(which, policy).exclude(is_apart)
    if policy is None or policy.meters_only:
        return PolicyAdoption(matching, found.count(), 0, 0, of_clients)
    differing = over = recounted = 0
    family = family_named(policy.estimator)
    evicts_by_tokens = policy.unit == "tokens"
    rows = found.iterator(ROWS_AT_ONCE)
    while some := list(islice(rows, ROWS_AT_ONCE)):
        differing += len(some)
        known = []
        for row in some:
            if evicts_by_tokens and family_named(row.policy_estimator) != family:
                recounted += row.window_count > 0
            else:
                known.append(row)
        over += sum(map(policy.is_exceeded_by, _windows_under(policy, known)))
    return PolicyAdoption(matching, differing, over, recounted, of_clients)


def _windows_under(policy: Policy, rows: Sequence[Memory]) -> list[Totals]:
    """Return how many messages and tokens memory has in each conversation, with the load under a
    policy.
    """
    totals = {row.pk: Totals(row.window_count, row.window_tokens) for row in rows}
    if policy.cost_of(NOTHING) is not None:
        return [each._replace(cost=policy.cost_of(each) or 0) for each in totals.values()]
    costs = Counter[str]()
    stays = Stay.objects.filter(memory__in=totals, left_step=None)
    for memory_id, type, has_calls, tokens in stays.values_list(*_COLUMNS).iterator():
        costs[memory_id] += policy.weigh(Entry(TYPES[type], has_calls, tokens, key=None))
    return [each._replace(cost=costs[memory_id]) for memory_id, each in totals.items()]


def adopt_policy(
    which: MemoryFilter,
    policy: Policy | None,
    *,
    actor: str = "",
    seconds: float = ADOPTION_SECONDS,
    apart: Collection[str] = (),
) -> int:
    """Set a policy for matching conversations, and return how many were changed. Raises
    InvalidValue, UnknownEstimator.

    A policy of None means sending everything. Then each conversation keeps its policy, with the
    option `meters_only` added, so that nothing leaves memory.

    Some conversations are not changed:

    - those that have the policy already;
    - those with an ID in `apart`;
    - those whose clients decide the window;
    - those that cannot be changed now, such as during an import.

    The call ends after about `seconds`, even if conversations are left. Call the function again for
    the rest.
    """
    policy = check_policy(policy) if policy is not None else None
    changed = 0
    rows = having_another(which, policy).exclude(database.in_list("id", list(apart)))
    to_set = {row.id: policy_to_set(policy, row.policy) for row in rows}
    for memory_id in database.for_seconds(seconds, list(to_set)):
        with suppress(CorruptRow, DeletionUnfinished, ImportUnfinished, MemoryNotFound):
            change(memory_id, policy=to_set[memory_id], actor=actor)
            changed += 1
    return changed


def having_another(which: MemoryFilter, policy: Policy | None) -> MemoryQuerySet:
    """Return the matching conversations that have another policy than `policy`, sorted by ID. With
    a policy of None (sending everything), return the matching conversations without the option
    `meters_only`.

    Conversations whose clients decide the window are left out.
    """
    rows: MemoryQuerySet = which.rows().exclude(decided_by_clients()).order_by("id")
    if policy is None:
        return rows.exclude(policy_options__has_key="meters_only")
    same = Q(
        policy_kind=policy.kind,
        policy_limit=policy.limit,
        policy_estimator=policy.estimator,
        policy_options=policy.options,
    )
    return rows.exclude(same)
