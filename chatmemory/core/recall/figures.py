"""The figures of one history, which a lab adds up over many. They hold no word of a message.

Limits are those of a grid: the limit at an index is the index times `every`. What a limit gives is
kept as changes by index, so that the figures of many histories are added by adding changes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from typing import Any

from chatmemory.core.messages import MessageType
from chatmemory.core.policies import Policy
from chatmemory.core.recall.curves import curve_of, is_exact
from chatmemory.core.recall.facts import History, uses
from chatmemory.core.recall.prompts import prompt_tokens
from chatmemory.core.window import total

TOKENS_APART = 250
MOST_REPLAYED = 60_000  # messages in all, for one history
MOST_SUMMED = 240_000  # the same where loads tell what leaves, which is faster
Changes = dict[int, int]


@dataclass(frozen=True)
class Figures:
    """What a history gives at every limit of a grid.

    `everything` are the prompt tokens without a limit. `held`, `lossless` and `prompts` are changes
    by index: of the recalls held, of whether none is lost, and of the prompt tokens. `today_held`
    and `today_prompts` are those of the policy in force, and None where a client decides: without
    one, and if it only measures. `repeats` are pairs of numbers: a user's message that said again
    what had been forgotten, and the message that had said it. `is_unreadable` tells that a row of
    the history is corrupt. `is_coarse` tells that the history was replayed at some limits of the
    grid only: between two of them prompts rise evenly, and recalls that only a replay can tell are
    those of the smaller one.
    """

    every: int
    messages: int = 0
    recalls: int = 0
    calls: int = 0
    everything: int = 0
    held: Changes = field(default_factory=dict)
    lossless: Changes = field(default_factory=dict)
    prompts: Changes = field(default_factory=dict)
    today_held: int | None = None
    today_prompts: int | None = None
    repeats: tuple[tuple[int, int], ...] = ()
    is_coarse: bool = False
    is_unreadable: bool = False

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Figures:
        """Return the figures of decoded JSON, whose keys are texts."""
        changes = {
            name: {int(index): change for index, change in data[name].items()}
            for name in ("held", "lossless", "prompts")
        }
        repeats = tuple((again, said) for again, said in data["repeats"])
        return cls(**{**data, **changes, "repeats": repeats})

    def held_at(self, index: int) -> int:
        return sum(change for place, change in self.held.items() if place <= index)


def grid_distance(policy: Policy) -> int:
    """Return the distance of limits on the grid: 250 tokens or 1 message."""
    return TOKENS_APART if policy.unit == "tokens" else 1


def figures_of(
    history: History,
    kind: Policy,
    today: Policy | None = None,
    repeats: Sequence[tuple[int, int]] = (),
) -> Figures:
    """Return the figures of a history. The limit of `kind` is ignored."""
    every = grid_distance(kind)
    is_summed = is_exact(history, kind)
    indices = _replayed(history, kind, MOST_SUMMED if is_summed else MOST_REPLAYED)
    is_coarse = len(indices) <= indices[-1] - indices[0]
    tokens: list[int] = []
    held: list[int] = []
    recalls = 0
    for index in indices:
        left = history.loads.left_at(replace(kind, limit=index * every))
        tokens.append(prompt_tokens(history, left))
        if not is_summed:
            found = [use.is_held for use in uses(history, left, MessageType.AI)]
            recalls = len(found)
            held.append(sum(found))
    held_changes = _changes(indices, held)
    if is_summed:
        curve = curve_of(history, kind)
        recalls, held_changes = curve.recalls, _rounded(curve.changes, every)
    figures = Figures(
        every=every,
        messages=len(history),
        recalls=recalls,
        calls=sum(entry.type is MessageType.AI for entry in history.entries),
        everything=prompt_tokens(history, history.loads.left_at(None)),
        held=held_changes,
        lossless=_lossless(held_changes, recalls),
        prompts=_changes(indices, tokens, keeps_all=is_coarse),
        repeats=tuple(repeats),
        is_coarse=is_coarse,
    )
    return figures if today is None or today.meters_only else _with_today(figures, history, today)


def _with_today(figures: Figures, history: History, policy: Policy) -> Figures:
    left = history.loads.left_at(policy)
    held = sum(use.is_held for use in uses(history, left, MessageType.AI))
    return replace(figures, today_held=held, today_prompts=prompt_tokens(history, left))


def _replayed(history: History, kind: Policy, messages: int) -> list[int]:
    """Return the indices of the limits to replay a history at, which is so many messages in all."""
    every = grid_distance(kind)
    top = -(-max(1, kind.load(*total(history.entries))) // every)
    least = -(-kind.least_limit // every)
    most = max(1, messages // max(1, len(history)))
    return list(_indices(least, max(top, least), most))


def _indices(least: int, top: int, most: int) -> Iterator[int]:
    """Yield the indices from `least` to `top`; or of more than `most` behind the first some, at
    growing distances, up to the last.
    """
    if top - least <= most:
        yield from range(least, top + 1)
        return
    last = least
    yield least
    for place in range(1, most + 1):
        index = round(least * (top / least) ** (place / most))
        if index > last:
            yield index
            last = index


def _changes(indices: Sequence[int], values: Sequence[int], keeps_all: bool = False) -> Changes:
    """Return where values change, or with `keeps_all` also where one is as the last."""
    found, last = {}, 0
    for index, value in zip(indices, values, strict=False):
        if value != last or keeps_all:
            found[index] = value - last
            last = value
    return found


def _rounded(changes: Mapping[int, int], every: int) -> Changes:
    """Return the changes at limits as changes at indices: the first limit of the grid behind."""
    found: Counter[int] = Counter()
    for limit, change in changes.items():
        found[-(-limit // every)] += change
    return {index: change for index, change in sorted(found.items()) if change}


def _lossless(held: Changes, recalls: int) -> Changes:
    """Return where a history begins to lose nothing, and where it loses something again."""
    found: Changes = {}
    now, was = 0, False
    for index in sorted({1, *held}):
        now += held.get(index, 0)
        if (now == recalls) != was:
            was = not was
            found[index] = 1 if was else -1
    return found


@dataclass(frozen=True)
class LimitPoint:
    """What a limit gives: recalls held, conversations that lose nothing, and prompt tokens."""

    limit: int
    held: int
    lossless: int
    prompts: int


class Sums:
    """The figures of many histories added up."""

    def __init__(self, every: int) -> None:
        self.every = every
        self.count = self.messages = self.recalls = self.calls = self.everything = 0
        self.today_held = self.today_prompts = self.today_lossless = 0
        self.today_recalls = self.today_calls = self.today_count = 0
        self.unreadable = 0
        self.is_coarse = False
        self._held: Counter[int] = Counter()
        self._lossless: Counter[int] = Counter()
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
        self._prompts.update(prompts)
        if figures.today_held is not None and figures.today_prompts is not None:
            self.today_count += 1
            self.today_held += figures.today_held
            self.today_recalls += figures.recalls
            self.today_calls += figures.calls
            self.today_prompts += figures.today_prompts
            self.today_lossless += figures.today_held == figures.recalls

    def _risen(self, changes: Changes) -> Changes:
        """Let sums rise evenly from one change to the next, and return the first change."""
        for (first, _), (last, change) in pairwise(sorted(changes.items())):
            slope = change / (last - first)
            self._slopes[first + 1] += slope
            self._slopes[last + 1] -= slope
        return {index: changes[index] for index in sorted(changes)[:1]}

    def points(self) -> list[LimitPoint]:
        """Return what each limit of the grid gives, up to the one from which nothing changes."""
        if not self.count:
            return []
        ends = (index - 1 for index in self._slopes)
        top = max([*self._held, *self._lossless, *self._prompts, *ends, 1])
        held = lossless = prompts = 0
        slope = risen = 0.0
        found = []
        for index in range(1, top + 1):
            held += self._held[index]
            lossless += self._lossless[index]
            prompts += self._prompts[index]
            slope += self._slopes.get(index, 0)
            risen += slope
            found.append(LimitPoint(index * self.every, held, lossless, prompts + round(risen)))
        return found


def smallest(points: Sequence[LimitPoint], recalls: int, share: float) -> LimitPoint | None:
    """Return the smallest limit from which every larger one holds this share of the recalls."""
    enough = None
    for point in reversed(points):
        if point.held < share * recalls - 1e-9:
            break
        enough = point
    return enough
