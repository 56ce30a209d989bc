"""Chooses the advised policy for a conversation, or for several.

Each conversation has the same weight, whatever its length. The cost of a policy and its share of
facts held are means over the conversations. Conversations that are far larger than the rest are not
counted (see `outliers`).

The conversations are divided into two halves (see `is_of_first_half`). A window that is not yet in
force is advised only if it saves enough in both halves. This rule does not apply if sending
everything does not fit the model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from operator import attrgetter

from chatmemory.advice.options import Options, cheapest, known_figures
from chatmemory.advice.values import (
    CLOSE,
    USUAL,
    Advice,
    DecidedBy,
    Goals,
    LeftOut,
    Measured,
    Option,
    PromptFigures,
    Scope,
    Verdict,
    are_few,
)
from chatmemory.recall.cost import NO_PRICES, Prices
from chatmemory.recall.frontier import FEWEST_CALLS, FIGURES_RULES, Figures

FAR_MORE = 4
FEWEST_OTHERS = 2
MOST_OTHERS = 3
NEARLY = 0.75  # of the share in the goals: other options hold as much


def advise(
    measured: Iterable[Measured],
    goals: Goals = USUAL,
    prices: Prices = NO_PRICES,
) -> Advice:
    """Return the advice for all these conversations together.

    Conversations may be in groups (`Measured.group`). The verdict GROUPS_DIFFER means that the
    advice for a group differs from the advice for all conversations together.
    """
    listed = list(measured)
    if len({each.group for each in listed}) > 1:
        return advise_groups(listed, goals, prices)[0]
    return _advised(listed, goals, prices)


def _advised(measured: Sequence[Measured], goals: Goals, prices: Prices) -> Advice:
    counted, left_out = _sorted(measured)
    scope = scope_of(counted, left_out, prices)
    if not counted:
        return Advice(Verdict.TOO_FEW, scope, goals=goals)
    return _Choice(counted, scope, goals, prices).advice()


def scope_of(
    counted: Sequence[Measured], left_out: Mapping[LeftOut, Sequence[str]], prices: Prices
) -> Scope:
    """Return how many conversations, messages and model calls an advice is based on.

    `counted` are the conversations from which the advice is computed. `left_out` has the ids of all
    other conversations, by the reason for leaving them out.
    """
    known = [(each, known_figures(each)) for each in counted]
    return Scope(
        len(counted),
        len(counted) + sum(map(len, left_out.values())),
        left_out,
        sum(figures.messages for _, figures in known),
        sum(max(each.said, figures.messages) for each, figures in known),
        sum(figures.calls for _, figures in known),
        prices,
        FIGURES_RULES,
        sum(figures.messages < each.said for each, figures in known),
    )


def advise_groups(
    measured: Iterable[Measured], goals: Goals = USUAL, prices: Prices = NO_PRICES
) -> tuple[Advice, dict[str, Advice]]:
    """Return the advice for all conversations together, and the advice for each group by its name.

    The verdict GROUPS_DIFFER means that the advice for a group differs from the advice for all
    conversations together. In this case, the advice for all conversations has no advised policy.
    """
    groups: dict[str, list[Measured]] = {}
    for each in measured:
        groups.setdefault(each.group, []).append(each)
    found = {name: _advised(members, goals, prices) for name, members in groups.items()}
    if len(found) == 1:
        return next(iter(found.values())), found
    together = _advised([each for members in groups.values() for each in members], goals, prices)
    answers = {_answer(each) for each in found.values()} - {None}
    if not answers or together.pick is None or answers == {_answer(together)}:
        return together, found
    return replace(together, verdict=Verdict.GROUPS_DIFFER, pick=None, others=()), found


def _answer(advice: Advice) -> tuple[Verdict, str] | None:
    """Return what the advice says to do: its verdict and its policy. The advice of two groups
    differs if this differs.

    The policy is "" for the verdict KEEP. Returns None if no policy is advised.
    """
    if advice.pick is None:
        return None
    return advice.verdict, "" if advice.verdict is Verdict.KEEP else advice.pick.text


# Which conversations count


def _sorted(measured: Sequence[Measured]) -> tuple[list[Measured], dict[LeftOut, list[str]]]:
    """Return the conversations that count, and the ids of the other conversations by reason."""
    left_out: dict[LeftOut, list[str]] = {}

    def keep(those: Iterable[Measured], but: LeftOut, which: Iterable[bool]) -> list[Measured]:
        kept = []
        for each, is_out in zip(those, which, strict=True):
            if is_out:
                left_out.setdefault(but, []).append(each.id)
            else:
                kept.append(each)
        return kept

    of_client = [each.decided_by is DecidedBy.CLIENT for each in measured]
    found = list(measured) if all(of_client) else keep(measured, LeftOut.CLIENT, of_client)
    found = keep(found, LeftOut.UNREAD, [each.figures is None for each in found])
    found = keep(found, LeftOut.UNREADABLE, [known_figures(each).is_unreadable for each in found])
    found = keep(
        found, LeftOut.TOO_SHORT, [known_figures(each).calls < FEWEST_CALLS for each in found]
    )
    units = [_unit(each) for each in found]
    usual = max(Counter(units).items(), key=lambda item: (item[1], item[0]), default=(None, 0))[0]
    is_other = (
        unit != usual or not _counts_alike(each) for each, unit in zip(found, units, strict=True)
    )
    found = keep(found, LeftOut.OTHER_UNIT, is_other)
    no_facts = [not known_figures(each).recalls for each in found]
    if not all(no_facts):
        found = keep(found, LeftOut.NO_FACTS, no_facts)
    apart = outliers(found)
    found = keep(found, LeftOut.OUTLIER, [each.id in apart for each in found])
    return found, left_out


def _unit(each: Measured) -> tuple[str, str]:
    """Return the unit and the estimator of the tried limits. Only limits with the same pair are
    compared.
    """
    kind = each.tried.kind if each.tried else None
    return (kind.unit, kind.estimator) if kind else ("", "")


def _counts_alike(each: Measured) -> bool:
    """Return whether the policy in force and the tried policies have the same unit, such
    as tokens.
    """
    return each.policy is None or each.tried is None or each.policy.unit == each.tried.kind.unit


def outliers(measured: Sequence[Measured]) -> set[str]:
    """Return the ids of conversations that are far larger than the others.

    The conversations are compared by two figures: the tokens of the history, and the smallest limit
    that holds all needed facts. The conversation with the largest figure is an outlier if this
    figure is more than four times the 90th percentile of the others.

    The comparison is repeated without the outliers, until there is no further outlier. Fewer than
    three conversations have no outlier.
    """
    known = {each.id: known_figures(each) for each in measured}
    apart: set[str] = set()
    while found := {*_largest(known, "need"), *_largest(known, "size")}:
        apart |= found
        for each in found:
            del known[each]
    return apart


def _largest(known: Mapping[str, Figures], name: str) -> Iterable[str]:
    """Yield the id of the conversation with the largest value of the figure `name`, if this value
    is far larger than the rest.
    """
    sizes = sorted((getattr(each, name) or 0, id) for id, each in known.items())
    if len(sizes) > FEWEST_OTHERS:
        others = [size for size, _ in sizes[:-1]]
        if sizes[-1][0] > FAR_MORE * at_share(others, 0.9) > 0:
            yield sizes[-1][1]


def at_share(ordered: Sequence[int], share: float) -> int:
    """Return a percentile of sorted numbers: for a `share` of 0.5 the median, and for 0.9 the 90th
    percentile.

    The percentile is always one of the numbers: of 1, 2, 3 and 4, a share of 0.5 gives 2, and 0.9
    gives 4.
    """
    return ordered[max(0, -(-int(len(ordered) * share * 10) // 10) - 1)]


# The choice


class _Choice:
    """Chooses the advised option for the counted conversations."""

    def __init__(
        self, measured: Sequence[Measured], scope: Scope, goals: Goals, prices: Prices
    ) -> None:
        self._found = Options(measured, goals, prices)
        self._scope, self._goals = scope, goals
        self._needed, self._counted = self._found.needed, self._found.counted
        self.everything, self.today = self._found.everything, self._found.today
        self.windows = self._found.windows

    def advice(self) -> Advice:
        verdict, pick = self._verdict()
        if self._is_client:
            verdict = Verdict.CLIENT
        elif self._refused:
            verdict, pick = Verdict.REFUSED, None
        return Advice(
            verdict,
            self._scope,
            pick,
            self.today,
            self.everything,
            others=() if verdict is Verdict.REFUSED else tuple(self._others(pick)),
            options=tuple(self.windows),
            dominated=sum(map(self._is_dominated, self.windows)),
            prompts=self._prompts,
            goals=self._goals,
        )

    @property
    def _is_client(self) -> bool:
        return all(each.measured.decided_by is DecidedBy.CLIENT for each in self._counted)

    @property
    def _refused(self) -> str:
        """The provider that would reject the windows; "" unless each window would be rejected."""
        named = [each.measured.refused for each in self._counted]
        return named[0] if all(named) else ""

    @property
    def _is_few(self) -> bool:
        return are_few(self._needed)

    @property
    def _prompts(self) -> PromptFigures:
        known = [each.figures for each in self._counted]
        return PromptFigures(
            self._found.longest,
            self._found.turn,
            self._scope.calls,
            sum(each.changed for each in known),
            sum(each.short for each in known),
            "" if self._is_client else self._refused,
        )

    def _verdict(self) -> tuple[Verdict, Option | None]:
        today, pick = self.today, self._pick()
        if today is not None and self._is_kept(today, pick):
            return Verdict.KEEP, today
        if pick is None:
            return Verdict.DOES_NOT_FIT, None
        if not self._needed:
            return Verdict.CHEAPEST, pick
        return (Verdict.CHANGE if pick.policy else Verdict.SEND_EVERYTHING), pick

    def _pick(self) -> Option | None:
        """Return the cheapest window that may be advised. If there is none, return sending
        everything, or None if that does not fit the model.
        """
        for each in self.windows:
            if self._qualifies(each) and not self._is_dominated(each):
                return each
        return self.everything if self.everything.fits else None

    def _is_kept(self, today: Option, pick: Option | None) -> bool:
        """Return whether to keep the option in force, because `pick` is not clearly better."""
        if pick is None:
            return self._is_few and today.fits
        if pick.policy == today.policy and not today.mixed:
            return True
        if self._is_few:  # only what loses nothing, and costs less
            return pick.cost >= today.cost - CLOSE or (
                not today.lost and not today.repeated and self._saves_little(today, pick)
            )
        if self._qualifies(today):
            return self._saves_little(today, pick)
        is_everything = pick.policy is None
        return is_everything and self._is_sound(today) and self._is_as_good(today)

    def _is_as_good(self, today: Option) -> bool:
        """Return whether the option in force costs no more than sending everything, and loses no
        fact.
        """
        return today.cost <= 1 + CLOSE and today.share >= 1 - CLOSE and not today.repeated

    def _saves_little(self, today: Option, pick: Option) -> bool:
        return pick.cost > (1 - self._goals.saving) * today.cost + CLOSE

    def _is_sound(self, option: Option) -> bool:
        """Return whether an option fits the model and has room for the largest turn."""
        return option.fits and self._found.has_room(option)

    def _qualifies(self, option: Option) -> bool:
        """Return whether a window may be advised.

        The window must fit the model, hold enough facts and save enough. Compared with the policy
        in force, it must not hold fewer facts or cause more repetitions.
        """
        return self._is_sound(option) and self._holds_enough(option) and self._saves(option)

    def _holds_enough(self, option: Option) -> bool:
        today = self.today
        if self._goals.spares_users and option.tally.user_repeated:
            return False
        if self._is_few:
            return not option.lost and not option.repeated
        if self._needed and option.share < self._goals.share - CLOSE:
            return False
        if today is None:
            return True
        is_as_much = option.share >= today.share - CLOSE and option.held >= today.held
        return is_as_much and option.repeated <= today.repeated

    def _saves(self, option: Option) -> bool:
        """Return whether an option costs enough less than sending everything, in each half of the
        conversations.

        True for every option if sending everything does not fit the model.
        """
        if not self.everything.fits:
            return True
        most = 1 - self._goals.saving + CLOSE
        return all(cost is None or cost <= most for cost in (option.cost, *option.halves))

    @cached_property
    def _front(self) -> list[Option]:
        """The options that no other option dominates, cheapest first.

        The policy in force is left out if it has no room for the largest turn.
        """
        today = self.today
        known = [*self.windows, self.everything]
        if today is not None and self._found.has_room(today):
            known.append(today)
        found: list[Option] = []
        for each in sorted(filter(attrgetter("fits"), known), key=cheapest):
            if not any(other.dominates(each) for other in found):
                found.append(each)
        return found

    def _is_dominated(self, option: Option) -> bool:
        return any(each.dominates(option) for each in self._front)

    def _others(self, pick: Option | None) -> list[Option]:
        """Return at most three further options to show beside `pick`, cheapest first.

        No option dominates them, and they hold nearly enough facts. Options with a cost near that
        of `pick` are preferred. Without a pick, the options that hold the most facts are returned.
        """
        least = self._goals.share * (1 if self._is_few else NEARLY) * bool(self._needed and pick)
        named = [each for each in (pick, self.today) if each is not None]
        found = [
            each
            for each in self._front
            if each is not self.today
            and each.share >= least - CLOSE
            and not any(_is_same(each, other) for other in named)
            and not (pick and self._is_few and (each.lost or each.repeated))
        ]
        if pick is None:
            found.sort(key=lambda each: -each.share)
        else:
            found.sort(key=lambda each: (each.policy is not None, abs(each.cost - pick.cost)))
        return sorted(_apart(found, named)[:MOST_OTHERS], key=cheapest)


def _apart(options: Iterable[Option], named: Iterable[Option]) -> list[Option]:
    """Return the options whose effects look different on a page.

    An option is left out if its shown figures equal those of an earlier option, or of an option in
    `named`.
    """
    seen = {_shown(each) for each in named}
    found = []
    for each in options:
        if _shown(each) not in seen:
            seen.add(_shown(each))
            found.append(each)
    return found


def _shown(option: Option) -> tuple[int, int, str]:
    return option.held, option.repeated, f"{option.cost:.2f}"


def _is_same(option: Option, other: Option) -> bool:
    return option.policy == other.policy and not other.mixed
