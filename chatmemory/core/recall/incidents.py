"""Incidents: facts that left memory and came up again.

A fact that a user or a tool said is forgotten when its last mention leaves memory. When it comes
up again, that had a price: the user said it twice, a tool was called twice for it, or the
assistant used it without having read it. Any mention in memory counts, also one of the assistant
and of a summary; where messages became a summary, what that and the kept messages hold counts as
in `compactions`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from chatmemory.core.estimators import estimator_for
from chatmemory.core.eviction import Reason
from chatmemory.core.loads import Keeping, Mention, smallest_limits
from chatmemory.core.messages import AiMessage, ChatMessage
from chatmemory.core.policies import Policy
from chatmemory.core.recall.comparison import is_exact, limits_that_hold, smallest_of
from chatmemory.core.recall.facts import (
    NO_WORDS,
    Calls,
    History,
    Sayings,
    Words,
    history_of,
    said_texts,
)
from chatmemory.core.recall.facts import IncidentKind as IncidentKind
from chatmemory.core.recall.held import Terms
from chatmemory.core.transitions import fold
from chatmemory.core.window import Window

_KINDS = {
    IncidentKind.SAID_AGAIN: "said again by the user",
    IncidentKind.FETCHED_AGAIN: "fetched again by the same call",
    IncidentKind.USED: "used by the assistant without a mention in memory",
}


@dataclass(frozen=True)
class Incident:
    """A fact that came up again in message `again`, which arrived at `step`.

    `said` is the latest message of a user that said it, else of a tool. `last` is its last mention,
    which left memory at `left_step`, and `cause` the reason. `asked` is the assistant's message
    directly before `again`, if it asks something. `tokens` are those of a result that was fetched
    again. `keeping` is the smallest limit from which every larger one would have held the fact just
    before `step`; None while it is not computed. `place` is that of the fact among those of message
    `again`, in order, by which it can be read again where only numbers are kept.
    """

    kind: IncidentKind
    fact: str
    place: int
    said: int
    last: int
    left_step: int
    cause: Reason
    asked: int | None
    again: int
    step: int
    tokens: int | None = None
    keeping: Keeping | None = None


class StepMessage(NamedTuple):
    """A message that arrived at a step; `is_said` unless a client injected it."""

    number: int
    step: int
    message: ChatMessage
    facts: frozenset[str]
    is_said: bool = True


class MemoryTime(NamedTuple):
    """The step at which a message entered memory, and the one at which it left, with the reason."""

    number: int
    entered: int
    left: int | None = None
    reason: Reason | None = None


def incidents_under(
    policy: Policy, messages: Sequence[ChatMessage], words: Words = NO_WORDS
) -> list[Incident]:
    """Return the incidents, with their limits, that messages would have under one policy."""
    history = history_of(messages, estimator_for(policy.estimator), words)
    found = incidents_of(*replayed(messages, history, policy))
    return list(with_limits(found, history, policy))


def replayed(
    messages: Sequence[ChatMessage], history: History, policy: Policy
) -> tuple[list[StepMessage], list[MemoryTime]]:
    """Return what arrives, and when it is in memory, in a replay under one policy.

    Messages that the policy ignores or refuses make no step, as in the ledger.
    """
    arrivals: list[StepMessage] = []
    entered: dict[int, int] = {}
    times: list[MemoryTime] = []
    numbers = dict(zip(history.entries, history.numbers, strict=True))
    for position, change in enumerate(fold(Window(), history.entries, policy)):
        if not change.arrivals:
            continue
        number, step = history.numbers[position], len(arrivals) + 1
        arrivals.append(StepMessage(number, step, messages[position], history.facts[position]))
        entered[number] = step
        for eviction in change.evictions:
            gone = numbers[eviction.entry]
            times.append(MemoryTime(gone, entered.pop(gone), step, eviction.reason))
    return arrivals, [*times, *(MemoryTime(*still) for still in entered.items())]


def incidents_of(arrivals: Iterable[StepMessage], times: Iterable[MemoryTime]) -> list[Incident]:
    """Return the incidents of a conversation, in the order of its steps."""
    arriving: defaultdict[int, list[StepMessage]] = defaultdict(list)
    changing: defaultdict[int, list[MemoryTime]] = defaultdict(list)
    messages: dict[int, StepMessage] = {}
    for arrival in arrivals:
        messages[arrival.number] = arrival
        arriving[arrival.step].append(arrival)
    summarized: set[int] = set()
    for time in times:
        changing[time.entered].append(time)
        if time.reason is Reason.SUMMARIZED:
            summarized.add(time.number)
        if time.left is not None and time.left != time.entered:
            changing[time.left].append(time)
    mentions, calls = _Mentions(messages, summarized), Calls()
    found: list[Incident] = []
    asked: int | None = None
    for step in sorted(arriving.keys() | changing.keys()):
        for arrival in arriving[step]:
            if arrival.is_said:
                if kind := calls.kind_of(arrival.message):
                    found += mentions.missed_by(arrival, kind, asked)
                asked = arrival.number if _asks(arrival.message) else None
        mentions.hear(arriving[step])
        mentions.follow(step, changing[step])
    return found


def _asks(message: ChatMessage) -> bool:
    return isinstance(message, AiMessage) and "?" in (message.text or "")


class _Mentions:
    """The facts that were said before a step, and whether memory still mentions them."""

    def __init__(self, messages: Mapping[int, StepMessage], summarized: Iterable[int]) -> None:
        self._messages = messages
        self._facts = {number: each.facts for number, each in messages.items()}
        self._in_memory: Counter[str] = Counter()
        self._left: dict[str, MemoryTime] = {}
        self._sayings = Sayings()
        # The terms that become a summary at any time are looked for in each message once: what it
        # holds of them, and the messages in memory that hold a term.
        self._summarized = Terms(
            {fact for number in summarized for fact in self._facts.get(number, ())}
        )
        self._unread: set[int] = set()
        self._held: dict[int, set[str]] = {}
        self._holders: defaultdict[str, set[int]] = defaultdict(set)

    def missed_by(
        self, arrival: StepMessage, kind: IncidentKind, asked: int | None
    ) -> Iterator[Incident]:
        """Yield the incidents of a message, before it is heard."""
        if self._left.keys().isdisjoint(arrival.facts):
            return
        for place, fact in enumerate(sorted(arrival.facts)):
            said = self._sayings.said(fact)
            left = self._left.get(fact)
            if said and left and left.left and left.reason and not self._in_memory[fact]:
                yield Incident(
                    kind,
                    fact,
                    place,
                    said,
                    left.number,
                    left.left,
                    cause=left.reason,
                    asked=asked,
                    again=arrival.number,
                    step=arrival.step,
                )

    def hear(self, arrivals: Iterable[StepMessage]) -> None:
        for arrival in arrivals:
            if arrival.is_said:
                self._sayings.hear(arrival.number, arrival.message.type, arrival.facts)

    def follow(self, step: int, times: Sequence[MemoryTime]) -> None:
        """Count what enters and leaves memory at a step. If several messages leave in one step,
        use the last one.
        """
        leaving = sorted(time for time in times if time.left == step)
        entering = [time for time in times if time.entered == step]
        for time in entering:
            self._in_memory.update(self._facts.get(time.number, ()))
        summarized: set[str] = set()
        for time in leaving:
            facts = self._facts.get(time.number, frozenset())
            self._in_memory.subtract(facts)
            self._left.update(dict.fromkeys(facts, time))
            if time.reason is Reason.SUMMARIZED:
                summarized |= facts
        for time in leaving:
            self._unread.discard(time.number)
            for fact in self._held.pop(time.number, ()):
                self._holders[fact].discard(time.number)
        staying = {time.number for time in entering if time.left != step}
        self._unread |= staying & self._messages.keys()
        self._look_for({fact for fact in summarized if not self._in_memory[fact]})

    def _look_for(self, facts: set[str]) -> None:
        """Look for facts that became a summary in what memory holds now, and count them there."""
        for number in self._unread if facts else ():
            texts = said_texts(self._messages[number].message)
            self._held[number] = set().union(*map(self._summarized.held_by, texts))
            for fact in self._held[number]:
                self._holders[fact].add(number)
        if facts:
            self._unread.clear()
        for fact in facts:
            for number in self._holders[fact]:
                if fact not in self._facts[number]:
                    self._facts[number] |= {fact}
                    self._in_memory[fact] += 1


def with_limits(found: Iterable[Incident], history: History, policy: Policy) -> Iterator[Incident]:
    """Yield incidents with the limits that would have kept their facts, under this policy, and
    with the tokens of what was fetched again.

    What was said is replayed under each limit throughout, with nothing pinned: once for all
    incidents. For a policy that must be replayed under one limit after another, a use by the
    assistant has none.
    """
    incidents = list(found)
    ends = [bisect_left(history.numbers, each.again) for each in incidents]
    find = _exact_limits if is_exact(history, policy) else _tried_limits
    limits = find(incidents, ends, history, policy)
    for each, end, keeping in zip(incidents, ends, limits, strict=True):
        is_fetched = each.kind is IncidentKind.FETCHED_AGAIN
        tokens = history.tokens[end] if is_fetched else None
        keeping = Keeping(None) if each.cause.is_beyond_limits else keeping
        yield replace(each, tokens=tokens, keeping=keeping)


def _exact_limits(
    incidents: Sequence[Incident], ends: Sequence[int], history: History, policy: Policy
) -> Iterator[Keeping]:
    for each, end in zip(incidents, ends, strict=True):
        if mentions := history.latest_mentions(each.fact, end):
            limits = limits_that_hold(history, each.fact, max(mentions), end - 1, policy)
            yield Keeping(max(1, limits[0][0]))
        else:
            yield Keeping(None)


def _tried_limits(
    incidents: Sequence[Incident], ends: Sequence[int], history: History, policy: Policy
) -> Iterator[Keeping | None]:
    mentions = [
        ()
        if each.kind is IncidentKind.USED or each.cause.is_beyond_limits
        else [Mention(position, end) for position in history.latest_mentions(each.fact, end)]
        for each, end in zip(incidents, ends, strict=True)
    ]
    limits = smallest_limits(history.loads, {one for each in mentions for one in each}, policy)
    return (smallest_of(limits.get(one) for one in each) for each in mentions)


def incident_to_dict(incident: Incident) -> dict[str, Any]:
    """Return an incident as JSON. `limit` is null if no limit would have kept the fact, and absent
    while that is not computed; `limit_tried_every` is the distance of the limits that were tried,
    if not every one was.
    """
    keeping = incident.keeping
    found = {
        "kind": incident.kind.value,
        "fact": incident.fact,
        "said": incident.said,
        "left_step": incident.left_step,
        "cause": incident.cause.value,
        "asked": incident.asked,
        "again": incident.again,
        "step": incident.step,
    }
    if incident.tokens is not None:
        found["tokens"] = incident.tokens
    if keeping is not None:
        found["limit"] = keeping.limit
        if keeping.tried_every > 1:
            found["limit_tried_every"] = keeping.tried_every
    return found


def incident_words(incident: Incident) -> str:
    """Return an incident in one sentence, without its last point."""
    limit = incident.keeping.limit if incident.keeping else None
    kept = f"; a limit of {limit:,} would have kept it" if limit else ""
    return (
        f"{incident.fact}, said in #{incident.said}, left memory at step {incident.left_step} "
        f"and was {_KINDS[incident.kind]} in #{incident.again}{kept}"
    )
