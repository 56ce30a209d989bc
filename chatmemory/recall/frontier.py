"""Replays many histories under many policies, and adds up the tallies of each policy.

Limits that hold the whole history are not replayed: their tally is that of sending everything. A
tally contains no text of a message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cache, cached_property
from itertools import pairwise
from typing import NamedTuple

from chatmemory.messages.json_values import JsonDict, JsonMap
from chatmemory.messages.message import MessageType
from chatmemory.recall.comparison import curve_of
from chatmemory.recall.cost import NO_BOUNDS, Bill, CacheRules, Call
from chatmemory.recall.history import History
from chatmemory.recall.needs import needs
from chatmemory.recall.prompts import prompt_sizes
from chatmemory.recall.tallies import NOTHING, Tallies, Tally
from chatmemory.windows.policies import WHOLE, Policy, TokenWindow, has_own_rule
from chatmemory.windows.window import Entry

FIGURES_RULES = "12"  # the version of the figures: raise it with each change of them
MEASURED_MAX = 5_000  # the newest messages, on which a longer conversation is measured
FEWEST_CALLS = 3  # a conversation with fewer calls does not count
MOST_ADDS = 400_000  # the most messages added in all, where each policy needs a replay
MOST_CLEARED = 20_000  # the same for clearing tool results, which takes about ten times as long


LOW_WATERS = tuple(map(Decimal, ("1", "0.8", "0.6", "0.5")))
LEAST = {"tokens": 100}  # the smallest limit to try; 2 for any other unit
ANY_LIMIT = 10**9  # a limit that is valid with all options
RESULTS_KEPT = 3  # tool results that are never cleared; Anthropic's default
_STEPS = (4, 5, 6, 8, 10, 12, 14, 16, 20, 24, 32)  # quarters of a power of ten


@dataclass(frozen=True)
class TriedPolicies:
    """The policies to compare in replays: each of the `variants` under several limits. A variant's
    own limit is ignored.

    - `also`: limits to try besides the usual ones (see `limits_of`).
    - `chosen_limits`: for each variant, the only limits to try; None for the usual ones.
    - `rules`: the rules of the provider's prompt cache.
    """

    variants: tuple[Policy, ...]
    also: tuple[int, ...] = ()
    rules: CacheRules = NO_BOUNDS
    chosen_limits: tuple[tuple[int, ...], ...] | None = None

    @cached_property
    def policy(self) -> Callable[[int, int], Policy]:
        """A function that takes the index of a variant and a limit, and returns the policy. It
        builds each policy once.
        """
        return cache(lambda variant, limit: replace(self.variants[variant], limit=limit))

    @property
    def kind(self) -> Policy:
        return self.variants[0]

    def clears_beside(self, variant: int) -> bool:
        """Return whether a variant clears old tool results while the first variant does not. Always
        False with `chosen_limits`.

        Such a variant needs slow replays, so only half as many limits are tried.
        """
        is_of_grid = self.chosen_limits is None and not self.kind.whole_results
        return is_of_grid and self.variants[variant].whole_results > 0

    def limits(self, variant: int, most: int) -> Sequence[int]:
        """Return the limits to try for a variant. All are below `most`, the limit that holds the
        whole history.
        """
        if self.chosen_limits is not None:
            return [limit for limit in self.chosen_limits[variant] if limit < most]
        least = self.variants[variant].least_limit
        steps = _STEPS[::2] if self.clears_beside(variant) else _STEPS
        limits = limits_of(self.kind.unit, most, self.also, steps)
        return [limit for limit in limits if limit >= least]

    def place_of(self, policy: Policy) -> tuple[int, int]:
        """Return two numbers for a compared policy: the index of its variant, and its limit."""
        return self.variants.index(_variant(policy)), policy.limit

    def place_if_tried(self, policy: Policy) -> int | None:
        """Return the index of the variant with the kind and options of this policy; None if there
        is none.
        """
        kind = _variant(policy)
        return self.variants.index(kind) if kind in self.variants else None


def tried_of_kind(
    kind: Policy,
    also: Iterable[int] = (),
    rules: CacheRules = NO_BOUNDS,
    clears_results: bool = True,
) -> TriedPolicies:
    """Return the policies to compare with `kind`, which is the first variant. Other variants can
    have another `low_water` (1, 0.8, 0.6 or 0.5), `snap_to_user`, or both.

    With `clears_results`, a token window that does not clear old tool results has one more variant,
    which clears them. `also` are limits to try besides the usual limits, and `rules` are the rules
    of the prompt cache.
    """
    kind = _variant(kind)
    waters = (WHOLE,) if has_own_rule(type(kind)) else LOW_WATERS
    begun = (kind,) if kind.takes_whole_turns else (kind, replace(kind, snap_to_user=True))
    found = [kind, *(_trimmed_to(each, water) for each in begun for water in waters)]
    if clears_results and isinstance(kind, TokenWindow) and not kind.whole_results:
        found.append(replace(kind, clear_tool_results=RESULTS_KEPT))
    return TriedPolicies(tuple(dict.fromkeys(found)), tuple(sorted(also)), rules)


def _trimmed_to(kind: Policy, water: Decimal) -> Policy:
    """Return a policy with another `low_water`. If it trims no further than the limit, a token
    window loses its index.
    """
    if water == WHOLE and isinstance(kind, TokenWindow):
        return replace(kind, low_water=water, index_terms=0)
    return replace(kind, low_water=water)


def tried_policies(policies: Iterable[Policy | None], rules: CacheRules) -> TriedPolicies:
    """Return exactly these policies as `TriedPolicies`: each is tried only with its own limit. None
    (sending everything) is left out. `rules` are the rules of the prompt cache.
    """
    limits: dict[Policy, list[int]] = {}
    for policy in policies:
        if policy is not None:
            limits.setdefault(_variant(policy), []).append(policy.limit)
    return TriedPolicies(tuple(limits), (), rules, tuple(map(tuple, limits.values())))


def _variant(policy: Policy) -> Policy:
    return replace(policy, limit=ANY_LIMIT)


def limits_of(
    unit: str, most: int, also: Iterable[int] = (), steps: Sequence[int] = _STEPS
) -> list[int]:
    """Return the limits to try, in ascending order: by default 11 for each power of ten, and those
    in `also`. All are below `most`.

    Each number in `steps` is multiplied by each power of ten and divided by 4. The number 6 gives
    the limits 15, 150, 1,500 and so on. Fractions are left out.

    Limits below 100 tokens, or below 2 messages or turns, are tried only if they are in `also`.
    """
    least, power, found = LEAST.get(unit, 2), 1, {limit for limit in also if limit < most}
    while power < most:
        tried = (step * power // 4 for step in steps if step * power % 4 == 0)
        found |= {limit for limit in tried if least <= limit < most}
        power *= 10
    return sorted(found)


# Wide: a stored row's JSON, whose members have the names of the fields.
@dataclass(frozen=True)
class Figures:
    """The figures of one history under the policies that are compared.

    - `messages`, `calls`: the number of messages, and the number of model calls.
    - `recalls`: the number of needs, held or not.
    - `size`: the tokens of the history. `load` is the smallest limit that holds the whole history.
    - `everything`: the tally of sending everything. `longest` is the tokens of the largest prompt
      of sending everything.
    - `points`: the tallies of the compared policies, by the index in `TriedPolicies.variants` and
      then by the limit.
    - `today`: the tally of the policy in force; None if the client decides.
    - `changed`: how many prompts do not start with the whole previous prompt. The prompts are those
      under the policy in force; if the client decides, those of sending everything.
    - `short`: how many of the same prompts are too short for the prompt cache.
    - `need`: the smallest limit from which on all needs are held, without `low_water` and
      `snap_to_user`. None if there is no such limit.
    - `turn`: the smallest limit that holds the largest turn and the system message.
    - `clears`: whether the clearing of tool results was tried.
    - `is_unreadable`: whether a row of the history is corrupt.
    """

    messages: int = 0
    recalls: int = 0
    calls: int = 0
    longest: int = 0
    everything: Tally = NOTHING
    points: Mapping[int, Mapping[int, Tally]] = field(default_factory=dict)
    today: Tally | None = None
    need: int | None = None
    is_unreadable: bool = False
    clears: bool = False
    size: int = 0
    load: int = 0
    turn: int = 0
    changed: int = 0
    short: int = 0

    def to_dict(self) -> JsonDict:
        """Return the figures as JSON values."""
        return {**vars(self), "points": {n: dict(found) for n, found in self.points.items()}}

    @classmethod
    def from_dict(cls, data: JsonMap) -> Figures:
        """Return the figures from JSON values that `to_dict` wrote."""
        points = {
            int(variant): {int(limit): Tally(*tally) for limit, tally in found.items()}
            for variant, found in data["points"].items()
        }
        today = Tally(*data["today"]) if data["today"] else None
        everything = Tally(*data["everything"])
        return cls(**{**data, "points": points, "today": today, "everything": everything})


def figures_of(history: History, tried: TriedPolicies, today: Policy | None = None) -> Figures:
    """Return the figures of a history under the policies that are compared. For a very long
    history, the figures are those of its newest messages.

    `today` is the policy in force, or None if no policy decides what is in memory.
    """
    tallies = Tallies(history, tried.kind, tried.rules)
    if tallies.are_slow:
        history = _newest(history, tried)
        tallies = Tallies(history, tried.kind, tried.rules)
    everything = history.loads.departures(None).of_texts
    most = tried.kind.load(tried.kind.total(history.entries))
    clears = _can_clear(history, tried, most)
    points: dict[int, dict[int, Tally]] = {}
    for number in range(len(tried.variants)):
        limits = tried.limits(number, most)
        if tried.clears_beside(number) and not clears:
            points[number] = {limit: points[0][limit] for limit in limits}
        else:
            points[number] = {limit: tallies.of(tried.policy(number, limit)) for limit in limits}
    own, calls = None, tallies.calls(None)
    if today:
        is_alike = today.costs_like(tried.kind)
        under_today = tallies if is_alike else Tallies(history, today, tried.rules)
        own, calls = under_today.of(today), under_today.calls(today)
    sliding = replace(_trimmed_to(tried.kind, WHOLE), snap_to_user=False)
    return Figures(
        messages=len(history),
        recalls=sum(1 for _ in needs(history, everything)),
        calls=sum(entry.type is MessageType.AI for entry in history.entries),
        longest=longest_prompt(history),
        everything=tallies.of(None),
        points=points,
        today=own,
        need=curve_of(history, sliding).smallest_limit(),
        clears=clears,
        size=sum(history.tokens),
        load=most,
        turn=limit_needed(history.entries, tried.kind),
        changed=changed_prefixes(calls, history.overhead),
        short=sum(not tried.rules.is_cached(call.prompt) for call in calls),
    )


def changed_prefixes(calls: Sequence[Call], overhead: int) -> int:
    """Return how many prompts do not start with the whole previous prompt. `overhead` is the number
    of tokens of a request without messages.
    """
    return sum(then.shared < before.prompt - overhead for before, then in pairwise(calls))


def limit_needed(entries: Iterable[Entry], policy: Policy) -> int:
    """Return the limit that holds the largest turn and the system message, in the policy's unit."""
    return max(needed_limits(entries, policy), default=0)


def needed_limits(entries: Iterable[Entry], policy: Policy) -> Iterator[int]:
    """Yield, for each entry, the limit that holds the system message and the turn up to this entry;
    0 for a system message.
    """
    system = turn = 0
    for entry in entries:
        cost = policy.weigh(entry)
        if entry.type is MessageType.SYSTEM:
            system = cost
            yield 0
            continue
        turn = cost if entry.type is MessageType.USER else turn + cost
        yield policy.overhead + system + turn


def _can_clear(history: History, tried: TriedPolicies, most: int) -> bool:
    """Return whether the clearing of tool results can be tried: the history has old ones, and few
    enough messages to replay.
    """
    results = sum(entry.type is MessageType.TOOL_EXECUTION_RESULT for entry in history.entries)
    clearing = filter(tried.clears_beside, range(len(tried.variants)))
    replays = sum(len(tried.limits(number, most)) for number in clearing)
    return replays > 0 and results > RESULTS_KEPT and len(history) * replays <= MOST_CLEARED


def longest_prompt(history: History) -> int:
    """Return the tokens of a history's largest prompt if everything is sent."""
    return max(prompt_sizes(history, history.loads.departures(None)), default=0)


def _newest(history: History, tried: TriedPolicies) -> History:
    """Return the end of a history that is short enough to be replayed under every policy."""
    most = tried.kind.load(tried.kind.total(history.entries))
    policies = sum(len(tried.limits(n, most)) for n in range(len(tried.variants)))
    return history.newest(MOST_ADDS // max(1, policies))


class Point(NamedTuple):
    """The tally of a policy over many conversations. The policy None sends everything."""

    policy: Policy | None
    tally: Tally


class Sums:
    """The figures of some conversations, added up by policy."""

    def __init__(self, tried: TriedPolicies, figures: Iterable[Figures] = ()) -> None:
        self.tried = tried
        self.count = self.recalls = self.calls = self.longest = self.todays = 0
        self.clears = False
        self.everything = self.today = NOTHING
        self._less: dict[tuple[int, int], Tally] = {}
        for each in figures:
            self.add(each)

    def add(self, figures: Figures) -> None:
        self.count += 1
        self.recalls += figures.recalls
        self.calls += figures.calls
        self.longest = max(self.longest, figures.longest)
        self.clears = self.clears or figures.clears
        self.everything = self.everything.plus(figures.everything)
        if figures.today is not None:
            self.todays += 1
            self.today = self.today.plus(figures.today)
        for variant, found in figures.points.items():
            for limit, tally in found.items():
                less = self._less.get((variant, limit), NOTHING)
                self._less[variant, limit] = less.plus(tally.minus(figures.everything))

    def points(self) -> list[Point]:
        """Return the tallies of the compared policies. A policy under which no message leaves in
        any conversation is left out.

        The variant that clears tool results is left out if no conversation has results to clear.
        """
        return [
            Point(self.tried.policy(variant, limit), self.everything.plus(less))
            for (variant, limit), less in sorted(self._less.items())
            if self.clears or not self.tried.clears_beside(variant)
        ]

    def at(self, policy: Policy | None) -> Tally:
        """Return the tally of a compared policy, over all conversations. The policy None sends
        everything.
        """
        if policy is None:
            return self.everything
        return self.everything.plus(self._less.get(self.tried.place_of(policy), NOTHING))

    def bill(self, tally: Tally) -> Bill:
        return tally.bill(self.calls)


def halves(figures: Sequence[Figures]) -> tuple[list[Figures], list[Figures]]:
    """Split figures into two lists by their indices. The first list has the figures at even indices
    (0, 2, 4 and so on), and is for choosing a policy. The second list has the figures at odd
    indices, and is for checking the choice.
    """
    return list(figures[::2]), list(figures[1::2])
