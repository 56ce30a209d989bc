"""The data of a conversation page, read once in a bounded number of queries.

Presenters are functions of a `ConversationState` and make no queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from itertools import islice
from typing import Any

from django.db.models import Case, Q, When
from django.db.models.functions import Left

from chatmemory.exceptions import InvalidMessage
from chatmemory.explain.receipts import Receipt, receipt
from chatmemory.ledger.changes import ChangeResult
from chatmemory.ledger.lookup import find_step
from chatmemory.lint import Turn
from chatmemory.lint.linter import waiting_turn
from chatmemory.lint.since import CallIds
from chatmemory.messages.codec import message_from_frame
from chatmemory.messages.message import MessageType
from chatmemory.messages.texts import readable_text
from chatmemory.models import Memory, Message, Step
from chatmemory.reading.budget import with_media
from chatmemory.reading.call_ids import ids_of_calls
from chatmemory.reading.clearings import Clearing, find_clearing
from chatmemory.reading.history import Part, history_page, message_in, time_before
from chatmemory.reading.indexes import index_among
from chatmemory.reading.rows import MemoryRow, MessageDetail, Page, StepDetail, memory_row
from chatmemory.reading.simulation import NO_OUTLOOK, Outlook
from chatmemory.reading.steps import StepSamples, evictions_around, step_detail, step_samples
from chatmemory.reading.summaries import Coverage, coverage_by_summary, summaries_covering
from chatmemory.reading.windows import (
    MessageView,
    StoredState,
    WindowView,
    recounted_tokens,
    stubs_at,
)
from chatmemory.recall.index import Index
from chatmemory.snapshots import one_snapshot
from inspector.conversation.keeping import KeepingLimit, find_keeping_limit
from inspector.shell import rooms
from inspector.shell.room import Highlights

HISTORY_SIZE = 60
WINDOW_SIZE = 100
EVICTED_SIZE = 5
# One character more than pages show, so that they know whether a text is longer.
TEXT_SIZE = 401
NO_HISTORY = Page(())


@dataclass(frozen=True)
class ConversationQuery:
    """The parameters of a conversation page.

    `at` is a step (None: now), `msg` the selected message (-2: the second draft of a simulation),
    `before` and `after` bound the part of the history, `other` is another step for comparison, from
    which messages above `past` are listed. `replay` asks for the limit that would have kept the
    selected message even in a long history. `room_parameters` has the texts of the rooms'
    parameters, by name.
    """

    at: int | None = None
    msg: int | None = None
    before: int | None = None
    after: int | None = None
    other: int | None = None
    past: int | None = None
    replay: bool = False
    room_parameters: Mapping[str, str] = field(default_factory=dict)

    def number(self, name: str) -> int | None:
        """Return the number in a parameter of a room, or None."""
        text = self.room_parameters.get(name, "")
        return int(text) if text.isascii() and text.isdecimal() else None


@dataclass(frozen=True)
class ConversationState:
    """A conversation at step `at`, with the results of the query.

    - `detail` is that step, or None at step 0. `stored` is the window as it is stored at the step,
      and `read` has the values that rooms have read for the page.
    - `part` is the slice of the window's rows that is shown below a leading system message; `texts`
      are the beginnings of their texts by seq.
    - `left_by` is the change by which the selected message left, or None while it is in memory;
      `clearing` is the change that made it a stub, if it is one.
    - In a simulation, `drafts`, `simulated` and `outlook` are set, `window` is the resulting window
      and `stored_window` the window before it. `trim` is the eviction at the next add by a limit
      that is tried without drafts. In a replay, `window` is the memory under another limit from the
      first message on.
    - `injected` are the messages of the window that a client put there; they are not in the
      history.
    - `original_tokens` has the original token counts of messages that count differently in the
      window; of these, `cleared` are stubs, with their texts.
    - `time_before_part` is the time of the message before the shown part of the history.
    - `summaries` are the summaries in the window or selected, with the messages that they cover,
      and `media` are the messages of the window with images, audio, video or files. If the selected
      message is redacted, `left_summaries` are summaries that cover it and are not redacted.
    - `index` is the index in memory, if the selected message has left.
    """

    query: ConversationQuery
    memory: MemoryRow
    at: int
    detail: StepDetail | None
    window: WindowView
    stored_window: WindowView
    part: slice
    samples: StepSamples
    evictions: tuple[int | None, int | None]
    stored: StoredState
    history: Page = NO_HISTORY
    texts: Mapping[int, str] = field(default_factory=dict)
    calls: Mapping[int, CallIds] = field(default_factory=dict)
    selected: MessageDetail | None = None
    left_by: ChangeResult | None = None
    clearing: Clearing | None = None
    would_keep: KeepingLimit | None = None
    compared: WindowView | None = None
    drafts: tuple[MessageDetail, ...] = ()
    simulated: tuple[ChangeResult, ...] | None = None
    trim: ChangeResult | None = None
    outlook: Outlook = NO_OUTLOOK
    injected: frozenset[int] = frozenset()
    original_tokens: Mapping[int, int] = field(default_factory=dict)
    cleared: Mapping[int, str] = field(default_factory=dict)
    time_before_part: datetime | None = None
    is_replay: bool = False
    summaries: Mapping[int, Coverage] = field(default_factory=dict)
    media: frozenset[int] = frozenset()
    left_summaries: tuple[int, ...] = ()
    index: Index | None = None
    read: dict[str, Any] = field(default_factory=dict, compare=False)

    @property
    def is_live(self) -> bool:
        return self.query.at is None

    @property
    def is_policy_unknown(self) -> bool:
        """Whether the policy in force is not recorded: before step 1, if that changed it."""
        first = self.samples.part[:1]
        return self.at == 0 and any(each.kind == Step.Kind.POLICY for each in first)

    @property
    def is_simulated(self) -> bool:
        return self.simulated is not None

    @cached_property
    def change(self) -> ChangeResult | None:
        """The change of the step; in a simulation, of all drafts together or of the limit alone."""
        if self.simulated is None:
            return self.detail.change if self.detail else None
        return combined(self.simulated) or self.trim

    @cached_property
    def receipts(self) -> list[tuple[ChangeResult, Receipt]]:
        """The simulated changes with their receipts, which take a while if very many messages
        leave.
        """
        return [(change, receipt(change)) for change in self.simulated or ()]

    @cached_property
    def in_window(self) -> frozenset[int]:
        """The seqs of the messages that the model sees."""
        return frozenset(self.window.seqs)

    @cached_property
    def evicted(self) -> dict[int, int]:
        """The messages that the change evicts: their positions in the eviction, by seq. Empty if
        the change clears tool results: a cleared tool result keeps its position.
        """
        evicted = () if self.change is None or self.change.clears else self.change.evicted
        return {each.seq: position for position, each in enumerate(evicted)}

    @property
    def waiting_call(self) -> int | None:
        """The tool call that awaits results at the end of the window."""
        rows = self.window.in_order
        position = waiting_turn(self._turn(*each) for each in enumerate(rows))
        return None if position is None else rows[position].seq

    def _turn(self, index: int, row: MessageView) -> Turn:
        ids = self.calls.get(row.seq, (None,))
        if row.type is MessageType.TOOL_EXECUTION_RESULT:
            return Turn(index, row.seq, row.type, answers=ids[0])
        return Turn(index, row.seq, row.type, ids if row.has_calls else ())

    @cached_property
    def marks(self) -> Highlights:
        """The highlights of a room. The room reads them for the stored step, and adds what it read
        to `read`.
        """
        return rooms.marks(self)


@one_snapshot()
def conversation_state(
    memory_id: str, query: ConversationQuery, read: dict[str, Any] | None = None
) -> ConversationState:
    """Return the state of a conversation. `read` has what rooms have read for the page already.

    Raises MemoryNotFound, StepNotFound, MessageNotFound.
    """
    stored = StoredState.of(memory_id, query.at)
    return _with_texts(_stored_state(stored, query, {} if read is None else read))


def _stored_state(
    stored: StoredState, query: ConversationQuery, read: dict[str, Any]
) -> ConversationState:
    """Return the state of a conversation that is already read, without its texts."""
    memory, row = stored.memory, stored.step
    samples = step_samples(memory, row.n)
    previous = next((each for each in samples.part if each.step == row.n - 1), None)
    detail = step_detail(row, previous) if row.n else None
    window = stored.window
    part = window_part(window, query.msg)
    selected = message_in(memory, query.msg) if query.msg else None
    left_by = _left_by(memory, selected, detail)
    original_tokens = recounted_tokens(row)
    cleared = stubs_at(row, original_tokens) if original_tokens else {}
    pinned = {place.seq for place in window.rows if place.pinned and place.seq in stored.injected}
    if selected is not None and selected.origin == Message.Origin.SYNTHETIC:
        pinned.add(selected.seq)
    view = ConversationState(
        query=query,
        memory=memory_row(memory),
        at=row.n,
        detail=detail,
        window=window,
        stored_window=window,
        part=part,
        samples=samples,
        evictions=evictions_around(memory.pk, row.n),
        stored=stored,
        calls=calls_in(memory.pk, window.in_order),
        selected=selected,
        left_by=left_by,
        clearing=find_clearing(selected, row.n) if selected else None,
        compared=None if query.other is None else StoredState(memory, query.other).window,
        injected=stored.injected,
        summaries=coverage_by_summary(memory.pk, pinned, selected.seq if selected else None),
        left_summaries=_left_summaries(selected) if selected and selected.redacted else (),
        original_tokens=original_tokens,
        cleared=cleared,
        index=index_among(memory.pk, pinned) if left_by and pinned else None,
        read=read,
    )
    return replace(view, would_keep=find_keeping_limit(view))


def _with_texts(state: ConversationState) -> ConversationState:
    """Return a state with the part of the history that it shows, the texts of its rows, and the
    messages with media, most of which the history has.
    """
    memory_id, history, detail = state.memory.id, _history(state), state.detail
    known = {row.seq: row.readable for row in (*history.rows, *state.marks.rows)}
    frames = {row.seq: row.frame for row in history.rows}
    before = history.before
    if before is None and history.earlier:
        before = time_before(memory_id, history.rows[0].seq)
    changes = (detail.change,) if detail else ()
    return replace(
        state,
        history=history,
        media=with_media(memory_id, state.window.rows, frames),
        texts=texts_of(memory_id, known, state.window, state.part, changes),
        time_before_part=before,
    )


def combined(changes: Sequence[ChangeResult]) -> ChangeResult | None:
    """Return several changes as one, or None without changes."""
    if len(changes) < 2:
        return changes[0] if changes else None
    effective = [change for change in changes if not change.ignored] or changes
    return replace(
        effective[-1],
        before=changes[0].before,
        arrived=tuple(each for change in changes for each in change.arrived),
        evicted=tuple(each for change in changes for each in change.evicted),
        passed_pins=any(change.passed_pins for change in changes),
    )


def window_part(window: WindowView, msg: int | None) -> slice:
    """Return the slice of the window that a page shows: the last rows, or the rows around `msg`.

    A leading system message is not in it, because it is always shown.
    """
    first, end = 1 if window.system_at_head else 0, len(window.rows)
    chosen = window.seqs.index(msg) if msg in window.seqs else end
    stop = min(end, max(chosen + WINDOW_SIZE // 2, first + WINDOW_SIZE))
    return slice(max(first, stop - WINDOW_SIZE), stop)


def _history(state: ConversationState) -> Page:
    """Return a page of the history: before or after the message that the query names, else around
    the selected message, else around the last marked one, else the end.
    """
    query, step = state.query, state.stored.step
    marked = (seq for seq in state.marks.seqs if seq <= step.last_seq)
    around = query.msg or max(marked, default=None)
    usual = Part(around=around, size=HISTORY_SIZE)
    part = Part(query.before, query.after, size=HISTORY_SIZE)
    is_paged = query.before is not None or query.after is not None
    extent = step.last_seq, step.said_count, state.samples.stays
    page = history_page(step.memory_id, part if is_paged else usual, *extent)
    return page if page.rows or not is_paged else history_page(step.memory_id, usual, *extent)


def _left_by(
    memory: Memory, row: MessageDetail | None, detail: StepDetail | None
) -> ChangeResult | None:
    """Return the last change up to a step by which a message left, or None if it is in memory."""
    departure = row.departure(detail.row.n) if row and detail else None
    if departure is None or departure.left_step is None:
        return None
    return change_at(memory, departure.left_step, detail)


def change_at(memory: Memory, n: int, detail: StepDetail | None) -> ChangeResult:
    """Return the change of a step. The state's own step has been read already."""
    if detail is not None and detail.row.n == n:
        return detail.change
    return step_detail(find_step(memory, n)).change


def _left_summaries(redacted: MessageDetail) -> tuple[int, ...]:
    standing = summaries_covering(redacted.memory_id, redacted.seq)
    return tuple(each.seq for each in standing if each.redacted_step is None)


def texts_of(
    memory_id: str,
    known: Mapping[int, str],
    window: WindowView,
    part: slice,
    changes: Iterable[ChangeResult],
) -> dict[int, str]:
    """Return the beginnings of the texts that a state shows, by seq, added to the known ones: texts
    of its part of the window, and of the first messages that its changes evict.
    """
    evicted = islice((each.seq for change in changes for each in change.evicted), EVICTED_SIZE)
    shown = (row.seq for row in (*window.rows[:1], *window.rows[part]))
    unseen = window.interrupted_seqs[-WINDOW_SIZE:]
    missing = {*shown, *evicted, *unseen} - known.keys()
    return {**known, **(beginnings(memory_id, sorted(missing), TEXT_SIZE) if missing else {})}


def beginnings(memory_id: str, seqs: Iterable[int], size: int) -> dict[int, str]:
    """Return the first `size` characters of the readable texts of some messages, by seq.

    The readable text of an assistant's or a tool's message may differ from its stored text. A text
    that belongs into the gap of a frame is cut before it is inserted.
    """
    by_frame = Q(type__in=(MessageType.AI, MessageType.TOOL_EXECUTION_RESULT))
    rows = Message.objects.filter(memory_id=memory_id, seq__in=list(seqs)).annotate(
        read=Case(When(by_frame, then="frame"), default=None), start=Left("text", size)
    )
    columns = rows.values_list("seq", "read", "start")
    return {seq: _readable(frame, start)[:size] for seq, frame, start in columns}


def _readable(frame: str | None, text: str) -> str:
    """Return the readable text of a message, or the text if its frame is not there or corrupt."""
    try:
        message = message_from_frame(frame, text) if frame else None
    except InvalidMessage:
        return text
    return text if message is None else readable_text(message)


def calls_in(memory_id: str, rows: Iterable[MessageView]) -> dict[int, CallIds]:
    """Return the ids of the tool calls that messages of a window make or answer, by seq."""
    result = MessageType.TOOL_EXECUTION_RESULT
    seqs = [row.seq for row in rows if row.seq > 0 and (row.has_calls or row.type is result)]
    if not seqs:
        return {}
    return ids_of_calls(memory_id, seqs)
