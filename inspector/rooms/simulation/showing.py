"""The states that the page shows instead of a stored step: with simulated drafts and a limit, or
with the history replayed under another limit.
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
from chatmemory.reading.indexes import IndexInMemory
from chatmemory.reading.replay import READ_AT_ONCE, changes_until, entries_of
from chatmemory.reading.rows import MessageDetail, message_detail
from chatmemory.reading.simulation import Simulation
from chatmemory.reading.windows import MessageView, WindowView, view_of
from chatmemory.recall.folding import fold
from chatmemory.snapshots import one_snapshot
from chatmemory.windows.clearing import STUB
from chatmemory.windows.window import Window
from inspector.conversation.state import calls_in, conversation_state, texts_of, window_part
from inspector.rooms.simulation.trials import WhatIf, simulated_trial
from inspector.shell.state import ConversationQuery, ConversationState


@one_snapshot()
def simulated_state(
    memory_id: str, query: ConversationQuery, trial: WhatIf | None
) -> ConversationState:
    """Return the state of the page after a trial's drafts and limit, or the replay that the URL
    asks for.

    Without a trial, or if no policy decides the window, nothing is simulated. Raises the exceptions
    of `conversation_state` and `simulate`.
    """
    is_draft = trial is not None and (query.msg or 0) < 0
    stored = conversation_state(memory_id, replace(query, msg=None) if is_draft else query)
    stored = replace(stored, query=query)
    if query.number("limit") is not None:
        return replayed(stored)
    return with_trial(stored, trial) if trial else stored


def replayed(view: ConversationState) -> ConversationState:
    """Return the state as if the limit in the URL had been in force from the first message on.

    The state is unchanged if no policy decides the window. Raises InvalidValue.
    """
    limit = view.query.number("limit")
    if limit is None:
        return view
    window = replayed_window(view.stored.step, limit)
    if window is None:
        return view
    part = window_part(window, view.query.msg)
    new = [row for row in window.rows if row.seq not in view.stored_window.seqs]
    return replace(
        view,
        window=window,
        part=part,
        texts=texts_of(view.memory.id, view.texts, window, part, ()),
        calls={**view.calls, **calls_in(view.memory.id, new)},
        media=with_media(view.memory.id, window.rows),
        left_by=None,
        would_keep=None,
        simulated=(),
        injected=frozenset(),
        index=None,
        original_tokens={},
        is_replay=True,
    )


def replayed_window(step: Step, limit: int) -> WindowView | None:
    """Return the window at a step as if a limit had been in force from the first message on; None
    if no policy decides.

    The history is replayed without pins. Raises InvalidValue for more than 20,000 messages, and for
    a limit that the policy cannot have.
    """
    in_force = step.policy
    if not can_decide(in_force):
        return None
    if step.last_seq > READ_AT_ONCE:
        raise InvalidValue(f"a replay reads up to {READ_AT_ONCE:,} messages")
    policy = replace(in_force.enforced(), limit=limit)
    _, is_recounted = changes_until(step)
    entries = entries_of(step.memory_id, range(1, step.last_seq + 1), policy, is_recounted)
    window = Window()
    for _ in fold(window, entries, policy):
        pass
    return view_of(step.n, policy, (MessageView.of(entry, policy) for entry in window))


def with_trial(view: ConversationState, tried: WhatIf) -> ConversationState:
    """Return a stored state with the drafts and the limit of a trial; unchanged if no policy
    decides the window. Raises the exceptions of `simulation.simulate`.
    """
    if not can_decide(view.window.policy):
        return view
    return _with_simulation(view, simulated_trial(view.stored, tried), tried.drafts)


def _with_simulation(
    state: ConversationState, simulation: Simulation, messages: Sequence[ChatMessage]
) -> ConversationState:
    """Return a stored state after a simulation of drafts, and of another limit."""
    query, changes, window = state.query, simulation.changes, simulation.window
    outlook = simulation.outlook()
    drafts = tuple(_drafts(state.memory.id, messages, changes))
    part = window_part(window, query.msg)
    known = {**state.texts, **{draft.seq: draft.readable for draft in drafts}}
    evicting = (simulation.trim,) if simulation.trim else changes
    left_by = (change for change in changes if query.msg and change.eviction_of(query.msg))
    return replace(
        state,
        window=window,
        part=part,
        texts=texts_of(state.memory.id, known, window, part, evicting),
        calls={**state.calls, **{draft.seq: ids_in(draft.frame) for draft in drafts}},
        drafts=drafts,
        simulated=changes,
        trim=simulation.trim,
        outlook=outlook,
        index=simulation.index or _kept_index(state, window),
        cleared={**state.cleared, **dict.fromkeys(outlook.stubbed, STUB)},
        selected=_draft(drafts, query.msg) if (query.msg or 0) < 0 else state.selected,
        left_by=next(left_by, state.left_by),
    )


def _kept_index(state: ConversationState, window: WindowView) -> IndexInMemory | None:
    """Return the stored index if a simulated window still has it."""
    return state.index if state.index and state.index.seq in window.seqs else None


def _drafts(
    memory_id: str, messages: Sequence[ChatMessage], changes: Sequence[ChangeResult]
) -> Iterator[MessageDetail]:
    """Yield the drafts as rows of the history; one that changes nothing has no row."""
    now = timezone.now()
    for message, change in zip(messages, changes, strict=True):
        for arrived in change.arrived:
            row = InsertedMessage.of(memory_id, arrived, NewMessage(message), now)
            row.origin = "DRAFT"
            yield message_detail(row, arrived.has_calls)


def _draft(drafts: Sequence[MessageDetail], seq: int | None) -> MessageDetail:
    for draft in drafts:
        if draft.seq == seq:
            return draft
    raise MessageNotFound("this simulation has no such draft")
