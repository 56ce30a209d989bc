"""Finds incidents by reading the ledgers of stored conversations.

A long conversation is read in parts; see `stretches`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from django.db.models import Min, Q

from chatmemory import database
from chatmemory.ledger.overrides import is_of_stub
from chatmemory.ledger.windows import read_message
from chatmemory.messages.message import ChatMessage
from chatmemory.models import Memory, Message, Stay, Step
from chatmemory.reading.history import estimator_of, messages_with_history
from chatmemory.recall.again import ReadMessage
from chatmemory.recall.facts import texts_with_facts
from chatmemory.recall.history import History
from chatmemory.recall.incidents import (
    Forgotten,
    Incident,
    MemoryTime,
    StepMessage,
    incidents_of,
    with_limits,
)
from chatmemory.recall.lexicon import MessageFacts, speaker_of
from chatmemory.recall.loads import Keeping
from chatmemory.windows.eviction import REASONS, Reason
from chatmemory.windows.policies import Policy
from chatmemory.windows.stored_policies import can_decide
from inspector.rooms.evidence.messages import first_of_newest
from inspector.rooms.evidence.stretches import first_behind, settled_until


def found_incidents(memory: Memory) -> list[Incident]:
    """Return the incidents among the newest messages of a conversation (see `first_of_newest`), in
    the order of their steps.
    """
    settled = settled_until(memory.last_seq)
    return settled_incidents(memory, settled) + later_incidents(memory, settled)


def settled_incidents(memory: Memory, settled: int) -> list[Incident]:
    """Find the incidents in the messages up to the seq `settled`. Later messages cannot change
    these incidents (see `stretches`).
    """
    if not settled:
        return []
    return _incidents_between(memory, first_of_newest(memory.pk, settled), settled)


def later_incidents(memory: Memory, settled: int) -> list[Incident]:
    """Find the incidents in the messages after the seq `settled`. Later messages may still change
    these incidents.
    """
    found = _incidents_between(memory, first_behind(memory, settled), memory.last_seq)
    return [each for each in found if each.again > settled]


def _incidents_between(memory: Memory, first: int, last: int) -> list[Incident]:
    """Find the incidents in the messages from `first` to `last`, with the limits that would have
    prevented them, under the policies in force at their steps.
    """
    rows = _rows(memory, first, last)
    history_rows = [row for row in rows if row.origin == Message.Origin.SAID]
    if not history_rows:
        return []
    messages, history = messages_with_history(memory, history_rows)
    arrivals = dict(zip(history.numbers, zip(messages, history.read, strict=True), strict=True))
    for row in rows:
        if row.seq not in arrivals:
            message = read_message(row)
            arrivals[row.seq] = message, _injected(message, history)
    times = _times(memory, [row.seq for row in rows])
    steps: dict[int, int] = {}
    for time in times:
        steps[time.number] = min(time.entered, steps.get(time.number, time.entered))
    numbers = frozenset(history.numbers)
    found = incidents_of(
        [
            StepMessage(seq, steps[seq], *arrivals[seq], is_said=seq in numbers)
            for seq in sorted(arrivals.keys() & steps.keys())
        ],
        times,
    )
    new = [each for each in found if each.again >= first]
    return [
        _with_what_is_known(each, first)
        for each in _with_limits(memory, new, history, history_rows)
    ]


def _rows(memory: Memory, first: int, last: int) -> list[Message]:
    """Return the messages from `first` to `last`, and earlier messages that were still in memory
    when message `first` was added.
    """
    messages = Message.objects.filter(memory=memory).order_by("seq")
    rows = list(messages.filter(seq__gte=first, seq__lte=last))
    if first == 1:
        return rows
    stays = Stay.objects.filter(memory=memory)
    since = stays.filter(seq__gte=first).aggregate(step=Min("entered_step"))["step"] or 1
    lasting = Q(left_step=None) | Q(left_step__gte=since)
    earlier = stays.filter(lasting, seq__lt=first).values_list("seq", flat=True)
    return [*messages.filter(database.in_list("seq", set(earlier))), *rows]


def _injected(message: ChatMessage, history: History) -> ReadMessage:
    """Return a message that a client put into the window, together with the facts that it
    mentions.
    """
    mentions = history.lexicon.mentioned_in(texts_with_facts(message))
    none: frozenset[str] = frozenset()
    return ReadMessage(MessageFacts({}, none, none, mentions, speaker_of(message)))


def _times(memory: Memory, seqs: Sequence[int]) -> list[MemoryTime]:
    """Return the periods in which messages were in memory. Periods in which memory had only the
    placeholder of a cleared tool result are left out.
    """
    rows = Stay.objects.filter(database.in_list("seq", seqs), memory=memory)
    columns = rows.values_list("seq", "entered_step", "left_step", "reason", "overrides")
    times = []
    for seq, entered, left, reason, overrides in columns.iterator():
        if not is_of_stub(overrides):
            behind = left + 1 if left and reason == Reason.STUBBED else None
            why = REASONS[reason] if reason else None
            times.append(MemoryTime(seq, entered, left, why, behind))
    return times


def _with_what_is_known(found: Incident, first: int) -> Incident:
    """Return an incident without the limits that cannot be known: those that depend on messages
    before `first`.
    """

    def known(fact: Forgotten) -> Forgotten:
        return fact if fact.last >= first else replace(fact, keeping=None)

    facts = tuple(map(known, found.facts))
    return replace(found, facts=facts, result=found.result and known(found.result))


def _with_limits(
    memory: Memory, found: list[Incident], own: History, messages: Sequence[Message]
) -> list[Incident]:
    """Return the incidents with the limits that would have prevented them, in the same order.

    Incidents whose policies differ only in the limit are computed together.
    """
    needed = {step for each in found for step in (each.step, each.shown.left_step)}
    steps = {step.n: step for step in Step.objects.filter(memory=memory, n__in=needed)}
    histories = {estimator_of(memory): own}
    by_policy: defaultdict[Policy, list[int]] = defaultdict(list)
    limited = [_without_limit(each) for each in found]
    for position, each in enumerate(found):
        policy = steps[each.step].policy
        if policy is not None and can_decide(policy) and not steps[each.shown.left_step].by_client:
            by_policy[replace(policy, limit=policy.least_limit)].append(position)
    for policy, positions in by_policy.items():
        if policy.estimator not in histories:
            histories[policy.estimator] = messages_with_history(memory, messages, policy.estimator)[
                1
            ]
        some = [found[position] for position in positions]
        for position, each in zip(
            positions, with_limits(some, histories[policy.estimator], policy), strict=True
        ):
            limited[position] = each
    return limited


def _without_limit(found: Incident) -> Incident:
    """Return an incident with the statement that no limit would have prevented it."""
    none = Keeping(None)
    return replace(
        found,
        facts=tuple(replace(each, keeping=none) for each in found.facts),
        result=found.result and replace(found.result, keeping=none),
    )
