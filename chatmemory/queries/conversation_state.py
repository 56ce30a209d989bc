"""A conversation as a page shows it: read once, in a bounded number of queries, nothing lazy.

Presenters are functions of a `ConversationState` and never ask the database.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from django.utils import timezone

from chatmemory.core.codec import message_to_json
from chatmemory.core.lint import Turn, Verdict, verdicts
from chatmemory.core.messages import ChatMessage, text_of
from chatmemory.core.policies import Policy
from chatmemory.ledger.changes import ChangeResult, EvictedMessage
from chatmemory.ledger.lookup import find_memory, find_step
from chatmemory.ledger.stored_window import open_stays, stays_at
from chatmemory.models import Memory, Step
from chatmemory.queries.history import Part, history_page, mentions, message, nearest
from chatmemory.queries.rows import (
    MemoryRow,
    MessageRow,
    Page,
    StepDetail,
    WindowPlace,
    WindowView,
    memory_row,
)
from chatmemory.queries.simulation import Simulation, simulate
from chatmemory.queries.step_samples import StepSample, step_samples
from chatmemory.queries.steps import arrivals_at, evictions_around, step_detail
from chatmemory.queries.windows import beginnings, calls_in, places, view_of

HISTORY_SIZE = 60
WINDOW_SIZE = 100
EVICTED_SIZE = 5
# One character more than pages show, so that they can tell what they cut.
TEXT_SIZE = 401


@dataclass(frozen=True)
class ConversationQuery:
    """What is looked at: a step (None: now), a message, a part of the history before or after a
    message, a phrase, another step to compare with.
    """

    at: int | None = None
    msg: int | None = None
    before: int | None = None
    after: int | None = None
    find: str = ""
    other: int | None = None


@dataclass(frozen=True)
class Mentions:
    """Where a phrase was said by a step: the latest messages, and how many there are in all.

    `left_at` is the step at which each of them left, by seq; those in memory are not in it.
    `brought` is the message that each of those steps brought, `last` the change at which the last
    one left. `nearest` is something similar that was said, where the phrase was not.
    """

    rows: tuple[MessageRow, ...] = ()
    count: int = 0
    left_at: Mapping[int, int] = field(default_factory=dict)
    brought: Mapping[int, int] = field(default_factory=dict)
    last: ChangeResult | None = None
    nearest: str = ""


@dataclass(frozen=True)
class ConversationState:
    """A conversation at step `at`, with what was asked about it.

    `detail` is that step, None at step 0. `part` says which rows of the window are shown below a
    leading system message, `texts` are the beginnings of what they say, by seq. `left_by` is the
    change by which the chosen message left, None while it is in memory. `drafts` and `simulated`
    are there in a simulation only; `window` is then the one that would remain, and `stored_window`
    the one from which the simulation began.
    """

    query: ConversationQuery
    memory: MemoryRow
    at: int
    detail: StepDetail | None
    window: WindowView[WindowPlace]
    stored_window: WindowView[WindowPlace]
    part: slice
    history: Page
    samples: tuple[StepSample, ...]
    evictions: tuple[int | None, int | None]
    texts: Mapping[int, str]
    calls: Mapping[int, int]
    mentions: Mentions
    selected: MessageRow | None = None
    left_by: ChangeResult | None = None
    compared: WindowView[WindowPlace] | None = None
    drafts: tuple[MessageRow, ...] = ()
    simulated: tuple[ChangeResult, ...] | None = None

    @property
    def is_live(self) -> bool:
        return self.query.at is None

    @property
    def is_simulated(self) -> bool:
        return self.simulated is not None

    @cached_property
    def change(self) -> ChangeResult | None:
        """What the page is about: the step's change, or that of all drafts together."""
        if self.simulated is None:
            return self.detail.change if self.detail else None
        return combined(self.simulated)

    @cached_property
    def in_window(self) -> frozenset[int]:
        """The messages that the model sees."""
        return frozenset(row.seq for row in self.window.rows)

    @cached_property
    def evicted(self) -> dict[int, EvictedMessage]:
        """The messages that leave by the change."""
        return {each.seq: each for each in self.change.evicted} if self.change else {}

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Whether providers would accept what the model sees."""
        rows = self.window.rows
        return verdicts([Turn(row.seq, row.type, self.calls.get(row.seq, 0)) for row in rows])

    @cached_property
    def found(self) -> frozenset[int]:
        """The messages that hold the phrase."""
        return frozenset(row.seq for row in self.mentions.rows)


def conversation_state(memory_id: str, query: ConversationQuery) -> ConversationState:
    """Read a conversation. Raises MemoryNotFound, StepNotFound, MessageNotFound."""
    memory = find_memory(memory_id)
    at = memory.last_step if query.at is None else query.at
    row = find_step(memory, at)
    detail = step_detail(row) if at else None
    window = _window(memory, row, is_live=query.at is None)
    part = window_part(window, query.msg)
    selected = message(memory_id, query.msg) if query.msg else None
    mentions = _mentions(memory, query.find, detail, window)
    history = _history(memory_id, query, row.last_seq, mentions)
    known = {each.seq: each.text for each in (*history.rows, *mentions.rows)}
    evicted = detail.change.evicted[:EVICTED_SIZE] if detail else ()
    wanted = [each.seq for each in (*_leading(window), *window.rows[part])]
    wanted += [each.seq for each in evicted]
    return ConversationState(
        query=query,
        memory=memory_row(memory),
        at=at,
        detail=detail,
        window=window,
        stored_window=window,
        part=part,
        history=history,
        samples=tuple(step_samples(memory_id, memory.last_step, at)),
        evictions=evictions_around(memory_id, at),
        texts=_texts(memory_id, wanted, known),
        calls=calls_in(memory_id, window.rows),
        mentions=mentions,
        selected=selected,
        left_by=_left_by(memory, selected, detail),
        compared=_compared(memory, query.other),
    )


def simulated_state(
    memory_id: str,
    messages: Sequence[ChatMessage],
    policy: Policy | None,
    at: int | None = None,
) -> ConversationState:
    """Read a conversation as it would be with drafts added at a step, under its policy or another.

    Raises what `simulate` raises.
    """
    state = conversation_state(memory_id, ConversationQuery(at=at))
    simulation = simulate(memory_id, messages, policy, at)
    window = _foreseen(state.window, simulation)
    drafts = tuple(_drafts(memory_id, messages, simulation.changes))
    part = window_part(window, None)
    known = dict(state.texts) | {draft.seq: draft.text for draft in drafts}
    evicted = [each for change in simulation.changes for each in change.evicted][:EVICTED_SIZE]
    wanted = [each.seq for each in (*_leading(window), *window.rows[part])]
    wanted += [each.seq for each in evicted]
    calls = {draft.seq: _calls_of(draft.message) for draft in drafts if draft.has_calls}
    return replace(
        state,
        window=window,
        part=part,
        texts=_texts(memory_id, wanted, known),
        calls=dict(state.calls) | calls,
        drafts=drafts,
        simulated=simulation.changes,
    )


def combined(changes: Sequence[ChangeResult]) -> ChangeResult | None:
    """Several changes as one; None for none."""
    if not changes:
        return None
    return replace(
        changes[-1],
        before=changes[0].before,
        arrived=tuple(each for change in changes for each in change.arrived),
        evicted=tuple(each for change in changes for each in change.evicted),
    )


def window_part(window: WindowView[WindowPlace], msg: int | None) -> slice:
    """The rows behind a leading system message that a page shows: the last ones, or those around
    a message.
    """
    first, end = len(_leading(window)), len(window.rows)
    chosen = next((i for i, row in enumerate(window.rows) if row.seq == msg), end)
    stop = min(end, max(chosen + WINDOW_SIZE // 2, first + WINDOW_SIZE))
    return slice(max(first, stop - WINDOW_SIZE), stop)


def _leading(window: WindowView[WindowPlace]) -> tuple[WindowPlace, ...]:
    return (window.leading_system,) if window.leading_system else ()


def _window(memory: Memory, row: Step, is_live: bool) -> WindowView[WindowPlace]:
    """Now by the index of open stays, after a step by its range of numbers."""
    if is_live:
        return view_of(memory.pk, row.n, memory.policy, places(open_stays(memory.pk)))
    return view_of(memory.pk, row.n, row.policy, places(stays_at(row)))


def _history(memory_id: str, query: ConversationQuery, newest: int, found: Mentions) -> Page:
    """Before or after a message, else around the chosen one, else around the last that was found,
    else the end.
    """
    around = query.msg or (found.rows[-1].seq if found.rows else None)
    is_paged = query.before is not None or query.after is not None
    part = Part(query.before, query.after, None if is_paged else around, HISTORY_SIZE)
    return history_page(memory_id, part, newest)


def _compared(memory: Memory, other: int | None) -> WindowView[WindowPlace] | None:
    """The window at the step that the page compares with."""
    return None if other is None else _window(memory, find_step(memory, other), is_live=False)


def _mentions(
    memory: Memory, phrase: str, detail: StepDetail | None, window: WindowView[WindowPlace]
) -> Mentions:
    if not phrase or detail is None:
        return Mentions()
    at, newest = detail.row.n, detail.row.last_seq
    rows, count = mentions(memory.pk, phrase, newest)
    if not rows:
        return Mentions(nearest=nearest(memory.pk, phrase, newest))
    ended = ((row.seq, row.departure(at)) for row in rows)
    left_at = {seq: stay.left_step for seq, stay in ended if stay and stay.left_step}
    is_remembered = {row.seq for row in rows} & {row.seq for row in window.rows}
    has_left = left_at and not is_remembered
    return Mentions(
        rows=rows,
        count=count,
        left_at=left_at,
        brought=arrivals_at(memory.pk, left_at.values()),
        last=_change_at(memory, max(left_at.values()), detail) if has_left else None,
    )


def _left_by(
    memory: Memory, row: MessageRow | None, detail: StepDetail | None
) -> ChangeResult | None:
    """The change by which a message had left by the step."""
    departure = row.departure(detail.row.n) if row and detail else None
    if departure is None or departure.left_step is None:
        return None
    return _change_at(memory, departure.left_step, detail)


def _change_at(memory: Memory, n: int, detail: StepDetail | None) -> ChangeResult:
    """What a step did; the page's own step has been read already."""
    if detail is not None and detail.row.n == n:
        return detail.change
    return step_detail(find_step(memory, n)).change


def _texts(memory_id: str, seqs: Sequence[int], known: Mapping[int, str]) -> dict[int, str]:
    """What rows say; of long texts the beginning, unless more of it is known already."""
    missing = [seq for seq in seqs if seq not in known]
    return dict(known) | (beginnings(memory_id, missing, TEXT_SIZE) if missing else {})


def _foreseen(window: WindowView[WindowPlace], simulation: Simulation) -> WindowView[WindowPlace]:
    """The window that would remain; what stays keeps the step at which it came."""
    entered = {row.seq: row.entered_step for row in (*window.rows, *window.over_limit)}
    rows = (replace(row, entered_step=entered.get(row.seq, 0)) for row in simulation.remaining)
    return replace(window, policy=simulation.policy, rows=tuple(rows), over_limit=())


def _drafts(
    memory_id: str, messages: Sequence[ChatMessage], changes: Sequence[ChangeResult]
) -> list[MessageRow]:
    """The drafts that would be added, as rows of the history."""
    now = timezone.now()
    return [
        MessageRow(
            memory_id=memory_id,
            seq=change.arrived[0].seq,
            type=message.type,
            has_calls=message.has_tool_execution_requests,
            text=text_of(message),
            payload=message_to_json(message),
            tokens=change.arrived[0].tokens,
            origin="DRAFT",
            said_at=now,
            client_id=None,
        )
        for message, change in zip(messages, changes, strict=True)
        if change.arrived
    ]


def _calls_of(message: ChatMessage) -> int:
    return len(getattr(message, "tool_execution_requests", ()))
