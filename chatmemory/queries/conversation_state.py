"""The data of a conversation page, read once in a bounded number of queries.

Presenters are functions of a `ConversationState` and make no queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from chatmemory.core.lint import Turn, Verdict, verdicts
from chatmemory.ledger.changes import ChangeResult, EvictedMessage
from chatmemory.ledger.snapshots import one_snapshot
from chatmemory.models import Memory, Step
from chatmemory.queries.glimpses import beginnings, number_of_calls, several_calls
from chatmemory.queries.history import Part, history_page, message_in
from chatmemory.queries.keeping import WhatWouldKeep, what_would_keep
from chatmemory.queries.leaving import is_full, next_to_leave
from chatmemory.queries.phrase import PhraseMatches, change_at, phrase_matches
from chatmemory.queries.rows import MemoryRow, MessageRow, Page, StepDetail, memory_row
from chatmemory.queries.simulation import NO_OUTLOOK, Outlook
from chatmemory.queries.step_samples import StepSamples, step_samples
from chatmemory.queries.steps import evictions_around, step_detail
from chatmemory.queries.trials import Trial
from chatmemory.queries.window_rows import WindowPlace, WindowView
from chatmemory.queries.windows import SeenWindow, StoredState, counted_otherwise_at

HISTORY_SIZE = 60
WINDOW_SIZE = 100
EVICTED_SIZE = 5
# One character more than pages show, so that they know whether a text is longer.
TEXT_SIZE = 401


@dataclass(frozen=True)
class ConversationQuery:
    """The parameters of a conversation page.

    `at` is a step (None: now), `msg` the selected message (-2: the second draft of a simulation),
    `before` and `after` bound the part of the history, `find` is a phrase, `other` is another step
    for comparison, of which messages above `past` are listed. `replay` asks for what would have
    kept the selected message even in a long history.
    """

    at: int | None = None
    msg: int | None = None
    before: int | None = None
    after: int | None = None
    find: str = ""
    other: int | None = None
    past: int | None = None
    replay: bool = False


@dataclass(frozen=True)
class ConversationState:
    """A conversation at step `at`, with the results of the query.

    `detail` is that step, or None at step 0. `part` is the slice of the window's rows that is shown
    below a leading system message; `texts` are the beginnings of their texts by seq. `left_by` is
    the change by which the selected message left, or None while it is in memory. With a `trial`,
    `drafts`, `simulated` and `outlook` are set, `window` is the resulting window and
    `stored_window` the one before it (see `simulated_state`). `trim` is what a limit that is tried
    without drafts evicts at the next add. `injected` are the messages of the
    window that were never said: a client put them there. `when_said` are the tokens when they were
    said of messages that count otherwise in the window. `remembered` are the ranges of steps,
    first and last, at which a message that contains the phrase was in memory, as far as known.
    """

    query: ConversationQuery
    memory: MemoryRow
    at: int
    detail: StepDetail | None
    window: WindowView[WindowPlace]
    stored_window: WindowView[WindowPlace]
    part: slice
    history: Page
    samples: StepSamples
    evictions: tuple[int | None, int | None]
    texts: Mapping[int, str]
    mentions: PhraseMatches
    calls: Mapping[int, int] = field(default_factory=dict)
    selected: MessageRow | None = None
    left_by: ChangeResult | None = None
    would_keep: WhatWouldKeep | None = None
    compared: SeenWindow | None = None
    drafts: tuple[MessageRow, ...] = ()
    simulated: tuple[ChangeResult, ...] | None = None
    trim: ChangeResult | None = None
    outlook: Outlook = NO_OUTLOOK
    trial: Trial | None = None
    remembered: tuple[tuple[int, int], ...] = ()
    injected: frozenset[int] = frozenset()
    when_said: Mapping[int, int] = field(default_factory=dict)

    @property
    def is_live(self) -> bool:
        return self.query.at is None

    @property
    def is_policy_unknown(self) -> bool:
        """Whether no row tells which policy was in force: before step 1, which changed it."""
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
    def in_window(self) -> frozenset[int]:
        """The messages that the model sees."""
        return frozenset(self.window.seqs)

    @cached_property
    def evicted(self) -> dict[int, int]:
        """The messages that the change evicts: their positions in it by seq."""
        evicted = self.change.evicted if self.change else ()
        return {each.seq: position for position, each in enumerate(evicted)}

    @cached_property
    def next_to_leave(self) -> tuple[int, ...]:
        """The messages that leave first when the next one finds no room."""
        return next_to_leave(self.window)

    @property
    def is_full(self) -> bool:
        """Whether the next message evicts another, however short it is."""
        return is_full(self.window)

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdicts of providers on the window."""
        return verdicts(
            [
                Turn(row.seq, row.type, self.calls.get(row.seq, int(row.has_calls)))
                for row in self.window.rows
            ]
        )

    @cached_property
    def found(self) -> frozenset[int]:
        """The messages that contain the phrase."""
        return frozenset(row.seq for row in self.mentions.rows)


@one_snapshot()
def conversation_state(memory_id: str, query: ConversationQuery) -> ConversationState:
    """Return the state of a conversation. Raises MemoryNotFound, StepNotFound, MessageNotFound."""
    stored = StoredState.of(memory_id, query.at)
    return with_calls(state_of(stored, query), stored)


def with_calls(state: ConversationState, stored: StoredState) -> ConversationState:
    """Return a state with the numbers of tool calls of messages in its window, and of its drafts.

    Others that have calls have one.
    """
    calls = several_calls(stored.memory.pk, state.window.rows)
    drafts = {draft.seq: number_of_calls(draft.message) for draft in state.drafts}
    return replace(state, calls=calls | drafts)


def state_of(stored: StoredState, query: ConversationQuery) -> ConversationState:
    """Return the state of a conversation that is already read, without tool calls."""
    memory, row = stored.memory, stored.step
    memory_id, at = memory.pk, row.n
    detail = step_detail(row) if at else None
    window = stored.window
    part = window_part(window, query.msg)
    selected = message_in(memory, query.msg) if query.msg else None
    mentions = phrase_matches(stored, query.find, detail)
    history = _history(row, query, mentions)
    left_by = _left_by(memory, selected, detail)
    known = {row.seq: row.readable for row in (*history.rows, *mentions.rows)}
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
        samples=step_samples(memory, at),
        evictions=evictions_around(memory_id, at),
        texts=_texts(memory_id, wanted, known),
        mentions=mentions,
        selected=selected,
        left_by=left_by,
        would_keep=what_would_keep(row, selected, left_by, query.replay),
        compared=_compared(stored, query.other),
        remembered=mentions.spans,
        injected=stored.injected,
        when_said=counted_otherwise_at(row),
    )


def combined(changes: Sequence[ChangeResult]) -> ChangeResult | None:
    """Return several changes as one, or None if there are none."""
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


def window_part(window: WindowView[WindowPlace], msg: int | None) -> slice:
    """Return the slice of the window that a page shows: the last rows, or those around `msg`.

    A leading system message is not in it, because it is always shown.
    """
    first, end = len(_leading(window)), len(window.rows)
    chosen = window.seqs.index(msg) if msg in window.seqs else end
    stop = min(end, max(chosen + WINDOW_SIZE // 2, first + WINDOW_SIZE))
    return slice(max(first, stop - WINDOW_SIZE), stop)


def _leading(window: WindowView[WindowPlace]) -> tuple[WindowPlace, ...]:
    return (window.system_at_head,) if window.system_at_head else ()


def _history(step: Step, query: ConversationQuery, found: PhraseMatches) -> Page:
    """Return a page of the history.

    It is before or after a message if there are any, else around the selected one, else around the
    last one that contains the phrase, else at the end.
    """
    around = query.msg or max((r.seq for r in found.rows if r.seq <= step.last_seq), default=None)
    usual = Part(around=around, size=HISTORY_SIZE)
    asked = Part(query.before, query.after, size=HISTORY_SIZE)
    is_paged = query.before is not None or query.after is not None
    extent = step.last_seq, step.said_count
    page = history_page(step.memory_id, asked if is_paged else usual, *extent)
    return page if page.rows or not is_paged else history_page(step.memory_id, usual, *extent)


def _compared(stored: StoredState, other: int | None) -> SeenWindow | None:
    """Return the window at the step to compare with."""
    return None if other is None else StoredState(stored.memory, other).seen()


def _left_by(
    memory: Memory, row: MessageRow | None, detail: StepDetail | None
) -> ChangeResult | None:
    """Return the last change up to a step by which a message left, or None if it is in memory."""
    departure = row.departure(detail.row.n) if row and detail else None
    if departure is None or departure.left_step is None:
        return None
    return change_at(memory, departure.left_step, detail)


def _texts(memory_id: str, seqs: Sequence[int], known: Mapping[int, str]) -> dict[int, str]:
    """Return the beginnings of texts by seq, and those that are already known in full."""
    missing = [seq for seq in seqs if seq not in known]
    return dict(known) | (beginnings(memory_id, missing, TEXT_SIZE) if missing else {})


def _seqs(rows: Iterable[MessageRow | WindowPlace | EvictedMessage]) -> list[int]:
    return [row.seq for row in rows]
