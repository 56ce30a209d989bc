"""Diagnoses the windows of conversations, at the newest step or after an earlier step. The newest
diagnosis of each conversation is stored (see `DiagnosisKeeper`).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import chatmemory
from chatmemory import database
from chatmemory.columns import ColumnValues
from chatmemory.exceptions import CorruptRow
from chatmemory.keeper import Keeper, version_of
from chatmemory.kept import KeptRow
from chatmemory.ledger.sql import window_messages, window_stays
from chatmemory.ledger.windows import (
    read_message,
    shown_message,
    stay_entry,
    stays_at,
    totals_after,
)
from chatmemory.lint.catalog import RULES
from chatmemory.lint.since import CallIds, Past, PastStay
from chatmemory.messages.message import TYPES, ChatMessage, MessageType
from chatmemory.models import Memory, Message, Stay, Step
from chatmemory.reading.call_ids import ids_of_calls
from chatmemory.reading.feed import microseconds
from chatmemory.reading.windows import StoredState
from chatmemory.signals import cases_found, problems_found
from chatmemory.tables import SqlValue
from chatmemory.windows.eviction import IN_PLACE
from chatmemory.windows.stored_policies import can_decide
from chatmemory.windows.transitions import is_oversized
from inspector.rooms.doctor.choosing import choices
from inspector.rooms.doctor.diagnosis import Diagnosis, diagnose
from inspector.rooms.doctor.largest import needed_by
from inspector.rooms.doctor.models import KeptDiagnosis
from inspector.rooms.doctor.providers import BITS, LATELY_STEPS, providers_of
from inspector.rooms.doctor.using import InUse

MessagesBySeq = Mapping[int, ChatMessage]
LEFT_AT_ONCE = 400  # places of messages that left, which are read at once
BYTES_AT_ONCE = 4_000_000  # of messages whose ids are read
_COLUMNS = ("n", "seq", "type", "has_calls", "rank", "entered_step", "left_step", "reason", "size")
_LEFT_STEP = _COLUMNS.index("left_step")


def diagnosis_of(
    state: StoredState, messages: MessagesBySeq | None = None, for_answers: bool = False
) -> Diagnosis:
    """Return the diagnosis of a stored window.

    - `messages` are the window's messages by seq. If None, they are read from the database, without
      interrupted tool calls if the policy leaves these out of prompts.
    - `for_answers` makes the diagnosis faster, but leaves out repairs and times (see `diagnose`).

    Raises StepNotFound, and CorruptRow for a message that cannot be read.
    """
    step = state.step
    messages = dict(_messages(state)) if messages is None else messages
    found = diagnose(
        list(messages.values()),
        list(messages),
        step=step.n,
        has_left=step.last_seq > step.count_after,
        past_of=lambda seqs: _past_of(state, seqs),
        for_answers=for_answers,
    )
    if for_answers or not found.problems:
        return found
    steps = {each.since or step.n for each in found.problems}
    rows = Step.objects.filter(memory=state.memory, n__in=steps)
    return found.with_times(dict(rows.values_list("n", "at")))


def _messages(state: StoredState) -> Iterable[tuple[int, ChatMessage]]:
    rows = window_messages(state.memory.pk, state.past_step)
    recovers = can_decide(state.policy) and state.policy.recovers
    unseen = {*state.window.interrupted_seqs} if recovers else ()
    shown = (row for row in rows if row.seq not in unseen)
    return [(row.seq, shown_message(row, row.overrides)) for row in shown]


def _past_of(state: StoredState, seqs: Collection[int]) -> Past:
    """Return the past of a window, with all stays of the messages `seqs`."""
    memory, at = state.memory, state.step.n
    ended = Stay.objects.filter(memory=memory, left_step__lte=at)
    newest = list(ended.order_by("-left_step").values_list(*_COLUMNS)[: LEFT_AT_ONCE + 1])
    known_from = newest[-1][_LEFT_STEP] if len(newest) > LEFT_AT_ONCE else 0
    of_named = Stay.objects.filter(
        database.in_list("seq", seqs), memory=memory, entered_step__lte=at
    ).order_by()
    rows = {row[0]: row for row in window_stays(memory.pk, _COLUMNS, state.past_step)}
    rows |= {row[0]: row for row in newest if row[_LEFT_STEP] > known_from}
    rows |= {row[0]: row for row in of_named.values_list(*_COLUMNS)}
    sizes = {row[1]: row[-1] for row in rows.values()}

    def read_ids(seqs: Collection[int]) -> Mapping[int, CallIds]:
        if sum(sizes[seq] for seq in seqs) > BYTES_AT_ONCE:
            return {}
        return ids_of_calls(memory.pk, seqs)

    return Past((_past_stay(row, at) for row in rows.values()), read_ids, known_from)


def _past_stay(row: Sequence[SqlValue], at: int) -> PastStay:
    n, seq, type, has_calls, rank, entered, left, reason, _ = row
    if left is None or left > at:
        return PastStay(n, seq, TYPES[type], bool(has_calls), rank, entered)
    return PastStay(n, seq, TYPES[type], bool(has_calls), rank, entered, left, reason in IN_PLACE)


# One conversation at once

AT_ONCE = 2_000  # messages of a window that a page examines


@dataclass(frozen=True)
class KnownDiagnosis:
    """The newest known diagnosis of a window. If `diagnosis` is None, `why` says why there is none.

    `is_current` is False if the window has changed since the diagnosis.
    """

    diagnosis: Diagnosis | None = None
    why: str = ""
    is_current: bool = True

    @property
    def refused_by(self) -> tuple[str, ...]:
        return self.diagnosis.refused_by if self.diagnosis else ()

    def under(self, use: InUse) -> KnownDiagnosis:
        """Return the diagnosis limited to the providers in use and their models."""
        return replace(self, diagnosis=self.diagnosis and self.diagnosis.under(use))

    @property
    def as_of(self) -> int | None:
        """The step of the diagnosis, if the window has changed since then. None if the diagnosis is
        current, or if there is no diagnosis.
        """
        return None if self.is_current or self.diagnosis is None else self.diagnosis.step


NOT_KNOWN = KnownDiagnosis()


def known_diagnosis(state: StoredState) -> KnownDiagnosis:
    """Return the diagnosis of a window, without computing for long:

    - the stored diagnosis, if it is current;
    - otherwise, for a window of up to 2,000 messages, a diagnosis made now, whose problems have no
      `repairable_for` and no `at`;
    - for a larger window at the newest step, the stored diagnosis of an earlier step;
    - otherwise none, with the reason in `why`.
    """
    is_newest = state.at in (None, state.memory.last_step)
    try:
        if is_newest and (row := DiagnosisKeeper().row(state.memory)):
            assert isinstance(row, KeptDiagnosis)
            is_current = row.step == state.memory.last_step
            if is_current or state.memory.window_count > AT_ONCE:
                return KnownDiagnosis(kept_diagnosis(row), is_current=is_current)
        if state.step.count_after > AT_ONCE:
            return KnownDiagnosis(None, _too_many(state.step.count_after), not is_newest)
        return KnownDiagnosis(diagnosis_of(state, for_answers=True))
    except CorruptRow as error:
        return KnownDiagnosis(None, str(error))


def diagnosis_of_rows(
    memory_id: str, step: int, seqs: Sequence[int], known: Mapping[int, ChatMessage]
) -> KnownDiagnosis:
    """Return the diagnosis of a window that is not stored, such as in a simulation. Windows of more
    than 2,000 messages get no diagnosis.

    `seqs` are the messages of the window, and `step` is the step to name in the diagnosis. Messages
    that are not in `known` are read from the conversation.
    """
    if len(seqs) > AT_ONCE:
        return KnownDiagnosis(None, _too_many(len(seqs)))
    missing = [seq for seq in seqs if seq not in known]
    rows = Message.objects.filter(database.in_list("seq", missing), memory_id=memory_id)
    try:
        messages = {**known, **{row.seq: read_message(row) for row in rows}}
    except CorruptRow as error:
        return KnownDiagnosis(None, str(error))
    messages_in_order = [messages[seq] for seq in seqs]
    return KnownDiagnosis(diagnose(messages_in_order, seqs, step=step, for_answers=True))


def _too_many(count: int) -> str:
    return f"memory holds {count:,} messages, and a page examines at most {AT_ONCE:,}"


# Keeping diagnoses

RULES_READ = 4  # raise it with each change of the linter's rules, or of what `needed_by` finds


class DiagnosisKeeper(Keeper):
    """Derives and stores the diagnosis of each conversation at its newest step.

    The stored row also tells whether the limit was too small for a message (see `without_room`) or
    for a turn (see `needed_by`). New problems are announced by signals (see `kept`).
    """

    model = KeptDiagnosis

    def version(self) -> str:
        rules = [
            (rule.id, rule.is_listed, [(name, law.severity) for name, law in rule.laws.items()])
            for rule in RULES.values()
        ]
        return version_of(RULES_READ, rules, chatmemory.__version__)

    def make(self, memory: Memory, before: KeptRow | None) -> ColumnValues:
        state = StoredState(memory)
        messages = dict(_messages(state))
        found = diagnosis_of(state, messages)
        oversized, missed = without_room(memory)
        return {
            "seen": _bits(providers_of(messages.values())),
            **needed_by(memory),
            "content": json.dumps(found.to_list()),
            "oversized_step": oversized,
            "missed_step": missed,
            **_columns_of(found),
        }

    def messages_read(self, memory: Memory) -> int:
        return memory.window_count

    def kept(self, row: KeptRow, before: KeptRow | None) -> None:
        """Send signals about a diagnosis that was just stored (`row`), compared with the previous
        diagnosis `before`.

        `problems_found` is sent with the rules that the window has newly broken. Only rules of
        providers in use count. `cases_found` is sent for each new case, with the name of its cause:
        `refused` or `never_in_memory`.
        """
        use = choices().of(str(row.pk))
        known = _rules_of(before, use) if before else set()
        if new := sorted(_rules_of(row, use) - known):
            problems_found.send_robust(Memory, memory_id=row.pk, new=tuple(new))
        for cause in _new_cases(row, before, use):
            cases_found.send_robust(Memory, memory_id=row.pk, cause=cause)


def _new_cases(row: KeptRow, before: KeptRow | None, use: InUse) -> Iterator[str]:
    """Yield the names of the red flags that a conversation has now, but did not have before."""
    was = before.missed_step if isinstance(before, KeptDiagnosis) else None
    if isinstance(row, KeptDiagnosis) and row.missed_step and row.missed_step > (was or 0):
        yield "never_in_memory"
    if use.is_chosen and _is_refused(row, use) and not (before and _is_refused(before, use)):
        yield "refused"


def _is_refused(row: KeptRow, use: InUse) -> bool:
    try:
        with row.reading() as values:
            return bool(Diagnosis.from_list(row.step, values).under(use).refused_by)
    except CorruptRow:
        return False


def _columns_of(found: Diagnosis) -> ColumnValues:
    """Return the values of the columns that lists filter by."""
    marked = [each for each in found.problems if each.marks()]
    marks = sorted({mark for each in marked for mark in each.marks()})
    times = [each.at for each in marked if each.at]
    return {
        "problems": f",{','.join(marks)}," if marks else "",
        "refused_by": _bits(name for each in found.listed for name in each.refused_by),
        "mishandled_by": _bits(name for each in found.listed for name in each.mishandled_by),
        "ill_at": microseconds(min(times)) if times else None,
    }


def _bits(providers: Iterable[str]) -> int:
    return sum(BITS[name] for name in {*providers})


def _rules_of(row: KeptRow, use: InUse) -> set[str]:
    """Return the rules for which the doctor lists the conversation of a row, if these providers are
    in use.
    """
    try:
        with row.reading() as values:
            found = Diagnosis.from_list(row.step, values).under(use)
    except CorruptRow:
        return set()
    return {each.rule for each in found.listed}


def kept_diagnosis(row: KeptDiagnosis) -> Diagnosis:
    """Return the diagnosis of a stored row. Raises CorruptRow if the row cannot be read, or if its
    columns contradict its content.
    """
    with row.reading() as values:
        found = Diagnosis.from_list(row.step, values)
        columns = _columns_of(found)
        if any(getattr(row, name) != value for name, value in columns.items()):
            raise ValueError("the columns of the stored diagnosis differ from its JSON")
    return found


# Messages for which a limit had no room


def without_room(memory: Memory) -> tuple[int | None, int | None]:
    """Return the numbers of two recent steps as a pair: (too large, left at once). A number is None
    if there is no such step.

    - Too large: the newest step that added a message larger than the limit allows, even with only
      the system message beside it.
    - Left at once: the newest step that added a message which left memory in the same step.

    Only the last 40 steps are searched. Steps in which a client decided the window do not count.
    """
    first = max(0, memory.last_step - LATELY_STEPS)
    steps = list(Step.objects.filter(memory=memory, n__gte=first).order_by("n"))
    if not steps:
        return None, None
    begun_before = steps[0].last_stay if steps[0].n == first and first else 0
    adds = {
        step.n: step
        for step in steps
        if step.n > first and step.kind == Step.Kind.ADD and not step.by_client
    }
    arrivals = [
        (stay, adds[stay.entered_step])
        for stay in Stay.objects.filter(memory=memory, n__gt=begun_before).order_by("n")
        if stay.entered_step in adds
    ]
    missed = [step.n for stay, step in arrivals if stay.left_step == step.n]
    oversized = [step.n for stay, step in arrivals if _is_oversized(stay, step)]
    return max(oversized, default=None), max(missed, default=None)


def _is_oversized(arrival: Stay, step: Step) -> bool:
    """Return whether an added message was too large for the limit even beside the system message
    alone.
    """
    policy, after = step.policy, totals_after(step)
    if not can_decide(policy):
        return False
    is_over = not policy.meters_only and policy.is_exceeded_by(after)
    if not is_over and arrival.left_step != step.n:
        return False
    system = stay_of_system(step)
    beside = stay_entry(system) if system and system.n != arrival.n else None
    return is_oversized(policy, beside, stay_entry(arrival))


def stay_of_system(step: Step) -> Stay | None:
    """Return the `Stay` (the period in memory) of the system message that is first in the window
    after a step. None if there is no such message.
    """
    first = stays_at(step).filter(pinned=False).order_by("rank").first()
    return first if first and first.type == MessageType.SYSTEM else None
