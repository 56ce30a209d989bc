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
from chatmemory.core.loads import Keeping
from chatmemory.core.messages import AiMessage, ChatMessage
from chatmemory.core.policies import Policy
from chatmemory.core.recall.compactions import is_held
from chatmemory.core.recall.comparison import is_exact, limits_that_hold, smallest_limit_for
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
from chatmemory.core.transitions import fold
from chatmemory.core.window import Window


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
    for time in times:
        changing[time.entered].append(time)
        if time.left is not None and time.left != time.entered:
            changing[time.left].append(time)
    mentions, calls = _Mentions(messages), Calls()
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

    def __init__(self, messages: Mapping[int, StepMessage]) -> None:
        self._messages = messages
        self._facts = {number: each.facts for number, each in messages.items()}
        self._present: set[int] = set()
        self._in_memory: Counter[str] = Counter()
        self._left: dict[str, MemoryTime] = {}
        self._sayings = Sayings()

    def missed_by(
        self, arrival: StepMessage, kind: IncidentKind, asked: int | None
    ) -> Iterator[Incident]:
        """Yield the incidents of a message, before it is heard."""
        if arrival.facts.isdisjoint(self._left):
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
        """Count what enters and leaves memory at a step. Of what leaves together, the last
        message decides.
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
        self._present -= {time.number for time in leaving}
        self._present |= {time.number for time in entering if time.left != step}
        self._look_for({fact for fact in summarized if not self._in_memory[fact]})

    def _look_for(self, facts: set[str]) -> None:
        """Look for facts that became a summary in what memory holds now, and count them there."""
        for number in self._present & self._messages.keys() if facts else ():
            texts = [*said_texts(self._messages[number].message)]
            held = {fact for fact in facts if is_held(fact, texts)} - self._facts[number]
            self._facts[number] |= held
            self._in_memory.update(held)


def with_limits(found: Iterable[Incident], history: History, policy: Policy) -> Iterator[Incident]:
    """Yield incidents with the limits that would have kept their facts, under this policy, and
    with the tokens of what was fetched again.

    What was said is replayed under each limit throughout, with nothing pinned. For a policy that
    must be replayed under one limit after another, a use by the assistant has none.
    """
    for each in found:
        end = bisect_left(history.numbers, each.again)
        is_fetched = each.kind is IncidentKind.FETCHED_AGAIN
        tokens = history.tokens[end] if is_fetched else None
        yield replace(each, tokens=tokens, keeping=_keeping(each, history, end, policy))


def _keeping(incident: Incident, history: History, end: int, policy: Policy) -> Keeping | None:
    if incident.cause.is_beyond_limits:
        return Keeping(None)
    if not is_exact(history, policy):
        if incident.kind is IncidentKind.USED:
            return None
        said = [place for place in range(end) if incident.fact in history.facts[place]]
        return smallest_limit_for(history.entries[:end], said, policy)
    last = next((n for n in reversed(range(end)) if incident.fact in history.facts[n]), None)
    if last is None:
        return Keeping(None)
    limits = limits_that_hold(history, incident.fact, last, end - 1, policy)
    return Keeping(max(1, limits[0][0]))


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
