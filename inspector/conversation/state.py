"""Reads the data of a conversation page, once and in a bounded number of queries.

Presenters get this data as a `ConversationState`, and make no queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import islice

from django.db.models import Case, Q, When
from django.db.models.functions import Left

from chatmemory.ledger.changes import ChangeResult
from chatmemory.lint.since import CallIds
from chatmemory.messages.message import MessageType
from chatmemory.messages.texts import readable_stored_text
from chatmemory.models import Memory, Message
from chatmemory.reading.budget import with_media
from chatmemory.reading.call_ids import ids_of_calls
from chatmemory.reading.clearings import find_clearing
from chatmemory.reading.history import Part, history_page, message_in, time_before
from chatmemory.reading.indexes import index_among
from chatmemory.reading.rows import MessageDetail, Page, StepDetail, memory_row
from chatmemory.reading.steps import (
    evictions_around,
    shown_change,
    shown_detail,
    step_samples,
)
from chatmemory.reading.summaries import coverage_by_summary, summaries_covering
from chatmemory.reading.windows import (
    MessageView,
    StoredState,
    WindowView,
    recounted_tokens,
    stubs_at,
)
from chatmemory.snapshots import one_snapshot
from inspector.conversation.index_delay import leaving_without_index
from inspector.conversation.keeping import asks_for_limit, find_keeping_limit
from inspector.shell import rooms
from inspector.shell.highlights import Highlights
from inspector.shell.state import (
    ConversationQuery,
    ConversationState,
    ReadValues,
    Selection,
    ShownMessages,
    ShownStep,
    WindowContents,
)

HISTORY_SIZE = 60
WINDOW_SIZE = 100
EVICTED_SIZE = 5
# One character more than pages show, so that they know whether a text is longer.
TEXT_SIZE = 401


@one_snapshot()
def conversation_state(
    memory_id: str, query: ConversationQuery, read: ReadValues | None = None
) -> ConversationState:
    """Return the state of a conversation for a page. `read` has values that rooms (features) have
    already read for the page.

    Raises MemoryNotFound, StepNotFound, MessageNotFound.
    """
    stored = StoredState.of(memory_id, query.at)
    return _with_texts(_stored_state(stored, query, {} if read is None else read))


def _stored_state(
    stored: StoredState, query: ConversationQuery, read: ReadValues
) -> ConversationState:
    """Return the state of a page from stored values, still without the texts of messages."""
    window, step = stored.window, _shown_step(stored, query)
    selection = _selection(stored, query.msg, step.detail)
    calls = calls_in(stored.memory.pk, window.in_order)
    state = ConversationState(
        query=query,
        memory=memory_row(stored.memory),
        stored=stored,
        step=step,
        window=window,
        contents=_contents(stored, selection.row),
        shown=ShownMessages(window_part(window, query.msg), calls),
        selection=selection,
        read=read,
    )
    return replace(state, selection=_with_limits(state))


def _shown_step(stored: StoredState, query: ConversationQuery) -> ShownStep:
    """Return the shown step with its surroundings: samples of other steps, evictions, and the
    window of the compared step.
    """
    memory, row = stored.memory, stored.step
    samples = step_samples(memory, row.n)
    previous = next((each for each in samples.part if each.step == row.n - 1), None)
    return ShownStep(
        n=row.n,
        detail=shown_detail(memory, row, previous) if row.n else None,
        samples=samples,
        evictions=evictions_around(memory, row.n),
        compared=None if query.other is None else StoredState(memory, query.other).window,
    )


def _contents(stored: StoredState, selected: MessageDetail | None) -> WindowContents:
    """Return which messages of the window are special: injected, recounted, cleared, summaries, the
    index. Media are added later.
    """
    memory_id, step = stored.memory.pk, stored.step
    original_tokens = recounted_tokens(step)
    rows = stored.window.rows
    synthetic = {each.seq for each in rows if each.pinned and each.seq in stored.injected}
    index = index_among(memory_id, synthetic)
    if selected is not None and selected.origin == Message.Origin.SYNTHETIC:
        synthetic.add(selected.seq)
    return WindowContents(
        injected=stored.injected,
        original_tokens=original_tokens,
        cleared=stubs_at(step, original_tokens) if original_tokens else {},
        summaries=coverage_by_summary(memory_id, synthetic, selected.seq if selected else None),
        index=index,
    )


def _selection(stored: StoredState, seq: int | None, detail: StepDetail | None) -> Selection:
    """Return the selected message, with the changes that evicted or cleared it."""
    row = message_in(stored.memory, seq) if seq else None
    if row is None:
        return Selection()
    return Selection(
        row,
        left_by=_left_by(stored.memory, row, detail),
        clearing=find_clearing(row, stored.step.n),
        left_summaries=_left_summaries(row) if row.redacted else (),
    )


def _with_limits(state: ConversationState) -> Selection:
    """Return the selection, with what would have happened to its message under another limit or
    without an index.
    """
    without_index = leaving_without_index(state)
    would_keep = find_keeping_limit(state) if asks_for_limit(state.query) else None
    return replace(state.selection, without_index=without_index, would_keep=would_keep)


def _with_texts(state: ConversationState) -> ConversationState:
    """Return the state with texts: the highlights of rooms, a page of the history, the texts of all
    rows, and the messages with media.
    """
    marks, window, detail = rooms.marks(state), state.window, state.step.detail
    memory_id, history = state.memory.id, _history(state, marks)
    known = {row.seq: row.readable for row in (*history.rows, *marks.rows)}
    frames = {row.seq: row.frame for row in history.rows}
    changes = (detail.change,) if detail else ()
    texts = texts_of(memory_id, known, window, state.shown.part, changes)
    return replace(
        state,
        shown=replace(state.shown, marks=marks, history=history, texts=texts),
        contents=replace(state.contents, media=with_media(memory_id, window.rows, frames)),
    )


def window_part(window: WindowView, msg: int | None) -> slice:
    """Return the slice of the window that a page shows: the last messages, or the messages around
    the selected message `msg`.

    The slice does not include a leading system message, because the page always shows it.
    """
    first, end = 1 if window.system_at_head else 0, len(window.rows)
    chosen = window.seqs.index(msg) if msg in window.seqs else end
    stop = min(end, max(chosen + WINDOW_SIZE // 2, first + WINDOW_SIZE))
    return slice(max(first, stop - WINDOW_SIZE), stop)


def _history(state: ConversationState, marks: Highlights) -> Page:
    """Return a page of the history: before or after the message that the query names. By default,
    return the messages around the selected or the last highlighted message, else the last messages.
    """
    query, step = state.query, state.stored.step
    marked = (seq for seq in marks.seqs if seq <= step.last_seq)
    around = query.msg or max(marked, default=None)
    usual = Part(around=around, size=HISTORY_SIZE)
    part = Part(query.before, query.after, size=HISTORY_SIZE)
    is_paged = query.before is not None or query.after is not None
    extent = step.last_seq, step.said_count, state.step.samples.stays
    page = history_page(step.memory_id, part if is_paged else usual, *extent)
    if is_paged and not page.rows:
        page = history_page(step.memory_id, usual, *extent)
    if page.before is None and page.earlier:
        return replace(page, before=time_before(step.memory_id, page.rows[0].seq))
    return page


def _left_by(memory: Memory, row: MessageDetail, detail: StepDetail | None) -> ChangeResult | None:
    """Return the change by which a message last left memory, up to the shown step; None if the
    message is in memory.
    """
    departure = row.departure(detail.row.n) if detail else None
    if departure is None or departure.left_step is None:
        return None
    return change_at(memory, departure.left_step, detail)


def change_at(memory: Memory, n: int, detail: StepDetail | None) -> ChangeResult:
    """Return the change of step `n`.

    `detail` is a step that the caller has already read, or None. If this step is `n`, no query is
    made.
    """
    if detail is not None and detail.row.n == n:
        return detail.change
    return shown_change(memory, n)


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
    """Return the beginnings of the texts that a page shows, by message number. These are the texts
    of:

    - the first message of the window, and the messages in `part` of the window.
    - interrupted tool calls and their results.
    - the first five messages that `changes` evicted.

    The result also has all texts in `known`, which the caller has already read.
    """
    evicted = islice((each.seq for change in changes for each in change.evicted), EVICTED_SIZE)
    shown = (row.seq for row in (*window.rows[:1], *window.rows[part]))
    unseen = window.interrupted_seqs[-WINDOW_SIZE:]
    missing = {*shown, *evicted, *unseen} - known.keys()
    return {**known, **(beginnings(memory_id, sorted(missing), TEXT_SIZE) if missing else {})}


def beginnings(memory_id: str, seqs: Iterable[int], size: int) -> dict[int, str]:
    """Return the first `size` characters of the texts of some messages, by message number.

    Before a text is cut, the names and arguments of tool calls are added at its end. For a tool
    result, the tool's name is added at the beginning.
    """
    by_frame = Q(type__in=(MessageType.AI, MessageType.TOOL_EXECUTION_RESULT))
    rows = Message.objects.filter(memory_id=memory_id, seq__in=list(seqs)).annotate(
        read=Case(When(by_frame, then="frame"), default=None), start=Left("text", size)
    )
    columns = rows.values_list("seq", "read", "start")
    return {
        seq: (readable_stored_text(frame, start) if frame else start)[:size]
        for seq, frame, start in columns
    }


def calls_in(memory_id: str, rows: Iterable[MessageView]) -> dict[int, CallIds]:
    """Return the IDs of the tool calls that messages of a window make or answer, by message
    number.
    """
    result = MessageType.TOOL_EXECUTION_RESULT
    seqs = [row.seq for row in rows if row.seq > 0 and (row.has_calls or row.type is result)]
    if not seqs:
        return {}
    return ids_of_calls(memory_id, seqs)
