"""What the conversation page shows in a trial and in a replay.

A trial can add drafts, and change the limit from the shown step on. A replay applies another limit
from the first message of the history on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from django.utils import timezone

from chatmemory import ChatMessage, MessageNotFound, can_decide
from chatmemory.exceptions import InvalidValue
from chatmemory.inserted import InsertedMessage, NewMessage
from chatmemory.ledger.changes import ChangeResult
from chatmemory.models import Step
from chatmemory.reading.budget import with_media
from chatmemory.reading.call_ids import ids_in
from chatmemory.reading.replay import READ_AT_ONCE, changes_until, entries_of
from chatmemory.reading.rows import MessageDetail, message_detail
from chatmemory.reading.simulation import Outlook, Simulation
from chatmemory.reading.windows import MessageView, WindowView, view_of
from chatmemory.recall.folding import fold
from chatmemory.snapshots import one_snapshot
from chatmemory.windows.clearing import STUB
from chatmemory.windows.window import Window
from inspector.conversation.state import calls_in, conversation_state, texts_of, window_part
from inspector.rooms.simulation.trials import WhatIf, simulated_trial
from inspector.shell.state import (
    ConversationQuery,
    ConversationState,
    SimulatedChanges,
    WindowContents,
)


@one_snapshot()
def simulated_state(
    memory_id: str, query: ConversationQuery, trial: WhatIf | None
) -> ConversationState:
    """Return what the conversation page shows for a URL with a trial or with a limit to replay. If
    the URL has both, the trial is ignored.

    Return the stored state if the URL has neither, or if no policy decides the window. Raises the
    exceptions of `conversation_state` and `simulate`.
    """
    is_draft = trial is not None and (query.msg or 0) < 0
    stored = conversation_state(memory_id, replace(query, msg=None) if is_draft else query)
    stored = replace(stored, query=query)
    if query.number("limit") is not None:
        return replayed(stored)
    return with_trial(stored, trial) if trial else stored


def replayed(view: ConversationState) -> ConversationState:
    """Return the state as if the limit in the URL had applied from the first message on.

    If no policy decides the window, return the state unchanged. Raises the exceptions of
    `replayed_window`.
    """
    limit = view.query.number("limit")
    if limit is None:
        return view
    window = replayed_window(view.stored.step, limit)
    if window is None:
        return view
    part = window_part(window, view.query.msg)
    new = [row for row in window.rows if row.seq not in view.stored.window.seqs]
    shown = replace(
        view.shown,
        part=part,
        texts=texts_of(view.memory.id, view.shown.texts, window, part, ()),
        calls={**view.shown.calls, **calls_in(view.memory.id, new)},
    )
    contents = replace(
        view.contents,
        injected=frozenset(),
        original_tokens={},
        media=with_media(view.memory.id, window.rows),
        index=None,
    )
    return replace(
        view,
        window=window,
        contents=contents,
        shown=shown,
        selection=replace(view.selection, left_by=None, would_keep=None),
        simulation=SimulatedChanges((), is_replay=True),
    )


def replayed_window(step: Step, limit: int) -> WindowView | None:
    """Return the window at a step as if a limit had applied from the first message on. None if no
    policy decides the window.

    Pins are ignored. Raises InvalidValue for more than 20,000 messages, and for a limit that the
    policy cannot have.
    """
    in_force = step.policy
    if not can_decide(in_force):
        return None
    if step.last_seq > READ_AT_ONCE:
        raise InvalidValue(
            f"a replay reads at most {READ_AT_ONCE:,} messages, and this history has "
            f"{step.last_seq:,} up to step {step.n:,}"
        )
    policy = replace(in_force.enforced(), limit=limit)
    _, is_recounted = changes_until(step)
    entries = entries_of(step.memory_id, range(1, step.last_seq + 1), policy, is_recounted)
    window = Window()
    for _ in fold(window, entries, policy):
        pass
    return view_of(step.n, policy, (MessageView.of(entry, policy) for entry in window))


def with_trial(view: ConversationState, tried: WhatIf) -> ConversationState:
    """Return the state that the conversation would have after the drafts and the limit of a trial.
    If no policy decides the window, return the state unchanged. Raises the exceptions of
    `simulation.simulate`.
    """
    if not can_decide(view.window.policy):
        return view
    return _with_simulation(view, simulated_trial(view.stored, tried), tried.drafts)


def _with_simulation(
    state: ConversationState, simulation: Simulation, messages: Sequence[ChatMessage]
) -> ConversationState:
    """Return the state after a simulation. `messages` are the drafts."""
    seq, changes, window = state.query.msg or 0, simulation.changes, simulation.window
    outlook, selection = simulation.outlook(), state.selection
    drafts = tuple(_drafts(state.memory.id, messages, changes))
    part = window_part(window, seq)
    known = {**state.shown.texts, **{draft.seq: draft.readable for draft in drafts}}
    evicting = (simulation.trim,) if simulation.trim else changes
    left_by = (change for change in changes if seq and change.eviction_of(seq))
    return replace(
        state,
        window=window,
        contents=_contents_after(state, simulation, outlook),
        shown=replace(
            state.shown,
            part=part,
            texts=texts_of(state.memory.id, known, window, part, evicting),
            calls={**state.shown.calls, **{draft.seq: ids_in(draft.frame) for draft in drafts}},
        ),
        selection=replace(
            selection,
            row=_draft(drafts, seq) if seq < 0 else selection.row,
            left_by=next(left_by, selection.left_by),
        ),
        simulation=SimulatedChanges(changes, drafts, simulation.trim, outlook),
    )


def _contents_after(
    state: ConversationState, simulation: Simulation, outlook: Outlook
) -> WindowContents:
    """Return the contents of the window after a simulation: with the tool results that the
    simulation clears, and with its index.
    """
    index = state.contents.index
    is_kept = index is not None and index.seq in simulation.window.seqs
    stubs = dict.fromkeys(outlook.stubbed, STUB)
    return replace(
        state.contents,
        cleared={**state.contents.cleared, **stubs},
        index=simulation.index or (index if is_kept else None),
    )


def _drafts(
    memory_id: str, messages: Sequence[ChatMessage], changes: Sequence[ChangeResult]
) -> Iterator[MessageDetail]:
    """Yield the drafts as rows of the history. A draft that changes nothing has no row."""
    now = timezone.now()
    for message, change in zip(messages, changes, strict=True):
        for arrived in change.arrived:
            row = InsertedMessage.of(memory_id, arrived, NewMessage(message), now)
            row.origin = "DRAFT"
            yield message_detail(row, arrived.has_calls)


def _draft(drafts: Sequence[MessageDetail], seq: int) -> MessageDetail:
    for draft in drafts:
        if draft.seq == seq:
            return draft
    raise MessageNotFound("this simulation has no draft message with this number")
