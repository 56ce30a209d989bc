"""The figures of one history, which a lab adds up over many. They hold no word of a message.

What a limit gives is kept as changes by limit, so that the figures of many histories are added by
adding changes. All histories of a sum have the same grid of limits.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, pairwise
from typing import Any

from chatmemory.core.messages import MessageType
from chatmemory.core.policies import Policy
from chatmemory.core.recall.comparison import curve_of, is_exact
from chatmemory.core.recall.history import History, needs, repeats
from chatmemory.core.recall.prompts import prompt_tokens
from chatmemory.core.window import total

# The distances of the limits of a grid in tokens, each up to a limit: short chats have small ones.
TOKENS_APART = ((10, 250), (50, 1_000), (250, math.inf))
MOST_REPLAYED = 60_000  # messages in all, for one history
MOST_SUMMED = 240_000  # the same where loads tell what leaves, which is faster
Changes = dict[int, int]


@dataclass(frozen=True)
class Grid:
    """The limits of figures, in tokens or else in messages, of which each is one.

    `also` are limits between those of the grid, such as one that is in force.
    """

    unit: str
    also: tuple[int, ...] = ()

    def limits(self, least: int, most: int) -> list[int]:
        """Return the limits from the first from `least` on to the first from `most` on."""
        found = {limit for limit in self.also if least <= limit <= most}
        limit = 0
        while limit < max(least, most):
            limit += self._apart(limit)
            if limit >= least:
                found.add(limit)
        return sorted(found)

    @property
    def farthest(self) -> int:
        return TOKENS_APART[-1][0] if self.unit == "tokens" else 1

    def _apart(self, limit: int) -> int:
        if self.unit != "tokens":
            return 1
        return next(apart for apart, until in TOKENS_APART if limit < until)

    def has(self, limit: int) -> bool:
        """Return whether a limit is one of the grid, without those of `also`."""
        return limit % self._apart(limit - 1) == 0


@dataclass(frozen=True)
class Figures:
    """What a history gives at every limit of a grid.

    `everything` are the prompt tokens without a limit. `held`, `lossless`, `incidents` and
    `prompts` are changes by limit: of the recalls held, of whether none is lost, of what a user
    says or a call fetches again while it is forgotten, and of the prompt tokens. `today_held`,
    `today_incidents` and `today_prompts` are those of the policy in force, and None where a client
    decides: without one, and if it only measures. `is_unreadable` tells that a row of the history
    is corrupt. `is_coarse` tells that the history was replayed at some limits of the grid only:
    between two of them prompts rise evenly, and what only a replay can tell is that of the smaller
    one.
    """

    messages: int = 0
    recalls: int = 0
    calls: int = 0
    everything: int = 0
    held: Changes = field(default_factory=dict)
    lossless: Changes = field(default_factory=dict)
    incidents: Changes = field(default_factory=dict)
    prompts: Changes = field(default_factory=dict)
    today_held: int | None = None
    today_incidents: int | None = None
    today_prompts: int | None = None
    is_coarse: bool = False
    is_unreadable: bool = False

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Figures:
        """Return the figures of decoded JSON, whose keys are texts."""
        changes = {
            name: {int(limit): change for limit, change in data[name].items()}
            for name in ("held", "lossless", "incidents", "prompts")
        }
        return cls(**{**data, **changes})

    def held_at(self, limit: int) -> int:
        return sum(change for place, change in self.held.items() if place <= limit)


def figures_of(history: History, kind: Policy, grid: Grid, today: Policy | None = None) -> Figures:
    """Return the figures of a history. The limit of `kind` is ignored."""
    is_summed = is_exact(history, kind)
    limits = grid.limits(kind.least_limit, kind.load(*total(history.entries)) or 1)
    most = (MOST_SUMMED if is_summed else MOST_REPLAYED) // max(1, len(history))
    tried = _some(limits, max(1, most), grid)
    tokens: list[int] = []
    held: list[int] = []
    incidents: list[int] = []
    for limit in tried:  # one replay at a time is in memory
        left = history.loads.left_at(replace(kind, limit=limit))
        tokens.append(prompt_tokens(history, left))
        if not is_summed:
            held.append(_held(history, left))
            incidents.append(_incidents(history, left))
    if is_summed:
        needed, again = curve_of(history, kind), curve_of(history, kind, which=repeats)
        held = [needed.held(limit) for limit in limits]
        incidents = [again.recalls - again.held(limit) for limit in limits]
    recalls = sum(1 for _ in needs(history, history.loads.left_at(None)))
    told = limits if is_summed else tried
    is_coarse = len(tried) < len(limits)
    figures = Figures(
        messages=len(history),
        recalls=recalls,
        calls=sum(entry.type is MessageType.AI for entry in history.entries),
        everything=prompt_tokens(history, history.loads.left_at(None)),
        held=_changes(told, held),
        lossless=_changes(told, [int(number == recalls) for number in held]),
        incidents=_changes(told, incidents),
        prompts=_changes(tried, tokens, keeps_all=is_coarse),
        is_coarse=is_coarse,
    )
    return figures if today is None or today.meters_only else _with_today(figures, history, today)


def _with_today(figures: Figures, history: History, policy: Policy) -> Figures:
    left = history.loads.left_at(policy)
    return replace(
        figures,
        today_held=_held(history, left),
        today_incidents=_incidents(history, left),
        today_prompts=prompt_tokens(history, left),
    )


def _held(history: History, left: Sequence[int]) -> int:
    return sum(use.is_held for use in needs(history, left))


def _incidents(history: History, left: Sequence[int]) -> int:
    return sum(not use.is_held for use in repeats(history, left))


def _some(limits: Sequence[int], most: int, grid: Grid) -> list[int]:
    """Return all limits; or if they are more than `most`, the first, those of `also`, and some of
    those that are farthest apart, at growing distances, up to the last.
    """
    if len(limits) <= most + 1:
        return list(limits)
    apart = [limit for limit in limits if limit % grid.farthest == 0] or limits
    places = {round(len(apart) ** (place / most)) - 1 for place in range(most + 1)}
    some = {limits[0], *(apart[place] for place in places), *({*grid.also} & {*limits})}
    return sorted(some)


def _changes(limits: Sequence[int], values: Sequence[int], keeps_all: bool = False) -> Changes:
    """Return where values change, or with `keeps_all` also where one is as the last."""
    found, last = {}, 0
    for limit, value in zip(limits, values, strict=True):
        if value != last or keeps_all:
            found[limit] = value - last
            last = value
    return found


@dataclass(frozen=True)
class LimitPoint:
    """What a limit gives: recalls held, conversations that lose nothing, prompt tokens, and what
    comes up again from a user or tool while it is forgotten.
    """

    limit: int
    held: int
    lossless: int
    prompts: int
    incidents: int = 0


class Sums:
    """The figures of many histories added up."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self.count = self.messages = self.recalls = self.calls = self.everything = 0
        self.today_held = self.today_incidents = self.today_prompts = self.today_lossless = 0
        self.today_recalls = self.today_calls = self.today_count = 0
        self.unreadable = 0
        self.is_coarse = False
        self._held: Counter[int] = Counter()
        self._lossless: Counter[int] = Counter()
        self._incidents: Counter[int] = Counter()
        self._prompts: Counter[int] = Counter()
        self._slopes: defaultdict[int, float] = defaultdict(float)

    def add(self, figures: Figures) -> None:
        self.count += 1
        self.unreadable += figures.is_unreadable
        self.messages += figures.messages
        self.recalls += figures.recalls
        self.calls += figures.calls
        self.everything += figures.everything
        self.is_coarse |= figures.is_coarse
        prompts = self._risen(figures.prompts) if figures.is_coarse else figures.prompts
        self._held.update(figures.held)
        self._lossless.update(figures.lossless)
        self._incidents.update(figures.incidents)
        self._prompts.update(prompts)
        if figures.today_held is not None:
            self.today_count += 1
            self.today_held += figures.today_held
            self.today_incidents += figures.today_incidents or 0
            self.today_recalls += figures.recalls
            self.today_calls += figures.calls
            self.today_prompts += figures.today_prompts or 0
            self.today_lossless += figures.today_held == figures.recalls

    def _risen(self, changes: Changes) -> Changes:
        """Let sums rise evenly from one change to the next, and return the first change."""
        for (first, _), (last, change) in pairwise(sorted(changes.items())):
            slope = change / (last - first)
            self._slopes[first] += slope
            self._slopes[last] -= slope
        return {limit: changes[limit] for limit in sorted(changes)[:1]}

    def points(self) -> list[LimitPoint]:
        """Return what each limit of the grid gives, up to the one from which nothing changes."""
        if not self.count:
            return []
        changing = (self._held, self._lossless, self._incidents, self._prompts, self._slopes)
        held = lossless = incidents = prompts = last = 0
        slope = risen = 0.0
        found = []
        for limit in self.grid.limits(1, max([1, *chain(*changing)])):
            held += self._held[limit]
            lossless += self._lossless[limit]
            incidents += self._incidents[limit]
            prompts += self._prompts[limit]
            risen += slope * (limit - last)
            slope += self._slopes.get(limit, 0)
            last = limit
            found.append(LimitPoint(limit, held, lossless, prompts + round(risen), incidents))
        return found


def smallest(points: Sequence[LimitPoint], recalls: int, share: float) -> LimitPoint | None:
    """Return the smallest limit from which every larger one holds this share of the recalls."""
    enough = None
    for point in reversed(points):
        if point.held < share * recalls - 1e-9:
            break
        enough = point
    return enough
