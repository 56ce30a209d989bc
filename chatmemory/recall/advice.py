"""Advice: which window is worth its cost, by recall and by cost relative to sending everything.

A window is advised only if it saves enough in the conversations by which it is chosen, in the ones
held back to check the choice, and in all together. Otherwise the advice is to send everything,
which loses nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from chatmemory.recall.cost import NO_PRICES, Prices
from chatmemory.recall.frontier import Figures, Sums, TriedPolicies, halves
from chatmemory.recall.tallies import Tally
from chatmemory.windows.policies import Policy
from chatmemory.windows.written_policies import text_of_policy

SHARE = 0.95
SAVING = 0.1
CLOSE = 1e-9


class AdviceReason(StrEnum):
    """The reason for the advice, or for giving none."""

    SAVES = "it holds enough and saves enough"
    NOTHING_SAVES = "no window that holds enough saves enough"
    NOT_CHECKED = "what it saved was not saved in the other conversations"
    DOES_NOT_FIT = "everything does not fit the model"
    NOTHING_HOLDS = "everything does not fit the model, and no window holds enough"
    NOTHING_NEEDED = "nothing was needed again in three calls or more"
    NOTHING_CHEAPER = "no window that holds as much costs less than today"


@dataclass(frozen=True)
class Goals:
    """The goals of a window: the share of facts to hold, and the share of the cost to save.

    `context` is the size of the model's context in tokens, or None if it is not known. With
    `spares_users`, a window under which a user has to repeat anything does not meet the goals.
    """

    share: float = SHARE
    saving: float = SAVING
    context: int | None = None
    spares_users: bool = False


USUAL = Goals()


class CostedPolicy(NamedTuple):
    """A policy with its tally, and its cost relative to sending everything (the policy None)."""

    policy: Policy | None
    tally: Tally
    cost: float

    def beats(self, other: CostedPolicy) -> bool:
        """Return whether this policy holds as many facts at a lower cost, or more facts at the same
        cost.
        """
        mine, others = (self.tally.held, -self.cost), (other.tally.held, -other.cost)
        is_better = self.tally.held > other.tally.held or self.cost < other.cost - CLOSE
        return is_better and mine[0] >= others[0] and self.cost <= other.cost + CLOSE


@dataclass(frozen=True)
class Advice:
    """The advice for some conversations.

    `pick` is a policy, or everything; None if nothing can be advised. If the pick is everything,
    `option` is the cheapest window that holds enough; if everything does not fit and no window
    holds enough, it is the window that holds most. `checked` is the cost of the pick in the
    conversations held back from choosing; None without any. `today` are the policies in force
    together, and `beaten_by` is the policy that beats them.
    """

    why: AdviceReason
    pick: CostedPolicy | None = None
    option: CostedPolicy | None = None
    checked: float | None = None
    today: CostedPolicy | None = None
    beaten_by: CostedPolicy | None = None


class Chooser:
    """Chooses one of the policies of a frontier, given prices and goals."""

    def __init__(
        self,
        tried: TriedPolicies,
        figures: Iterable[Figures],
        prices: Prices,
        goals: Goals = USUAL,
    ) -> None:
        weighing = [each for each in figures if each.has_weight]
        chosen, others = halves(weighing)
        self.prices, self.goals = prices, goals
        self.sums = Sums(tried, weighing)
        self._chosen, self._others = Sums(tried, chosen), Sums(tried, others)
        self.fits = goals.context is None or self.sums.longest <= goals.context

    @property
    def everything(self) -> CostedPolicy:
        return CostedPolicy(None, self.sums.everything, 1.0)

    @cached_property
    def today(self) -> CostedPolicy | None:
        """The policies in force together; None unless each conversation has one."""
        tally = self.sums.today_point
        cost = None if tally is None else self._relative(self.sums, tally)
        return None if tally is None or cost is None else CostedPolicy(None, tally, cost)

    @cached_property
    def points(self) -> list[CostedPolicy]:
        """The policies of the frontier, without everything."""
        found = ((each, self._relative(self.sums, each.tally)) for each in self.sums.points())
        return [CostedPolicy(*each, cost) for each, cost in found if cost is not None]

    def unbeaten(self) -> list[CostedPolicy]:
        """Return the policies beaten neither by another policy nor by everything, cheapest first.

        Policies that hold less than three quarters of the share in the goals are left out.
        """
        found: list[CostedPolicy] = []
        for each in sorted(self.points, key=_cheapest):
            if (not found or each.tally.held > found[-1].tally.held) and each.cost < 1 - CLOSE:
                found.append(each)
        least = 0.75 * self.goals.share * self.sums.recalls
        return [each for each in found if each.tally.held >= least]

    def _relative(self, sums: Sums, tally: Tally) -> float | None:
        return self.prices.relative(sums.bill(tally), sums.bill(sums.everything))

    def cost_of(self, policy: Policy | None) -> float | None:
        """Return the cost of a policy of the frontier."""
        return self._relative(self.sums, self.sums.at(policy))

    def checked(self, policy: Policy | None) -> float | None:
        """Return a policy's cost in the conversations held back from choosing."""
        return self._relative(self._others, self._others.at(policy))

    def advice(self) -> Advice:
        """Return the advice that holds the share of facts in the goals, and in whole percent no
        less than today.
        """
        if not self.sums.recalls:
            return Advice(AdviceReason.NOTHING_NEEDED)
        return self._advised(list(filter(self._holds, self.points)), self.goals.share)

    def as_today(self) -> Advice:
        """Return the advice that holds as many facts as today, with no more repetitions by users or
        calls. Nothing is picked if today's policies together cost less than the pick.
        """
        today = self.today
        if not self.sums.recalls:
            return Advice(AdviceReason.NOTHING_NEEDED)
        least = today.tally if today else self.sums.everything
        holding = [
            each
            for each in self.points
            if each.tally.held >= least.held
            and each.tally.again <= least.again
            and self._spares_users(each)
        ]
        advice = self._advised(holding, share=0)
        pick = advice.pick
        if today and pick and advice.why is AdviceReason.SAVES and self._is_cheaper(today, pick):
            return replace(advice, why=AdviceReason.NOTHING_CHEAPER, pick=None)
        return advice

    def _advised(self, holding: Sequence[CostedPolicy], share: float) -> Advice:
        today = self.today
        holding = sorted(filter(self._is_affordable, holding), key=_cheapest)
        saving = [each for each in holding if self._may_be_chosen(each, share)]
        saving.sort(key=self._cheapest_to_choose)
        pick = next(filter(self._saves_elsewhere, saving), None)
        beaten_by = self._best_of(today) if today else None
        option = holding[0] if holding else None
        if pick is not None:
            why = AdviceReason.SAVES if self.fits else AdviceReason.DOES_NOT_FIT
            return Advice(why, pick, None, self.checked(pick.policy), today, beaten_by)
        if not self.fits:
            return Advice(AdviceReason.NOTHING_HOLDS, None, self._fullest, None, today, beaten_by)
        saves = any(self._is_saving(each.cost) for each in holding)
        why = AdviceReason.NOT_CHECKED if saves else AdviceReason.NOTHING_SAVES
        return Advice(why, self.everything, option, None, today, beaten_by)

    @property
    def _fullest(self) -> CostedPolicy | None:
        """The cheapest of the windows that fit the model and hold most; None if none fits."""
        fitting = [each for each in self.points if self._fits_model(each.policy)]
        return min(fitting, key=lambda each: (-each.tally.held, *_cheapest(each)), default=None)

    def _best_of(self, today: CostedPolicy) -> CostedPolicy | None:
        """Return the policy that beats those in force: everything if it does, else the cheapest."""
        found = sorted((each for each in self.points if each.beats(today)), key=_cheapest)
        return self.everything if self.everything.beats(today) else next(iter(found), None)

    def _holds(self, point: CostedPolicy) -> bool:
        today, recalls = self.today, self.sums.recalls
        least = percent_of(today.tally.held, recalls) if today else 0
        is_as_today = percent_of(point.tally.held, recalls) >= least
        return is_as_today and self.is_enough(point)

    def is_enough(self, point: CostedPolicy) -> bool:
        """Return whether a policy holds the share of facts, and spares users if that is a goal."""
        return _holds_share(self.sums, point, self.goals.share) and self._spares_users(point)

    def _is_cheaper(self, today: CostedPolicy, pick: CostedPolicy) -> bool:
        return today.cost < pick.cost - CLOSE and self._spares_users(today)

    def _spares_users(self, point: CostedPolicy) -> bool:
        return not (self.goals.spares_users and point.tally.user_repeated)

    def _is_affordable(self, point: CostedPolicy) -> bool:
        """Return whether a policy costs no more than everything and fits the model."""
        return point.cost <= 1 + CLOSE and self._fits_model(point.policy)

    def _fits_model(self, policy: Policy | None) -> bool:
        context = self.goals.context
        return not (policy and context and policy.unit == "tokens") or policy.limit <= context

    def _may_be_chosen(self, point: CostedPolicy, share: float) -> bool:
        """Return whether a policy has the same effect in the chosen conversations as in all of
        them.
        """
        if not self.fits:
            return True
        cost = self._relative(self._chosen, self._chosen.at(point.policy))
        saves = cost is not None and all(map(self._is_saving, (cost, point.cost)))
        return saves and _holds_share(self._chosen, point, share)

    def _saves_elsewhere(self, point: CostedPolicy) -> bool:
        cost = self.checked(point.policy)
        return not self.fits or cost is None or self._is_saving(cost)

    def _is_saving(self, cost: float) -> bool:
        return cost <= 1 - self.goals.saving + CLOSE

    def _cheapest_to_choose(self, point: CostedPolicy) -> tuple[float, int, int]:
        cost = self._relative(self._chosen, self._chosen.at(point.policy))
        return (1.0 if cost is None else round(cost, 9), *_cheapest(point)[1:])


def _holds_share(sums: Sums, point: CostedPolicy, share: float) -> bool:
    return sums.at(point.policy).held >= share * sums.recalls - CLOSE


def _cheapest(point: CostedPolicy) -> tuple[float, int, int]:
    """Order policies by their cost, then by the facts that they hold, then by their limit."""
    return round(point.cost, 9), -point.tally.held, point.policy.limit if point.policy else 0


def percent_of(part: int, whole: int) -> int:
    """Return a share in whole percent: 100 only of everything, and 0 only of nothing."""
    rounded = round(100 * part / whole) if whole else 0
    return min(max(rounded, 1), 99) if 0 < part < whole else rounded


# The advice in words

FEW = 20  # below so many conversations, the sentence gives their number


def why_words(advice: Advice, goals: Goals, conversations: int, prices: Prices = NO_PRICES) -> str:
    """Return the reason for the advice as one sentence, without its full stop."""
    share, saving = (f"{100 * each:.0f} %" for each in (goals.share, goals.saving))
    match advice.why, advice.pick:
        case AdviceReason.NOTHING_NEEDED, _:
            return "no conversation with three calls or more needed a fact again"
        case AdviceReason.NOTHING_HOLDS, _:
            reason = (
                f"everything does not fit {goals.context:,} tokens, and none of the policies "
                f"tried holds {share} for no more than that{_fullest_words(advice.option)}"
            )
        case AdviceReason.NOTHING_SAVES | AdviceReason.NOT_CHECKED, _:
            elsewhere = (
                " in each half of the conversations"
                if advice.why is AdviceReason.NOT_CHECKED
                else ""
            )
            reason = (
                f"of the policies tried, none that holds {share} saves {saving}{elsewhere}, and "
                "sending everything loses nothing"
            )
        case _, CostedPolicy(_, tally, cost):
            measure = "cost" if prices.priced == "cache" else "tokens"
            reason = f"it holds {tally.held:,} facts for {cost:.2f} of the {measure} of everything"
            if advice.checked is not None:
                reason += f", {advice.checked:.2f} in conversations not used for choosing"
            if tally.again:
                reason += f"; messages that repeat what left: {tally.again:,}"
            if advice.why is AdviceReason.DOES_NOT_FIT:
                reason += f"; everything does not fit {goals.context:,} tokens"
            elif measure == "tokens":
                reason += "; with a cache it may cost more than everything: give the cached price"
        case _:
            return advice.why.value
    several = "conversation" if conversations == 1 else "conversations"
    return f"{reason}; from {conversations} {several}" if conversations < FEW else reason


def _fullest_words(option: CostedPolicy | None) -> str:
    """Return which of the windows that fit the model holds most, after what does not fit."""
    if option is None or option.policy is None:
        return ""
    return f"; {text_of_policy(option.policy)} holds most of those ({option.tally.held:,})"


# The limits that half and nine in ten of a group's conversations need, and which needs far more

LARGE_GROUP = 10
FAR_MORE = 4


@dataclass(frozen=True)
class Needs:
    """The limits that half and nine in ten of some conversations need; None if they need none.

    `outliers` are the places of those that need far more than nine in ten of the others.
    """

    half: int | None
    nine_in_ten: int | None
    outliers: tuple[int, ...] = ()


def needs_of(limits: Sequence[int | None]) -> Needs:
    """Return the limits that half and nine in ten of some conversations need. `limits` has the
    limit of each conversation, or None if it needs none.

    In a group of ten or more, a conversation that needs over four times as much as nine in ten of
    the others is an outlier, and is left out.
    """
    known = sorted((limit, place) for place, limit in enumerate(limits) if limit is not None)
    out: list[int] = []
    while len(known) >= LARGE_GROUP:
        others = [limit for limit, _ in known[:-1]]
        if known[-1][0] <= FAR_MORE * _at(others, 0.9):
            break
        out.append(known.pop()[1])
    kept = [limit for limit, _ in known]
    half, most = (_at(kept, share) if kept else None for share in (0.5, 0.9))
    return Needs(half, most, tuple(sorted(out)))


def _at(ordered: Sequence[int], share: float) -> int:
    """Return the smallest number that this share of some do not exceed."""
    return ordered[max(0, -(-int(len(ordered) * share * 10) // 10) - 1)]
