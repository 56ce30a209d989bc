"""Computes when messages leave memory in a replay, and which limits keep a message in memory.

If a policy evicts the oldest messages first and has no options, the answer follows from loads. The
load of a window is what the limit bounds, such as its tokens. A message leaves when a window that
begins with it would exceed the limit. A tool result directly after its call leaves with the call.

A larger limit does not always keep more messages. Under a small limit, a call can leave before its
result comes, and then the result stays.

The modules `firsts` and `clearings` compute the answer for some options. For all other policies,
the history is replayed with `windows.eviction`. Tests compare the computed answers with such
replays.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import accumulate, chain
from typing import NamedTuple

from chatmemory.messages.estimators import count_tokens, estimator_for
from chatmemory.messages.message import ChatMessage, MessageType, text_of
from chatmemory.recall.clearings import Clearable, ClearingWindow, clears_commonly
from chatmemory.recall.firsts import Places, firsts, is_common, is_plain, places_of
from chatmemory.recall.folding import fold
from chatmemory.windows.eviction import Reason
from chatmemory.windows.policies import Policy, has_own_rule
from chatmemory.windows.transitions import Transition
from chatmemory.windows.window import Entry, Window

# The most messages that are added when limits are tried one by one, the fewest limits for an
# answer, and the most loads that are summed up to find limits without trying.
MOST_ADDS = 20_000
MOST_LOADS = 200_000
FEWEST_TRIED = 20
_SYSTEM, _RESULT = MessageType.SYSTEM, MessageType.TOOL_EXECUTION_RESULT
_Costs = tuple[Sequence[int], Sequence[int]]
Interval = tuple[int, int | None]  # limits from the first up to, but not including, the second


def evicts_oldest_first(policy: Policy) -> bool:
    """Return whether a policy evicts by the common rule, the oldest messages first, and has no
    options that change this.
    """
    is_usual = not has_own_rule(type(policy)) and not policy.has_window_options
    return is_usual and not policy.whole_results


class Stub(NamedTuple):
    """The placeholder of a cleared tool result in a replay.

    - `at`: the position of the message at whose arrival the result was cleared.
    - `tokens`: the number of tokens of the placeholder.
    """

    at: int
    tokens: int


class IndexSpan(NamedTuple):
    """The period of one index message in a replay, with the tokens and text of the message. It
    begins with the message at position `at`, and ends where the next period begins.

    A period without an index message has 0 `tokens` and the `text` "".
    """

    at: int
    tokens: int
    text: str

    @classmethod
    def of(cls, position: int, change: Transition) -> IndexSpan:
        left = {each.because for each in change.evictions}
        pinned = [each for each in change.arrivals if each.pinned and each.message is not None]
        new = next((each for each in pinned if not left or each in left), None)
        if new is None or new.message is None:
            return cls(position, 0, "")
        return cls(position, new.tokens, text_of(new.message))


@dataclass(frozen=True)
class Departures:
    """When messages left memory in a replay.

    - `at`: for each message, the position of the message at whose arrival it left. For a message
      that stayed, this is the length of the history. For a message that was in no prompt, this is
      its own position.
    - `stubs`: the placeholders of cleared tool results, by the position of the result. For such a
      result, `at` says when its placeholder left.
    - `indexes`: the periods of the index messages, in order.
    """

    at: Sequence[int]
    stubs: Mapping[int, Stub] = field(default_factory=dict)
    indexes: tuple[IndexSpan, ...] = ()

    @cached_property
    def of_texts(self) -> Sequence[int]:
        """When the text of each message left memory: by eviction, or because a placeholder replaced
        the text. Each item is the position of the message that arrived then. For a text that
        stayed, or that was in no prompt, the item is as in `at`.
        """
        if not self.stubs:
            return self.at
        whole = list(self.at)
        for position, stub in self.stubs.items():
            whole[position] = stub.at
        return whole


class Loads:
    """The loads of the windows that a history can have. A load is what the limit bounds, such as
    tokens.

    - `systems`: for each message, the position of the system message in force after it, or None.
    - `calls`: for each tool result that directly follows its tool call, the position of the call;
      else None.
    """

    def __init__(self, messages: Sequence[Entry], said: Sequence[ChatMessage] = ()) -> None:
        self.messages, self._said = messages, said
        self.systems: list[int | None] = []
        self.calls: list[int | None] = []
        self._costs: tuple[Policy, _Costs] | None = None
        system = call = in_force = None
        for position, entry in enumerate(messages):
            self.calls.append(call if entry.type is _RESULT else None)
            if entry.type is not _SYSTEM:
                if entry.type is not _RESULT:
                    call = position if entry.has_calls else None
            elif in_force is None or in_force.message != entry.message:
                system, in_force = position, entry
            self.systems.append(system)

    @property
    def have_one_system(self) -> bool:
        """Whether the history has at most one system message. Then a load never falls when a
        message is added.
        """
        return len({*self.systems} - {None}) <= 1

    def between(self, first: int, last: int, policy: Policy) -> int:
        """Return the load of a window with the messages from position `first` to `last`, both
        included, and the system message in force. The unit is that of the policy's limit.
        """
        before, after = self._costs_under(policy)
        return policy.overhead + after[last] - before[first]

    def _costs_under(self, policy: Policy) -> _Costs:
        """Return, for each message, the cost of all messages before it, and the cost of all
        messages up to it with the system message in force.
        """
        known = self._costs
        if known and policy is known[0]:
            return known[1]
        if known and policy.costs_like(known[0]):
            self._costs = policy, known[1]  # comparing them takes longer than a load
        else:
            messages = self.messages
            costs = [0 if each.type is _SYSTEM else policy.weigh(each) for each in messages]
            sums = [0, *accumulate(costs)]
            systems = [0 if n is None else policy.weigh(messages[n]) for n in self.systems]
            self._costs = policy, (sums, [a + b for a, b in zip(sums[1:], systems, strict=True)])
        return self._costs[1]

    def departures(self, policy: Policy | None) -> Departures:
        """Return when each message leaves in a replay under a policy. The policy None sends
        everything.
        """
        if policy is None:
            return Departures([len(self.messages)] * len(self.messages))
        if evicts_oldest_first(policy):
            return Departures(self._by_loads(policy))
        if self._is_plain and is_common(policy):
            return Departures(self._by_firsts(policy))
        if clears_commonly(policy) and self._is_plain and self._clearable.are_known:
            return self._by_clearing(policy)
        return self._by_rule(policy)

    @cached_property
    def _is_plain(self) -> bool:
        return is_plain(self.messages)

    @cached_property
    def _places(self) -> Places:
        return places_of(self.messages)

    @cached_property
    def _clearable(self) -> Clearable:
        return Clearable(self.messages)

    def _by_clearing(self, policy: Policy) -> Departures:
        """Return when each message leaves a plain history, under a policy that clears old tool
        results.
        """
        count = partial(count_tokens, estimator_for(policy.estimator))
        window = ClearingWindow(*self._window_under(policy), policy, self._clearable, count)
        left, stubs = window.departures()
        return Departures(left, {place: Stub(*each) for place, each in stubs.items()})

    def _window_under(self, policy: Policy) -> tuple[Sequence[int], Places, int, int]:
        """Return four values for a plain history: the costs, the places, the cost of system message
        and overhead, and the position of the first message after the system message.
        """
        costs, _ = self._costs_under(policy)
        system = self.messages[0] if self.systems[:1] == [0] else None
        base = policy.overhead + (policy.weigh(system) if system else 0)
        return costs, self._places, base, int(system is not None)

    def _by_firsts(self, policy: Policy) -> list[int]:
        """Return when each message of a plain history leaves, under a policy with a low mark or
        whole turns.
        """
        costs, places, base, begin = self._window_under(policy)
        left = [len(self.messages)] * len(self.messages)
        for newest, first in enumerate(firsts(costs, places, policy, base, begin)):
            for position in range(begin, first):
                left[position] = newest
            begin = first
        return left

    def _by_rule(self, policy: Policy) -> Departures:
        left = [len(self.messages)] * len(self.messages)
        stubs: dict[int, Stub] = {}
        places = {entry: position for position, entry in enumerate(self.messages)}
        indexes: list[IndexSpan] = []
        folded = fold(Window(), self.messages, policy, self._said)
        for position, (change, cleared, index) in enumerate(folded):
            if index is not None:
                indexes.append(IndexSpan.of(position, index))
            for each in cleared:
                if (stub := each.because) is not None:
                    place = places[stub] = places[each.entry]
                    stubs[place] = Stub(position, stub.tokens)
            if change.ignored:
                left[position] = position
            for eviction in change.evictions:
                place = places[eviction.entry]
                # No prompt ever had an interrupted call
                is_unseen = eviction.reason is Reason.INTERRUPTED
                left[place] = place if is_unseen else position
        return Departures(left, stubs, tuple(indexes))

    def _by_loads(self, policy: Policy) -> list[int]:
        left = self._exceeded_at(policy)
        for position, call in enumerate(self.calls):
            if call is not None and left[call] >= position:
                is_apart = self._is_apart(call, position, left[call], policy)
                left[position] = left[position if is_apart else call]
        until = len(self.messages)
        for position in reversed(range(len(self.messages))):
            if self.systems[position] == position:
                left[position], until = until, position
            elif self.messages[position].type is _SYSTEM:
                left[position] = position
        return left

    def _exceeded_at(self, policy: Policy) -> list[int]:
        """Return, for each message, the position at which a window that begins with it first
        exceeds the limit.
        """
        exceeded, last = [], 0
        for first in range(len(self.messages)):
            last = max(first, last)
            while last < len(self.messages) and self.between(first, last, policy) <= policy.limit:
                last += 1
            exceeded.append(last)
        return exceeded

    def _is_apart(self, call: int, result: int, last: int, policy: Policy) -> bool:
        """Return whether a system message stands between a tool call and its result. Then the
        result does not leave with the call.
        """
        system = self.systems[min(last, len(self.messages) - 1)]
        is_between = system is not None and call < system < result
        return is_between and not policy.always_keep_system_message_first

    def limits_that_drop(
        self, position: int, policy: Policy, end: int | None = None
    ) -> list[range] | None:
        """Return the ranges of limits under which a message is not in the window after the first
        `end` messages (by default, all). Returns None if no limit keeps the message.

        Only for policies that evict the oldest messages first.
        """
        end = len(self.messages) if end is None else end
        if self.messages[position].type is _SYSTEM:
            return [] if self.systems[end - 1] == position else None
        loads = (self.between(position, last, policy) for last in range(position, end))
        dropped = [range(1, max(loads))]
        if (call := self.calls[position]) is not None:
            dropped += self._limits_that_sweep(call, position, policy, end)
        return [limits for limits in dropped if limits]

    def _limits_that_sweep(
        self, call: int, result: int, policy: Policy, end: int
    ) -> Iterator[range]:
        """Yield the ranges of limits under which a tool call takes its result with it when it
        leaves.
        """
        highest = 1
        for last in range(call, end):
            load = self.between(call, last, policy)
            if load > highest and last >= result and not self._is_apart(call, result, last, policy):
                yield range(highest, load)
            highest = max(highest, load)

    def limits_that_hold(self, position: int, last: int, policy: Policy) -> list[Interval]:
        """Return the limits under which memory still has the message at `position` after the
        message at `last` was added.

        Each item (first, end) stands for the limits from `first` up to, but not including, `end`.
        If `end` is None, there is no upper end. The policy must evict the oldest messages first,
        and `have_one_system` must be True.
        """
        alone, call = self.between(position, last, policy), self.calls[position]
        if call is None or self._is_apart(call, position, last, policy):
            return [(alone, None)]
        together = self.between(call, last, policy)
        apart = min(self.between(call, position - 1, policy), together)
        return [(together, None), (alone, apart)] if alone < apart else [(together, None)]


@dataclass(frozen=True)
class Keeping:
    """The smallest limit from which a message stays in memory: this limit and all larger limits
    keep the message. `limit` is None if there is no such limit.

    `tried_every` is the distance between the limits that were tried. If it is 1, `limit` is exact.
    """

    limit: int | None
    tried_every: int = 1


class Mention(NamedTuple):
    """A message that memory should still have at a later time. The message is at `position`, and
    the time is after the first `end` messages were added. `smallest_limits` finds the limit for
    this.
    """

    position: int
    end: int


def smallest_limit(
    messages: Sequence[Entry], position: int, policy: Policy, most_adds: int = MOST_ADDS
) -> Keeping | None:
    """Return the smallest limit from which on the message at `position` stays in memory to the end
    of `messages`. The limit of `policy` is ignored.

    If this limit cannot be computed, limits at equal distances are tried in replays. All replays
    together add about `most_adds` messages. Returns None if `most_adds` is too small to try 20
    limits.

    A cleared tool result does not count as in memory.
    """
    loads, mention = Loads(messages), Mention(position, len(messages))
    if evicts_oldest_first(policy):
        return _by_loads(loads, mention, policy)
    return _tried(loads, [mention], policy, most_adds).get(mention)


def smallest_limits(
    loads: Loads, mentions: Collection[Mention], policy: Policy, most_adds: int = MOST_ADDS
) -> dict[Mention, Keeping]:
    """Return, for each of the `mentions`, the smallest limit from which on its message is in memory
    at its time (see `Mention`).

    If a limit cannot be computed, limits at equal distances are tried in replays. A mention is left
    out if `most_adds` is too small to try 20 limits.
    """
    if evicts_oldest_first(policy) and sum(end - n for n, end in mentions) <= MOST_LOADS:
        return {mention: _by_loads(loads, mention, policy) for mention in mentions}
    by_length: defaultdict[int, list[Mention]] = defaultdict(list)
    for mention in mentions:
        by_length[1 << (mention.end - 1).bit_length()].append(mention)
    found: dict[Mention, Keeping] = {}
    for length, some in by_length.items():
        found |= _tried(Loads(loads.messages[:length]), some, policy, most_adds)
    return found


def _by_loads(loads: Loads, mention: Mention, policy: Policy) -> Keeping:
    dropped = loads.limits_that_drop(mention.position, policy, mention.end)
    if dropped is None:
        return Keeping(None)
    return Keeping(max((limits.stop for limits in dropped), default=1))


def _tried(
    loads: Loads, mentions: Collection[Mention], policy: Policy, most_adds: int
) -> dict[Mention, Keeping]:
    """Replay under decreasing limits, until none of the messages is kept any more. The first limit
    holds the whole history.
    """
    count = len(loads.messages)
    most = max(1, policy.load(policy.total(loads.messages)))
    step = max(1, -(-most * count // most_adds))
    if step > 1 and most // step < FEWEST_TRIED:
        return {}
    kept: dict[Mention, int] = {}
    remaining = list(mentions)
    least = policy.least_limit
    for limit in chain([max(most, least)], range(most - 1 - (most - 1) % step, least - 1, -step)):
        left = loads.departures(replace(policy, limit=limit)).of_texts
        remaining = [mention for mention in remaining if left[mention.position] >= mention.end]
        if not remaining:
            break
        kept |= dict.fromkeys(remaining, limit)
    return {mention: Keeping(kept.get(mention), step) for mention in mentions}
