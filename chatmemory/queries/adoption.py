"""What another policy for many conversations would change, before it does."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Q

from chatmemory.core.estimators import family_named
from chatmemory.core.policies import Policy
from chatmemory.core.window import Totals
from chatmemory.core.written_policies import measured
from chatmemory.managers import MemoryQuerySet
from chatmemory.queries.searching import MemoryFilter

ROWS_AT_ONCE = 500


@dataclass(frozen=True)
class PolicyAdoption:
    """What a policy would change: of `matching` conversations those with another one.

    `over` of them have more in memory than it allows, so that their next add evicts. Of those that
    are `recounted`, because another estimator counted them, that is not known before.
    """

    matching: int
    differing: int
    over: int
    recounted: int


def adopting(which: MemoryFilter, policy: Policy) -> PolicyAdoption:
    """Return what a policy would change. Raises UnknownEstimator."""
    policy = measured(policy)
    differing = over = recounted = 0
    family = family_named(policy.estimator)
    evicts_by_tokens = policy.unit == "tokens" and not policy.meters_only
    for row in having_another(which, policy).iterator(ROWS_AT_ONCE):
        differing += 1
        if evicts_by_tokens and family_named(row.policy_estimator) != family:
            recounted += row.window_count > 0
        elif not policy.meters_only:
            over += policy.is_exceeded_by(Totals(row.window_count, row.window_tokens))
    return PolicyAdoption(which.rows().count(), differing, over, recounted)


def having_another(which: MemoryFilter, policy: Policy) -> MemoryQuerySet:
    """Return the conversations whose policy is another one, by id."""
    same = Q(
        policy_kind=policy.kind,
        policy_limit=policy.limit,
        policy_estimator=policy.estimator,
        policy_options=policy.options,
    )
    rows: MemoryQuerySet = which.rows().exclude(same & Q(policy_kind__isnull=False)).order_by("id")
    return rows
