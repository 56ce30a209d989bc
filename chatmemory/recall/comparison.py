"""Replays a history under a policy: which facts are held or lost, and what the prompts cost.

Also computes the recall curve, which says how many recalls are held at each limit.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate

from chatmemory.messages.message import MessageType
from chatmemory.recall.history import History
from chatmemory.recall.kinds import IncidentKind
from chatmemory.recall.loads import (
    MOST_ADDS,
    Departures,
    Interval,
    Keeping,
    evicts_oldest_first,
    smallest_limit,
)
from chatmemory.recall.needs import ChooseNeeds, Need, all_of_them, needs, repeats
from chatmemory.recall.prompts import Prompts, Refusals, prompt_sizes, prompts_of
from chatmemory.windows.policies import Policy
from chatmemory.windows.window import Entry


@dataclass(frozen=True)
class Replay:
    """The replay of a history under a policy. The policy None sends everything.

    - `departures`: when each message left memory, and the placeholders of cleared tool results.
    - `recalls`: the number of needs. A need is a use of a fact or tool call from earlier (see
      `needs`).
    - `lost`: the needs, in order, whose fact or tool call was no longer in memory.
    - `prompts`: the prompts of all model calls.
    """

    policy: Policy | None
    history: History
    departures: Departures
    recalls: int
    lost: tuple[Need, ...]
    prompts: Prompts

    @property
    def held(self) -> int:
        """The number of needs whose facts were in memory. Facts that only an index message listed
        do not count.
        """
        return self.recalls - len(self.lost)

    @cached_property
    def by_index(self) -> int:
        """The number of lost needs whose facts an index message listed. If a need has several
        facts, the facts that the index does not list must be in memory.
        """
        return listed_by_index(self.history, self.departures, self.lost)

    def count_of(self, kind: IncidentKind) -> int:
        """Return the number of lost needs of this kind."""
        return sum(need.kind is kind for need in self.lost)

    @property
    def incidents(self) -> tuple[Need, ...]:
        """The lost needs in which a user repeated a fact, or in which a tool call was repeated."""
        return tuple(repeats(self.lost))

    @property
    def forgotten(self) -> int:
        """The number of messages whose text is not in memory at the end. An ignored system message
        does not count.
        """
        return sum(
            until < len(self.history) and not self.ignores(position)
            for position, until in enumerate(self.departures.of_texts)
        )

    def ignores(self, position: int) -> bool:
        """Return whether the message at a position was ignored: it equals the system message that
        was in memory.
        """
        is_system = self.history.entries[position].type is MessageType.SYSTEM
        return is_system and self.departures.at[position] == position

    def has(self, position: int, at: int) -> bool:
        """Return whether memory after the first `at` messages has the text of the message at a
        position. A placeholder does not count.
        """
        return position < at <= self.departures.of_texts[position]

    def has_stub(self, position: int, at: int) -> bool:
        """Return whether memory after the first `at` messages has a placeholder for the tool result
        at a position.
        """
        return self.departures.of_texts[position] < at <= self.departures.at[position]

    @cached_property
    def everything(self) -> Prompts:
        """The prompts of sending everything."""
        return prompts_of(self.history, self.history.loads.departures(None))

    def prompt_sizes(self) -> list[int]:
        """Return, for each message, the tokens of a prompt that is sent directly after it."""
        return prompt_sizes(self.history, self.departures)


def replay(history: History, policy: Policy | None, refusals: Refusals | None = None) -> Replay:
    """Replay a history under a policy. The policy None sends everything.

    `refusals` decides which providers would reject a prompt. With it, `prompts.refused` of the
    result counts the rejected prompts by provider.
    """
    departures = history.loads.departures(policy)
    needed = list(needs(history, departures.of_texts))
    return Replay(
        policy,
        history,
        departures,
        len(needed),
        tuple(need for need in needed if not need.is_held),
        sent_in(history, policy, departures, refusals),
    )


def listed_by_index(history: History, departures: Departures, lost: Iterable[Need]) -> int:
    """Return the number of `lost` needs whose facts the index listed just before they were needed.
    Facts that were still in memory need not be listed.
    """
    spans = departures.indexes
    if not spans:
        return 0
    texts = departures.of_texts
    named = [history.lexicon.mentioned_in([each.text]) for each in spans]
    starts = [each.at for each in spans]

    def is_in_window(name: str, position: int) -> bool:
        return any(
            texts[each] >= position and name in history.mentions(each) for each in range(position)
        )

    found = 0
    for need in lost:
        at = bisect_left(starts, need.position)
        names = named[at - 1] if at else frozenset()
        found += all(name in names or is_in_window(name, need.position) for name, _ in need.parts)
    return found


def sent_in(
    history: History,
    policy: Policy | None,
    departures: Departures,
    refusals: Refusals | None = None,
) -> Prompts:
    """Return the prompts of a replay under a policy. `departures` says when each message left. With
    `refusals`, `refused` of the result counts the rejected prompts by provider.
    """
    keeps_first = policy is not None and policy.always_keep_system_message_first
    return prompts_of(history, departures, keeps_first, refusals)


FACTS_ENOUGH = 10  # recalls; fewer say little about a limit
MOST_FOLLOWED = 5_000  # the most messages that are added, in all replays, to follow a phrase


@dataclass(frozen=True)
class PhraseFate:
    """How long a phrase stays in memory under a policy, as `follow` returns it.

    - `forgotten`: the position of the message at whose arrival the phrase first left memory; None
      if it never left, or if no message has it.
    - `keeping`: the smallest limit that keeps the phrase in memory after the first `at` messages;
      `at` is an argument of `follow`. None if unknown, or without a policy.
    """

    forgotten: int | None
    keeping: Keeping | None


def follow(
    history: History,
    gone_at: Sequence[int],
    mentions: Sequence[int],
    policy: Policy | None,
    at: int,
) -> PhraseFate:
    """Return how long a phrase stays in memory. `mentions` are the positions of the messages with
    the phrase, in ascending order.

    `gone_at[i]` is the position of the message at whose arrival the text of the message at position
    i left memory. `keeping` in the result is the smallest limit that keeps the phrase in memory
    after the first `at` messages.
    """
    before = [position for position in mentions if position < at]
    keeping = None
    if policy is not None:
        keeping = smallest_limit_for(history.entries[:at], before, policy)
    return PhraseFate(_forgotten(gone_at, mentions), keeping)


def smallest_limit_for(
    entries: Sequence[Entry], mentions: Sequence[int], policy: Policy
) -> Keeping | None:
    """Return the smallest limit that keeps at least one of the messages at `mentions` in memory to
    the end. None if unknown.

    Of the messages at `mentions`, only the latest system message and the latest other message are
    tried.
    """
    systems = [position for position in mentions if entries[position].type is MessageType.SYSTEM]
    others = [position for position in mentions if entries[position].type is not MessageType.SYSTEM]
    latest = (*others[-1:], *systems[-1:])
    return smallest_of(smallest_limit(entries, each, policy, MOST_FOLLOWED) for each in latest)


def smallest_of(found: Iterable[Keeping | None]) -> Keeping | None:
    """Return the smallest of these limits. In `found`, None stands for an unknown limit. Returns
    None if all limits are unknown.
    """
    known = [each for each in found if each is not None]
    return min(known, key=lambda each: each.limit or math.inf, default=None)


def _forgotten(gone_at: Sequence[int], mentions: Sequence[int]) -> int | None:
    held_until = -1
    for position in mentions:
        if 0 <= held_until < position:
            return held_until
        held_until = max(held_until, gone_at[position])
    return held_until if 0 <= held_until < len(gone_at) else None


# The recall curve, from one pass
#
# The limits under which a recall is held are a union of intervals, which may have a gap: a result
# whose call left before the result arrived stays, whereas a larger limit keeps the call until both
# leave together. If there are several mentions, only the last one matters: it leaves last, and its
# intervals contain the intervals of the others.


@dataclass(frozen=True)
class RecallCurve:
    """How many recalls are held at each limit. `recalls` is the number of all recalls.

    `changes` says at which limits the number of held recalls changes, and by how much:

        {10: 3, 20: -1} -> 0 below 10, 3 from 10 on, 2 from 20 on

    `tried_every` is the distance between the limits that were tried; 1 if the curve is exact.
    """

    recalls: int
    changes: Mapping[int, int] = field(default_factory=dict)
    tried_every: int = 1

    @cached_property
    def points(self) -> tuple[tuple[int, int], ...]:
        """The limits at which the number of held recalls changes, each with the new number."""
        limits = sorted(limit for limit, change in self.changes.items() if change)
        numbers = accumulate(self.changes[limit] for limit in limits)
        return tuple(zip(limits, numbers, strict=True))

    def held(self, limit: int) -> int:
        """Return how many recalls are held at a limit."""
        found = bisect_right(self.points, limit, key=lambda point: point[0])
        return self.points[found - 1][1] if found else 0

    def smallest_limit(self, share: float = 1.0) -> int | None:
        """Return the smallest limit such that this limit and all larger limits hold at least this
        share of the recalls. None if there is no such limit. 1 if there are no recalls.
        """
        needed = share * self.recalls - 1e-9
        if needed <= 0:
            return 1
        below = [i for i, (_, number) in enumerate(self.points) if number < needed]
        first = below[-1] + 1 if below else 0
        return self.points[first][0] if first < len(self.points) else None


def curve_of(
    history: History,
    policy: Policy,
    most_adds: int = MOST_ADDS,
    which: ChooseNeeds = all_of_them,
    also: Iterable[int] = (),
) -> RecallCurve:
    """Return the recall curve of a history. Only kind and options of `policy` are used, not its
    limit. `which` chooses the needs to count.

    If `is_exact` is True, the curve is exact. Otherwise, the history is replayed under limits at
    equal distances, and under the valid limits in `also`. The distance is so large that the
    replays, without those for `also`, add at most about `most_adds` messages in all.
    """
    if is_exact(history, policy):
        return _from_intervals(history, policy, which)
    most = max(1, policy.load(policy.total(history.entries)))
    step = max(1, -(-most * len(history) // most_adds))
    first = step * -(-policy.least_limit // step)
    grid = range(first, max(first, most) + step, step)
    limits = {*grid, *(limit for limit in also if limit >= policy.least_limit)}
    return _tried_at(history, policy, sorted(limits), step, which)


def is_exact(history: History, policy: Policy) -> bool:
    """Return whether the recall curve can be computed exactly, without replays. For example,
    `low_water` prevents this.
    """
    return evicts_oldest_first(policy) and history.loads.have_one_system


def _tried_at(
    history: History, policy: Policy, limits: Iterable[int], tried_every: int, which: ChooseNeeds
) -> RecallCurve:
    """Return the recall curve from a replay under each of these limits, which are in ascending
    order.
    """
    changes: dict[int, int] = {}
    recalls = held = 0
    for limit in limits:
        gone_at = history.loads.departures(replace(policy, limit=limit)).of_texts
        found = [need.is_held for need in which(needs(history, gone_at))]
        recalls = len(found)
        changes[limit] = sum(found) - held
        held = sum(found)
    return RecallCurve(recalls, changes, tried_every)


def _from_intervals(history: History, policy: Policy, which: ChooseNeeds) -> RecallCurve:
    changes: Counter[int] = Counter()
    recalls = 0
    for need in which(needs(history, history.loads.departures(None).of_texts)):
        recalls += 1
        for first, stop in _limits_of(history, need, policy):
            changes[max(1, first)] += 1
            if stop is not None:
                changes[max(1, stop)] -= 1
    return RecallCurve(recalls, dict(changes))


def _limits_of(history: History, need: Need, policy: Policy) -> list[Interval]:
    """Return the limits under which all parts of a need are held."""
    last = need.position - 1
    system = history.loads.systems[last]
    mention = need.depends_on(() if system is None else history.mentions(system))
    return ALWAYS if mention is None else history.loads.limits_that_hold(mention, last, policy)


ALWAYS: list[Interval] = [(1, None)]


def limits_that_hold(
    history: History, fact: str, mention: int, last: int, policy: Policy
) -> list[Interval]:
    """Return the limits, as intervals, under which memory still has a fact after the message at
    `last`. `mention` is the position of the last message with the fact.

    Call this only if `is_exact` is True for the history and the policy.
    """
    system = history.loads.systems[last]
    if system is not None and fact in history.mentions(system):
        return ALWAYS
    return history.loads.limits_that_hold(mention, last, policy)
