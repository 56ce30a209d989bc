"""Finds incidents: facts and tool results that left memory and came up again.

A fact leaves memory with the last message in memory that mentions it. It comes up again if the user
repeats it, if a tool is called again for it, or if the assistant uses it. A message is at most one
incident.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from chatmemory.messages.estimators import estimator_for
from chatmemory.messages.json_values import JsonDict
from chatmemory.messages.message import ChatMessage
from chatmemory.recall.again import ReadMessage, Sayings
from chatmemory.recall.comparison import is_exact, limits_that_hold, smallest_of
from chatmemory.recall.facts import NO_WORDS, Words, example_rank
from chatmemory.recall.folding import fold
from chatmemory.recall.history import History, history_of
from chatmemory.recall.kinds import IncidentKind as IncidentKind
from chatmemory.recall.kinds import KindWords, words_of_kind
from chatmemory.recall.lexicon import MessageFacts
from chatmemory.recall.loads import Keeping, Mention, smallest_limits
from chatmemory.windows.eviction import Reason
from chatmemory.windows.policies import Policy
from chatmemory.windows.window import Window

INCIDENT_RULES = 13  # raise it with each change of what an incident is


@dataclass(frozen=True)
class Forgotten:
    """A fact, or the result of a tool call, that had left memory before it came up again.

    - `fact`: the text of the fact in the message that repeats it. For a tool result, the tool call
      with its arguments.
    - `name`: the name of the fact, which is the same in the whole conversation.
    - `said`: the number of the latest user message with the fact. If no user message has the fact,
      the number of the latest tool result with it.
    - `last`: the number of the last message in memory with the fact. This message left memory at
      step `left_step`, for the reason `cause`.
    - `keeping`: the smallest limit from which on the fact would have stayed in memory. None if not
      computed.
    - `is_pair`: whether the fact is a value with its key, such as `membership=gold`.
    """

    fact: str
    name: str
    said: int
    last: int
    left_step: int
    cause: Reason
    keeping: Keeping | None = None
    is_pair: bool = False


@dataclass(frozen=True)
class Incident:
    """A message that repeats something that had left memory: facts, or a tool call with its result.
    For a repeated tool call, this message is the new result.

    - `again`: the seq of the message. `step` is the step that added it.
    - `facts`: the repeated facts: ids first, then names, then dates. It can be empty for a repeated
      tool call.
    - `asked`: the seq of the message in which the assistant asked the user for a fact, or None.
    - `is_forced`: whether the assistant asked, or the user says that this is a repetition.

    For a repeated tool call:

    - `tool`: the name of the tool.
    - `result`: the earlier result that had left memory.
    - `tokens`: the size of the new result; None until `with_limits` adds it. `is_same` says whether
      both results are equal.
    """

    kind: IncidentKind
    again: int
    step: int
    facts: tuple[Forgotten, ...]
    is_forced: bool = False
    asked: int | None = None
    result: Forgotten | None = None
    tokens: int | None = None
    is_same: bool | None = None
    tool: str = ""

    @property
    def shown(self) -> Forgotten:
        """What pages show first: the earlier tool result of a repeated tool call, else the first
        fact.
        """
        return self.result or self.facts[0]

    @property
    def messages(self) -> IncidentMessages:
        """The numbers of messages, and of one step, that texts about the incident contain, such as
        #25 and step 43. `said` and `left_step` belong to the fact or tool result in `shown`.
        """
        return IncidentMessages(self.shown.said, self.shown.left_step, self.asked, self.again)

    @property
    def words(self) -> KindWords:
        return words_of_kind(self.kind, self.is_forced)

    @property
    def what(self) -> str:
        """The subject of a sentence about the incident: the name of the repeated tool, or the first
        facts, such as `A-1182 and 2 more`.
        """
        return (self.tool or "A tool") if self.result else facts_words(self)

    @property
    def are_several(self) -> bool:
        """Whether `what` names several facts."""
        return self.result is None and len(self.facts) > 1

    @property
    def happened(self) -> str:
        """The words after `what` in a sentence, such as `was repeated by the user after it had left
        memory`.
        """
        several = self.words.to_several if self.are_several else ""
        return several or self.words.happened

    @property
    def fact(self) -> str:
        """The text to show for the incident: its first fact; without facts, the name of the
        tool.
        """
        return self.facts[0].fact if self.facts else self.tool


class IncidentMessages(NamedTuple):
    """The numbers of messages, and of one step, that texts about an incident contain.

    - `said`: the latest user message with the fact, else the latest tool result with it.
    - `left_step`: the step at which the fact left memory.
    - `asked`: the message in which the assistant asked for the fact, or None.
    - `again`: the message that repeats the fact.
    """

    said: int
    left_step: int
    asked: int | None
    again: int


class StepMessage(NamedTuple):
    """A message with its `number` in the conversation, its facts (`read`), and the `step` that
    added the message. `is_said` is False for a message that is not in history, such as a summary.
    """

    number: int
    step: int
    message: ChatMessage
    read: ReadMessage
    is_said: bool = True


class MemoryTime(NamedTuple):
    """A period in which a message was in memory.

    - `number`: the number of the message in its conversation.
    - `entered`, `left`: the steps at which the message entered and left memory. `left` is None
      while the message is in memory.
    - `reason`: why the message left; None while the message is in memory.
    - `gone_after`: `left` + 1 for a tool result that a step of the ledger cleared; else None. The
      result counts as in memory up to and including step `gone_after`.
    """

    number: int
    entered: int
    left: int | None = None
    reason: Reason | None = None
    gone_after: int | None = None

    @property
    def gone(self) -> int | None:
        return self.gone_after or self.left


def incidents_under(
    policy: Policy, messages: Sequence[ChatMessage], words: Words = NO_WORDS
) -> list[Incident]:
    """Return the incidents that messages would have under a policy, with the limits that would have
    avoided them.
    """
    history = history_of(messages, estimator_for(policy.estimator), words)
    found = incidents_of(*replayed(messages, history, policy))
    return list(with_limits(found, history, policy))


def replayed(
    messages: Sequence[ChatMessage], history: History, policy: Policy
) -> tuple[list[StepMessage], list[MemoryTime]]:
    """Replay messages under a policy. Returns the messages that entered memory, and the periods in
    which they were in memory. `history` is the history of the same messages.

    Each message that enters memory makes one step, numbered from 1. Messages that the policy
    ignores or rejects are left out. A cleared tool result leaves at the step of the message that
    needed the room.
    """
    arrivals: list[StepMessage] = []
    entered: dict[int, int] = {}
    times: list[MemoryTime] = []
    numbers = dict(zip(history.entries, history.numbers, strict=True))
    folded = fold(Window(), history.entries, policy, history.said)
    for position, (change, cleared, _) in enumerate(folded):
        number, step = history.numbers[position], len(arrivals) + bool(change.arrivals)
        for each in cleared:
            left = numbers[each.entry]
            times.append(MemoryTime(left, entered.pop(left), step, each.reason))
        if not change.arrivals:
            continue
        arrivals.append(StepMessage(number, step, messages[position], history.read[position]))
        entered[number] = step
        for eviction in change.evictions:
            if not eviction.entry.is_stub:
                left = numbers[eviction.entry]
                times.append(MemoryTime(left, entered.pop(left), step, eviction.reason))
    return arrivals, [*times, *(MemoryTime(*still) for still in entered.items())]


def incidents_of(arrivals: Iterable[StepMessage], times: Iterable[MemoryTime]) -> list[Incident]:
    """Return the incidents of a conversation, in the order of its steps. `arrivals` are its
    messages, and `times` their times in memory.
    """
    arriving: defaultdict[int, list[StepMessage]] = defaultdict(list)
    changing: defaultdict[int, list[MemoryTime]] = defaultdict(list)
    mentions: dict[int, frozenset[str]] = {}
    for arrival in arrivals:
        mentions[arrival.number] = arrival.read.facts.mentions
        arriving[arrival.step].append(arrival)
    for time in times:
        changing[time.entered].append(time)
        if time.gone is not None and time.gone != time.entered:
            changing[time.gone].append(time)
    memory = _Memory(mentions)
    found: list[Incident] = []
    before: int | None = None
    for step in sorted(arriving.keys() | changing.keys()):
        for arrival in arriving[step]:
            if arrival.is_said:
                found += _incident(arrival, memory, before)
                before = arrival.number
        memory.hear(arriving[step])
        memory.follow(step, changing[step])
    return found


def _incident(arrival: StepMessage, memory: _Memory, before: int | None) -> Iterator[Incident]:
    """Yield the incident of a message, if there is one: of the first kind that applies."""
    for again in arrival.read.again:
        facts = tuple(memory.forgotten(again.facts, arrival.read.facts))
        result = (
            next(memory.forgotten([again.call], arrival.read.facts), None) if again.call else None
        )
        if result is None if again.call else not facts:
            continue
        names = {each.name for each in facts}
        yield Incident(
            again.kind,
            arrival.number,
            arrival.step,
            facts,
            is_forced=not names.isdisjoint(again.forced),
            asked=None if names.isdisjoint(again.requested) else before,
            result=result,
            is_same=again.is_same,
            tool=getattr(arrival.message, "tool_name", None) or "",
        )
        return


class _Memory:
    """Which facts were said up to a step, and which of them memory still has."""

    def __init__(self, mentions: Mapping[int, frozenset[str]]) -> None:
        self._mentions = mentions
        self._in_memory: Counter[str] = Counter()
        self._left: dict[str, MemoryTime] = {}
        self._sayings = Sayings()

    def forgotten(self, names: Iterable[str], facts: MessageFacts) -> Iterator[Forgotten]:
        """Yield those of the facts `names` that have left memory, the best examples first. `facts`
        are the facts of the message in which they came up again.
        """
        for name in sorted(names, key=lambda name: (_rank(name, facts.own.get(name, name)), name)):
            source, left = self._sayings.last_mention(name), self._left.get(name)
            if source and left and left.left and left.reason and not self._in_memory[name]:
                yield Forgotten(
                    facts.own.get(name, name),
                    name,
                    source,
                    left.number,
                    left.left,
                    left.reason,
                    is_pair=name in facts.pairs,
                )

    def hear(self, arrivals: Iterable[StepMessage]) -> None:
        for arrival in arrivals:
            if arrival.is_said:
                facts = arrival.read.facts
                self._sayings.hear(arrival.number, facts.speaker, facts.said)

    def follow(self, step: int, times: Sequence[MemoryTime]) -> None:
        """Take in what enters and leaves memory at a step."""
        for time in times:
            if time.entered == step:
                self._in_memory.update(self._mentions.get(time.number, ()))
        for time in sorted(time for time in times if time.gone == step):
            facts = self._mentions.get(time.number, frozenset())
            self._in_memory.subtract(facts)
            self._left.update(dict.fromkeys(facts, time))


def with_limits(found: Iterable[Incident], history: History, policy: Policy) -> Iterator[Incident]:
    """Yield the incidents, completed: each fact with the limit that would have kept it in memory,
    and each repeated tool call with its tokens.

    The limits are those of a replay of the whole history under `policy`, without pins. Under some
    policies, such as those with `low_water`, incidents of the kind USED_UNSEEN get no limit.
    """
    incidents = list(found)
    ends = [bisect_left(history.numbers, each.again) for each in incidents]
    cases = [
        (fact, each.kind, end)
        for each, end in zip(incidents, ends, strict=True)
        for fact in _parts(each)
    ]
    find = _exact_limits if is_exact(history, policy) else _tried_limits
    limits = iter(find(cases, history, policy))
    for each, end in zip(incidents, ends, strict=True):
        parts = [
            replace(fact, keeping=Keeping(None) if fact.cause.is_beyond_limits else next_limit)
            for fact, next_limit in zip(_parts(each), limits, strict=False)
        ]
        is_call = each.result is not None
        yield replace(
            each,
            tokens=history.tokens[end] if is_call else None,
            result=parts[0] if is_call else None,
            facts=tuple(parts[is_call:]),
        )


def _parts(incident: Incident) -> list[Forgotten]:
    return [*([incident.result] if incident.result else []), *incident.facts]


# Forgotten facts, each with the kind of its incident and the number of messages before that
_Cases = Sequence[tuple[Forgotten, IncidentKind, int]]


def _exact_limits(cases: _Cases, history: History, policy: Policy) -> Iterator[Keeping]:
    for fact, _, end in cases:
        if mentions := history.latest_mentions(fact.name, end):
            limits = limits_that_hold(history, fact.name, max(mentions), end - 1, policy)
            yield Keeping(max(1, limits[0][0]))
        else:
            yield Keeping(None)


def _tried_limits(cases: _Cases, history: History, policy: Policy) -> Iterator[Keeping | None]:
    mentions = [
        ()
        if kind is IncidentKind.USED_UNSEEN or fact.cause.is_beyond_limits
        else [Mention(position, end) for position in history.latest_mentions(fact.name, end)]
        for fact, kind, end in cases
    ]
    limits = smallest_limits(history.loads, {one for each in mentions for one in each}, policy)
    return (smallest_of(limits.get(one) for one in each) for each in mentions)


def incident_to_dict(incident: Incident) -> JsonDict:
    """Return an incident as JSON values.

    `limit` is the smallest limit that would have kept the fact: null if no limit would have, and
    missing until it is computed. If not every limit was tried, `limit_tried_every` is the distance
    between the tried limits.
    """
    found: JsonDict = {
        "kind": incident.kind.value,
        "again": incident.again,
        "step": incident.step,
        "forced": incident.is_forced,
        "asked": incident.asked,
        "facts": [{"fact": each.fact, **_to_dict(each)} for each in incident.facts],
    }
    if incident.result is not None:
        found["tool"], found["same_result"] = incident.tool, bool(incident.is_same)
        found["result"] = _to_dict(incident.result)
        if incident.tokens is not None:
            found["tokens"] = incident.tokens
    return found


def _to_dict(each: Forgotten) -> JsonDict:
    found = {"said": each.said, "left_step": each.left_step, "cause": each.cause.value}
    keeping = each.keeping
    limit = {} if keeping is None else {"limit": keeping.limit}
    tried = keeping is not None and keeping.tried_every > 1
    return found | limit | ({"limit_tried_every": keeping.tried_every} if keeping and tried else {})


NAMED = 3  # facts that a sentence names


def incident_words(incident: Incident) -> str:
    """Return a sentence that describes an incident, without its final period."""
    event = f"{incident.what} {incident.happened} in #{incident.again}{call_words(incident)}"
    origin = "the result in" if incident.result else "said in"
    return f"{event}; {forgotten_words(incident.shown, origin)}"


def path_words(incident: Incident) -> str:
    """Return a sentence about where a fact was said, left memory and came up again. It has no final
    period:

        A-1182 (said in #25) left memory at step 43; asked for in #44, repeated in #45
    """
    named = incident.messages
    origin = "result in" if incident.result else "said in"
    request = f"asked for in #{named.asked}, " if named.asked else ""
    return (
        f"{incident.what} ({origin} #{named.said}) left memory at step {named.left_step:,}; "
        f"{request}{incident.words.repeated} in #{named.again}"
    )


def forgotten_words(fact: Forgotten, origin: str = "said in") -> str:
    """Return words about where a forgotten fact was said, and when it left memory. `origin` are the
    words before the message number, such as "said in":

        said in #25, left memory at step 43; a limit of 900 would have kept it
    """
    limit = fact.keeping.limit if fact.keeping else None
    about = "about " if fact.keeping and fact.keeping.tried_every > 1 else ""
    limit_words = f"; a limit of {about}{limit:,} would have kept it" if limit else ""
    return f"{origin} #{fact.said}, left memory at step {fact.left_step:,}{limit_words}"


def facts_words(incident: Incident) -> str:
    """Return the first facts of an incident as text, and how many more there are: `A-1182, B-7 and
    2 more`.
    """
    named = [each.fact for each in incident.facts[:NAMED]]
    more = len(incident.facts) - len(named)
    return f"{', '.join(named)}{f' and {more:,} more' if more else ''}"


def call_words(incident: Incident) -> str:
    """Return words about what a repeated tool call cost, to continue a sentence; "" for other
    incidents.

        , with the same result: 49,167 tokens; 611 terms such as A-1182
    """
    if incident.result is None:
        return ""
    same = "the same" if incident.is_same else "another"
    tokens = _counted(incident.tokens, "token") if incident.tokens is not None else ""
    count = len(incident.facts)
    terms = f"{_counted(count, 'term')} such as {incident.facts[0].fact}" if count else ""
    cost = "; ".join(filter(None, [tokens, terms]))
    return f", with {same} result{f': {cost}' if cost else ''}"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _rank(name: str, written: str) -> int:
    """Return how well a fact serves as an example (see `example_rank`). A date written with a
    month's name ranks as a date.
    """
    return max(example_rank(name), example_rank(written))
