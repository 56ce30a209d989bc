"""Measures the effect that new policies would have on conversations, for a preview before the
policies are set.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from chatmemory.advice.choosing import scope_of
from chatmemory.advice.options import Counted, Sums, option_of
from chatmemory.advice.values import (
    DEARER,
    USUAL,
    DecidedBy,
    Goals,
    LeftOut,
    Measured,
    Option,
    Scope,
)
from chatmemory.recall.cost import NO_PRICES, Prices
from chatmemory.recall.frontier import FEWEST_CALLS
from chatmemory.recall.tallies import Tally
from chatmemory.windows.policies import Policy


@dataclass(frozen=True)
class Effect:
    """The effect that new policies would have on conversations, for a preview.

    - `before`: the figures of the policies in force.
    - `after`: the figures of the new policies.
    - `everything`: the figures of sending everything.
    - `dearer`: the number of conversations for which the new policy costs over 0.5 % more than
      sending everything.
    - `measured`: how many conversations were measured, and why others could not be measured.

    `before`, `after` and `everything` are None if no conversation could be measured.
    """

    measured: Scope
    before: Option | None = None
    after: Option | None = None
    everything: Option | None = None
    dearer: int = 0

    @property
    def is_dominated(self) -> bool:
        """Whether sending everything is better than the previewed policy: it costs less, holds no
        fewer facts, causes no more repetitions, and fits the model.
        """
        return bool(self.after and self.everything and self.everything.dominates(self.after))


def effect_of(
    pairs: Iterable[tuple[Measured, Policy | None]],
    goals: Goals = USUAL,
    prices: Prices = NO_PRICES,
) -> Effect:
    """Return the effect of setting a new policy for each conversation. `pairs` has each
    conversation with its new policy. The policy None sends everything.

    Each conversation has the same weight. Conversations that cannot be measured are left out, and
    their ids are in `Effect.measured.left_out`.
    """
    left_out: dict[LeftOut, list[str]] = {}
    found: list[tuple[Counted, Tally, Tally, Policy | None]] = []
    for each, policy in pairs:
        now, then = each.today, each.tally(policy)
        if (reason := _left_out(each)) or now is None or then is None:
            left_out.setdefault(reason or LeftOut.UNREAD, []).append(each.id)
        else:
            found.append((Counted.of(each, prices), now, then, policy))
    counted = [each for each, *_ in found]
    scope = scope_of([each.measured for each in counted], left_out, prices)
    if not counted:
        return Effect(scope)
    before, after, everything = Sums(), Sums(), Sums()
    dearer = 0
    for one, now, then, _ in found:
        before.add(one, now)
        after.add(one, then)
        everything.add(one, one.figures.everything)
        dearer += one.cost(then) > DEARER
    needed = sum(each.figures.recalls for each in counted)
    policies = {policy for *_, policy in found}
    longest = max(each.figures.longest for each in counted)
    fits = goals.context is None or longest <= goals.context
    options = (
        option_of(policy, sums, needed, scope.calls)
        for policy, sums in ((None, before), (_only(policies), after), (None, everything))
    )
    was, then_is, all_of_it = options
    return Effect(
        scope,
        replace(was, mixed=True),
        replace(then_is, mixed=len(policies) > 1),
        replace(all_of_it, fits=fits),
        dearer,
    )


def or_everything(
    each: Measured,
    policy: Policy | None,
    goals: Goals = USUAL,
    prices: Prices = NO_PRICES,
) -> Policy | None:
    """Return the policy, or None if sending everything is better for this conversation.

    Sending everything is better if it costs less, holds no fewer facts, causes no more repetitions,
    and fits the model.
    """
    return None if effect_of([(each, policy)], goals, prices).is_dominated else policy


def _only(policies: set[Policy | None]) -> Policy | None:
    return next(iter(policies)) if len(policies) == 1 else None


def _left_out(each: Measured) -> LeftOut | None:
    """Return why a conversation is not measured; None if it is."""
    if each.figures is None:
        return LeftOut.UNREAD
    if each.figures.is_unreadable:
        return LeftOut.UNREADABLE
    if each.figures.calls < FEWEST_CALLS:
        return LeftOut.TOO_SHORT
    return LeftOut.CLIENT if each.decided_by is DecidedBy.CLIENT else None
