"""Computes the tallies of one history under many policies, fast.

The fast way needs a plain history, in which only the first message can be a system message. The
policy must evict the oldest messages first. Then each window is the system message and all messages
from some position on. `firsts` finds these positions in one pass.

For any other history or policy, `Loads.departures` finds when each message leaves, and the tally is
computed from that. A test compares both ways, and ADR 5 says why there are two.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from operator import add, lt, sub
from typing import NamedTuple

from chatmemory.messages.message import MessageType
from chatmemory.recall.comparison import listed_by_index, replay, sent_in
from chatmemory.recall.cost import Bill, CacheRules, Call, Sizes
from chatmemory.recall.firsts import firsts, is_common, is_plain, places_of
from chatmemory.recall.history import History
from chatmemory.recall.kinds import IncidentKind
from chatmemory.recall.needs import Need, lost_by_kind, needs
from chatmemory.windows.policies import Policy

_SYSTEM, _AI = MessageType.SYSTEM, MessageType.AI


class Tally(NamedTuple):
    """The figures of a policy in a replay.

    - `held`: the number of needs that were held.
    - `user_repeated`: the number of incidents in which a user repeated a fact.
    - `call_repeated`: the number of incidents in which a tool call was repeated.
    - `tokens`: the number of tokens in all prompts.
    - `read`: how many of these tokens come from the prompt cache.
    - `written`: how many of these tokens are written to the prompt cache.
    - `by_index`: the number of needs that were not held, but whose facts an index message listed.
    """

    held: int = 0
    user_repeated: int = 0
    call_repeated: int = 0
    tokens: int = 0
    read: int = 0
    written: int = 0
    by_index: int = 0

    @property
    def again(self) -> int:
        return self.user_repeated + self.call_repeated

    def bill(self, calls: int) -> Bill:
        return Bill(calls, self.tokens, self.read, self.written)

    def plus(self, other: Tally) -> Tally:
        return Tally(*map(add, self, other))

    def minus(self, other: Tally) -> Tally:
        return Tally(*map(sub, self, other))


NOTHING = Tally()


class Tallies:
    """Computes the tallies of one history under policies that differ only in limit and options."""

    def __init__(self, history: History, kind: Policy, rules: CacheRules) -> None:
        self._history, self._rules = history, rules
        self._plain = _PlainHistory(history, kind) if is_plain(history.entries) else None
        self.are_slow = self._plain is None or not is_common(kind)

    def of(self, policy: Policy | None) -> Tally:
        """Return the tally of a policy. The policy None sends everything."""
        if self._plain and (policy is None or is_common(policy)):
            return self._plain.tally(policy, self._rules)
        history, departures = self._history, self._history.loads.departures(policy)
        lost = lost_by_kind(history, departures.of_texts)
        not_held = (each for each in needs(history, departures.of_texts) if not each.is_held)
        bill = sent_in(history, policy, departures).bill(self._rules)
        return Tally(
            sum(len(each.needed) for each in history.needed) - lost.total(),
            lost[IncidentKind.USER_REPEATED],
            lost[IncidentKind.CALL_REPEATED],
            bill.tokens,
            bill.read,
            bill.written,
            listed_by_index(history, departures, not_held),
        )

    def calls(self, policy: Policy | None) -> Sequence[Call]:
        """Return the model calls of a replay under a policy. The policy None sends everything."""
        if self._plain and (policy is None or is_common(policy)):
            return self._plain.calls(policy)
        return replay(self._history, policy).prompts.sent


@dataclass(frozen=True)
class _Needs:
    """Needs as two lists: the positions of the messages that have a need (`places`), and the oldest
    message on which each depends (`mentions`). `always` counts needs of facts in the system
    message.
    """

    places: Sequence[int]
    mentions: Sequence[int]
    always: int = 0

    def lost(self, firsts: Sequence[int]) -> int:
        return sum(map(lt, self.mentions, map(firsts.__getitem__, self.places)))

    def __len__(self) -> int:
        return self.always + len(self.places)


class _PlainHistory:
    """The messages of a plain history without its system message. A place is a position among them.

    `firsts` are, for each place, the first message in the window just before it.
    """

    def __init__(self, history: History, kind: Policy) -> None:
        spoken = [n for n, entry in enumerate(history.entries) if entry.type is not _SYSTEM]
        system = history.entries[0] if len(spoken) < len(history) else None
        entries = [history.entries[n] for n in spoken]
        places = {position: place for place, position in enumerate(spoken)}
        known = history.mentions(0) if system else frozenset()
        self._size = len(spoken)
        self._costs = [0, *accumulate(kind.weigh(entry) for entry in entries)]
        self._tokens = [0, *accumulate(entry.tokens for entry in entries)]
        self._fixed = history.overhead
        self._has_system = system is not None
        self._system = system.tokens if system else 0
        self._base = kind.overhead + (kind.weigh(system) if system else 0)
        self._places = places_of(entries)
        self._least = min((kind.weigh(entry) for entry in entries), default=0)
        self._nothing: dict[CacheRules, Tally] = {}
        self._calls = [place for place, entry in enumerate(entries) if entry.type is _AI]
        self._until = [self._system + self._tokens[place] for place in self._calls]
        times = [history.seconds(spoken[a], spoken[b]) for a, b in pairwise(self._calls)]
        self._ages: list[float | None] = [None, *times][: len(self._calls)]
        everything = history.loads.departures(None).of_texts
        found = list(needs(history, everything))
        self._needs = {
            kind: _depending([need for need in found if need.kind is kind], known, places)
            for kind in IncidentKind
        }

    def tally(self, policy: Policy | None, rules: CacheRules) -> Tally:
        if policy is None:
            return self._tally([0] * self._size, rules)
        if policy.limit - self._base >= self._least:
            return self._tally(self._firsts(policy), rules)
        if rules not in self._nothing:  # no limit below has room for any message
            self._nothing[rules] = self._tally(list(range(self._size)), rules)
        return self._nothing[rules]

    def calls(self, policy: Policy | None) -> list[Call]:
        """Return the model calls under a policy. The policy None sends everything."""
        sizes = self._sizes([0] * self._size if policy is None else self._firsts(policy))
        return list(map(Call, self._calls, *sizes))

    def _tally(self, firsts: Sequence[int], rules: CacheRules) -> Tally:
        lost = {kind: found.lost(firsts) for kind, found in self._needs.items()}
        bill = self._sizes(firsts).bill(rules)
        return Tally(
            sum(map(len, self._needs.values())) - sum(lost.values()),
            lost[IncidentKind.USER_REPEATED],
            lost[IncidentKind.CALL_REPEATED],
            bill.tokens,
            bill.read,
            bill.written,
        )

    def _firsts(self, policy: Policy) -> list[int]:
        """Return, for each message, the first message in the window just before it."""
        return [0, *firsts(self._costs, self._places, policy, self._base)[:-1]]

    def _sizes(self, firsts: Sequence[int]) -> Sizes:
        """Return the sizes of the model calls. A call shares the whole previous prompt if no
        message has left since, else only the system message.
        """
        begins = [firsts[place] for place in self._calls]
        sums = list(map(sub, self._until, map(self._tokens.__getitem__, begins)))
        changes = zip(begins, begins[1:], sums, strict=False)
        shared = [before if then == now else self._system for then, now, before in changes]
        prompts = [each + self._fixed for each in sums]
        if not self._has_system:
            places = zip(begins, self._calls, prompts, strict=True)
            prompts = [0 if first == place else prompt for first, place, prompt in places]
        return Sizes(prompts, [0, *shared][: len(prompts)], self._ages)


def _depending(found: Iterable[Need], known: frozenset[str], places: dict[int, int]) -> _Needs:
    needed = [(need.position, need.depends_on(known)) for need in found]
    depending = [(places[position], places[n]) for position, n in needed if n is not None]
    always = len(needed) - len(depending)
    return _Needs([at for at, _ in depending], [mention for _, mention in depending], always)
