"""Reads incidents for the conversation page, and finds when a fact of the selected message was next
needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from chatmemory.conf import fact_words
from chatmemory.kept import KeptRow
from chatmemory.ledger.changes import ChangeResult
from chatmemory.ledger.lookup import find_step
from chatmemory.messages.texts import readable_text
from chatmemory.models import Memory, Step
from chatmemory.reading.rows import StepDetail
from chatmemory.reading.steps import first_step_of, shown_point
from chatmemory.recall.incidents import Forgotten, Incident
from chatmemory.recall.lexicon import nameable
from chatmemory.windows.policies import Policy
from inspector.conversation.state import change_at
from inspector.rooms.evidence.incidents import (
    ON_CARDS,
    KeptIncident,
    incident_of_row,
    kept_row,
    rows_of,
    with_facts,
)
from inspector.rooms.evidence.messages import messages_of
from inspector.shell.room import NextNeed
from inspector.shell.state import ConversationState, ReadValues

LISTED = 100  # uses without a recorded mention on a page
LOOKED_AT = 1_000  # incidents whose facts are read at once


@dataclass(frozen=True)
class ShownIncident:
    """An incident with the details that a page shows. The newest of `count` incidents has the
    `number` 1.

    - `number_then`: the number of the incident on the page of its own step. There, incidents of
      later steps do not count.
    - `left`: the change by which the fact left memory.
    - `policy`: the policy at the step of the incident.
    - `texts`: the readable texts of the messages that the page quotes, by seq.
    - `said_step`: the step that added the message that said the fact.
    - `message_count`: how many messages of the history come before the message that repeats the
      fact.
    """

    incident: Incident
    number: int
    number_then: int
    count: int
    left: ChangeResult
    policy: Policy | None
    texts: Mapping[int, str]
    said_step: int
    message_count: int


class UnseenUses(NamedTuple):
    """How many facts the assistant used while no message in memory mentioned them.

    `terms` counts single terms. `pairs` counts values of tool calls, such as `membership=gold`.
    `are_imported` means that the messages were imported: nobody recorded what memory had at that
    time.
    """

    terms: int = 0
    pairs: int = 0
    are_imported: bool = False

    @property
    def total(self) -> int:
        return self.terms + self.pairs


NO_USES = UnseenUses()


def unseen_uses(memory: Memory, newest: int | None, are_pairs: Iterable[bool]) -> UnseenUses:
    """Return how many facts the assistant used while memory did not have these facts. Single terms
    and values of tool calls are counted separately.

    - `are_pairs` has an item for each fact: True for a value of a tool call, such as
      `membership=gold`.
    - `newest` is the step at which the assistant last used such a fact; None without such facts.
    """
    counts = Counter(are_pairs)
    are_imported = newest is not None and find_step(memory, newest).note == Step.IMPORTED
    return UnseenUses(counts[False], counts[True], are_imported)


@dataclass(frozen=True)
class IncidentsAt:
    """The incidents of a conversation up to the step that the page shows.

    - `until`: the step up to which incidents have been searched.
    - `is_current`: whether `until` is the last step of the conversation.
    - `shown`: the requested incident, by default the newest, of any kind except `USED_UNSEEN`. None
      if the conversation has only incidents of the kind `USED_UNSEEN`, or no incidents.
    - `used`: the number of facts that the assistant used while they were not in memory
      (`USED_UNSEEN`).
    - `listed`: the newest 100 incidents of the kind `USED_UNSEEN`, if the caller asked for the
      list.
    """

    until: int
    is_current: bool
    shown: ShownIncident | None = None
    used: UnseenUses = NO_USES
    listed: Sequence[Incident] = ()


def row_of(memory: Memory, read: ReadValues) -> KeptRow | None:
    """Return the stored row with the incidents of a conversation, or None if none is stored. `read`
    is a cache: a page that passes the same `read` again causes no second query.
    """
    if "kept incidents" not in read:
        read["kept incidents"] = kept_row(memory)
    found: KeptRow | None = read["kept incidents"]
    return found


def incidents_at(
    memory: Memory,
    kept: KeptRow | None,
    at: int,
    number: int,
    detail: StepDetail | None,
    *,
    lists_used: bool = False,
) -> IncidentsAt | None:
    """Return the incidents up to step `at`. Return None if `kept` is None: no incidents are stored.
    Raises CorruptRow for an altered row.

    `number` says which incident is returned with details; the newest has the number 1. `detail` is
    the step `at`, or None if the caller has not read it. With `lists_used`, the result also lists
    facts that the assistant used while they were not in memory.
    """
    if kept is None:
        return None
    with kept.reading() as values:
        rows = [row for row in rows_of(values) if row.step <= at]
        used = [row for row in reversed(rows) if row.kind not in ON_CARDS]
        shown = _on_cards(rows)
        return IncidentsAt(
            until=kept.step,
            is_current=kept.step == memory.last_step,
            shown=_shown(memory, shown, number, detail) if shown else None,
            used=unseen_uses(
                memory,
                used[0].step if used else None,
                (fact.pair for row in used for fact in row.facts),
            ),
            listed=with_facts(memory.pk, used[:LISTED]) if lists_used else (),
        )


def _on_cards(rows: Iterable[KeptIncident]) -> list[KeptIncident]:
    """Return the incidents that have a card, the newest first."""
    shown = [row for row in rows if row.kind in ON_CARDS]
    return sorted(shown, key=lambda row: -row.step)


def _shown(
    memory: Memory, rows: Sequence[KeptIncident], number: int, detail: StepDetail | None
) -> ShownIncident:
    number = min(max(number, 1), len(rows))
    row = rows[number - 1]
    first = row.facts[0]
    seqs = {seq for seq in (first.said, row.asked, row.again) if seq}
    messages = messages_of(memory.pk, seqs)
    point = shown_point(memory, row.step)
    return ShownIncident(
        incident=incident_of_row(row, messages[row.again]),
        number=number,
        number_then=number - sum(other.step > row.step for other in rows),
        count=len(rows),
        left=change_at(memory, first.left_step, detail),
        policy=point.policy,
        texts={seq: readable_text(message) for seq, message in messages.items()},
        said_step=first_step_of(memory, first.said),
        message_count=point.history.count - (point.last_seq - row.again + 1),
    )


def next_need(view: ConversationState) -> NextNeed | None:
    """Return when the selected message was next needed: the first incident that repeats a fact of
    the message after the message left memory. For a tool result, a repeated tool call that fetches
    the result again counts too. If the message was not needed again, `incident` of the result is
    None.

    If the URL parameter `incident` is set, the result has the incident with this number instead.

    Return None if no message is selected, if the message has not left memory, or if no incidents
    are stored. Raises CorruptRow for an altered row.
    """
    kept, left = row_of(view.stored.memory, view.read), view.selection.row
    if kept is None or left is None or view.selection.left_by is None:
        return None
    number, left_step = view.query.number("incident"), view.selection.left_by.step or 0
    facts = set(nameable(left.message, fact_words()))
    with kept.reading() as values:
        rows = rows_of(values)
        known = _on_cards(row for row in rows if row.step <= view.step.n)
        if number and (chosen := known[number - 1 :]):
            (shown,) = with_facts(kept.pk, chosen[:1])
            return NextNeed(shown, shown.shown, kept.step)
        later = [row for row in rows if row.step > left_step]
        for first in range(0, len(later), LOOKED_AT):
            for each in with_facts(kept.pk, later[first : first + LOOKED_AT]):
                if fact := _needed_of(each, left.seq, facts):
                    return NextNeed(each, fact, kept.step)
    return NextNeed(None, None, kept.step)


def _needed_of(incident: Incident, seq: int, facts: Collection[str]) -> Forgotten | None:
    """Return the fact of an incident that a message mentioned, or None."""
    if incident.result and incident.result.said == seq:
        return incident.result
    return next((each for each in incident.facts if each.fact in facts), None)
