"""The data of a conversation page, read once in a bounded number of queries.

Presenters are functions of a `ConversationState` and make no queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
# One character more than pages show, so that they know whether a text is longer.
TEXT_SIZE = 401


@dataclass(frozen=True)
class ConversationQuery:
    """The parameters of a conversation page.

    `at` is a step (None: now), `msg` the selected message, `before` and `after` bound the part of
    the history, `find` is a phrase, and `other` is another step for comparison.
    """

    at: int | None = None
    msg: int | None = None
    before: int | None = None
    after: int | None = None
    find: str = ""
    other: int | None = None


@dataclass(frozen=True)
class Mentions:
    """The messages up to a step that contain a phrase: the latest ones, and the number of all.

    `left_at` maps the messages that are not in memory to the step at which they left. `arrivals`
    maps those steps to the message that arrived at them. `last` is the change by which the last of
    the messages left. If no message contains the phrase, `nearest` is a part of it that one does.
    """

    rows: tuple[MessageRow, ...] = ()
    count: int = 0
    left_at: Mapping[int, int] = field(default_factory=dict)
    arrivals: Mapping[int, int] = field(default_factory=dict)
    last: ChangeResult | None = None
    nearest: str = ""


@dataclass(frozen=True)
class ConversationState:
    """A conversation at step `at`, with the results of the query.

    `detail` is that step, or None at step 0. `part` is the slice of the window's rows that is shown
    below a leading system message; `texts` are the beginnings of their texts by seq. `left_by` is
    the change by which the selected message left, or None while it is in memory. In a simulation,
    `drafts` and `simulated` are set, `window` is the resulting window and `stored_window` the one
    before it.
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
        """The change of the step, or of all drafts together in a simulation."""
        if self.simulated is None:
            return self.detail.change if self.detail else None
        return combined(self.simulated)

    @cached_property
    def in_window(self) -> frozenset[int]:
        """The messages that the model sees."""
        return frozenset(row.seq for row in self.window.rows)

    @cached_property
    def evicted(self) -> dict[int, EvictedMessage]:
        """The messages that the change evicts, by seq."""
        return {evicted.seq: evicted for evicted in self.change.evicted} if self.change else {}

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdicts of providers on the window."""
        rows = self.window.rows
        return verdicts([Turn(row.seq, row.type, self.calls.get(row.seq, 0)) for row in rows])

    @cached_property
    def found(self) -> frozenset[int]:
        """The messages that contain the phrase."""
        return frozenset(row.seq for row in self.mentions.rows)


def conversation_state(memory_id: str, query: ConversationQuery) -> ConversationState:
    """Return the state of a conversation. Raises MemoryNotFound, StepNotFound, MessageNotFound."""
    memory = find_memory(memory_id)
    at = memory.last_step if query.at is None else query.at
    row = find_step(memory, at)
    detail = step_detail(row) if at else None
    window = _window(memory, row, is_live=query.at is None)
    part = window_part(window, query.msg)
    selected = message(memory_id, query.msg) if query.msg else None
    mentions = _mentions(memory, query.find, detail, window)
    history = _history(memory_id, query, row.last_seq, mentions)
    known = {row.seq: row.text for row in (*history.rows, *mentions.rows)}
    evicted = detail.change.evicted[:EVICTED_SIZE] if detail else ()
    wanted = _seqs((*_leading(window), *window.rows[part])) + _seqs(evicted)
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
    """Return the state with drafts added at a step, under the conversation's policy or another.

    Raises the exceptions of `simulate`.
    """
    state = conversation_state(memory_id, ConversationQuery(at=at))
    simulation = simulate(memory_id, messages, policy, at)
    window = _simulated_window(state.window, simulation)
    drafts = tuple(_drafts(memory_id, messages, simulation.changes))
    part = window_part(window, None)
    known = dict(state.texts) | {draft.seq: draft.text for draft in drafts}
    evicted = [seq for change in simulation.changes for seq in _seqs(change.evicted)]
    wanted = _seqs((*_leading(window), *window.rows[part])) + evicted[:EVICTED_SIZE]
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
    """Return several changes as one, or None if there are none."""
    if not changes:
        return None
    return replace(
        changes[-1],
        before=changes[0].before,
        arrived=tuple(message for change in changes for message in change.arrived),
        evicted=tuple(message for change in changes for message in change.evicted),
    )


def window_part(window: WindowView[WindowPlace], msg: int | None) -> slice:
    """Return the slice of the window that a page shows: the last rows, or those around `msg`.

    A leading system message is not in it, because it is always shown.
    """
    first, end = len(_leading(window)), len(window.rows)
    chosen = next((i for i, row in enumerate(window.rows) if row.seq == msg), end)
    stop = min(end, max(chosen + WINDOW_SIZE // 2, first + WINDOW_SIZE))
    return slice(max(first, stop - WINDOW_SIZE), stop)


def _leading(window: WindowView[WindowPlace]) -> tuple[WindowPlace, ...]:
    return (window.leading_system,) if window.leading_system else ()


def _window(memory: Memory, row: Step, is_live: bool) -> WindowView[WindowPlace]:
    """Return the window at a step; the current one is read from the index of open stays."""
    if is_live:
        return view_of(memory.pk, row.n, memory.policy, places(open_stays(memory.pk)))
    return view_of(memory.pk, row.n, row.policy, places(stays_at(row)))


def _history(memory_id: str, query: ConversationQuery, newest: int, found: Mentions) -> Page:
    """Return a page of the history.

    It is before or after a message, else around the selected one, else around the last one that
    contains the phrase, else at the end.
    """
    around = query.msg or (found.rows[-1].seq if found.rows else None)
    is_paged = query.before is not None or query.after is not None
    part = Part(query.before, query.after, None if is_paged else around, HISTORY_SIZE)
    return history_page(memory_id, part, newest)


def _compared(memory: Memory, other: int | None) -> WindowView[WindowPlace] | None:
    """Return the window at the step to compare with."""
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
    ended = ((message.seq, message.departure(at)) for message in rows)
    left_at = {seq: stay.left_step for seq, stay in ended if stay and stay.left_step}
    is_remembered = set(_seqs(rows)) & set(_seqs(window.rows))
    has_left = left_at and not is_remembered
    return Mentions(
        rows=rows,
        count=count,
        left_at=left_at,
        arrivals=arrivals_at(memory.pk, left_at.values()),
        last=_change_at(memory, max(left_at.values()), detail) if has_left else None,
    )


def _left_by(
    memory: Memory, row: MessageRow | None, detail: StepDetail | None
) -> ChangeResult | None:
    """Return the last change up to a step by which a message left, or None if it is in memory."""
    departure = row.departure(detail.row.n) if row and detail else None
    if departure is None or departure.left_step is None:
        return None
    return _change_at(memory, departure.left_step, detail)


def _change_at(memory: Memory, n: int, detail: StepDetail | None) -> ChangeResult:
    """Return what a step did. The state's own step has been read already."""
    if detail is not None and detail.row.n == n:
        return detail.change
    return step_detail(find_step(memory, n)).change


def _texts(memory_id: str, seqs: Sequence[int], known: Mapping[int, str]) -> dict[int, str]:
    """Return the beginnings of texts by seq, and those that are already known in full."""
    missing = [seq for seq in seqs if seq not in known]
    return dict(known) | (beginnings(memory_id, missing, TEXT_SIZE) if missing else {})


def _simulated_window(
    window: WindowView[WindowPlace], simulation: Simulation
) -> WindowView[WindowPlace]:
    """Return the window after a simulation; stored messages keep their `entered_step`."""
    entered = {row.seq: row.entered_step for row in (*window.rows, *window.over_limit)}
    rows = (replace(row, entered_step=entered.get(row.seq, 0)) for row in simulation.remaining)
    return replace(window, policy=simulation.policy, rows=tuple(rows), over_limit=())


def _drafts(
    memory_id: str, messages: Sequence[ChatMessage], changes: Sequence[ChangeResult]
) -> list[MessageRow]:
    """Return the simulated messages as rows of the history."""
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


def _seqs(rows: Iterable[MessageRow | WindowPlace | EvictedMessage]) -> list[int]:
    return [row.seq for row in rows]


def _calls_of(message: ChatMessage) -> int:
    return len(getattr(message, "tool_execution_requests", ()))
