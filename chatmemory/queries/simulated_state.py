"""The data of a conversation page with a trial: what its drafts and its limit would do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, islice

from django.utils import timezone

from chatmemory.core.codec import frame_of
from chatmemory.core.exceptions import MessageNotFound
from chatmemory.core.messages import ChatMessage, text_of
from chatmemory.core.stored_policies import can_decide
from chatmemory.ledger.changes import ChangeResult, EvictedMessage
from chatmemory.ledger.snapshots import one_snapshot
from chatmemory.queries.conversation_state import (
    EVICTED_SIZE,
    TEXT_SIZE,
    ConversationQuery,
    ConversationState,
    state_of,
    window_part,
    with_calls,
)
from chatmemory.queries.glimpses import beginnings
from chatmemory.queries.phrase import simulated_matches
from chatmemory.queries.rows import MessageRow
from chatmemory.queries.trials import Trial, tried
from chatmemory.queries.window_rows import WindowPlace
from chatmemory.queries.windows import StoredState


@one_snapshot()
def simulated_state(
    memory_id: str, query: ConversationQuery, trial: Trial | None
) -> ConversationState:
    """Return the state with the drafts added at the query's step, under the limit that is tried.

    Without a trial, and where no policy decides the window, nothing is simulated. Raises the
    exceptions of `conversation_state` and `simulate`.
    """
    stored = StoredState.of(memory_id, query.at)
    asks_for_draft = trial is not None and query.msg is not None and query.msg < 0
    state = state_of(stored, replace(query, msg=None) if asks_for_draft else query)
    state = replace(state, query=query, trial=trial)
    if trial is None or not can_decide(state.window.policy):
        return with_calls(state, stored)
    simulation = tried(stored, trial)
    changes, window = simulation.changes, simulation.window
    evicting = (simulation.trim,) if simulation.trim else changes
    drafts = tuple(_drafts(memory_id, trial.drafts, changes))
    part = window_part(window, query.msg)
    kept = frozenset(window.seqs)
    state = replace(
        state,
        window=window,
        part=part,
        texts=_texts(state, (*window.rows[:1], *window.rows[part]), drafts, evicting),
        mentions=simulated_matches(state.mentions, query.find, drafts, kept, changes),
        drafts=drafts,
        simulated=changes,
        trim=simulation.trim,
        outlook=simulation.outlook(),
        selected=_draft(drafts, query.msg) if asks_for_draft else state.selected,
        left_by=_left_by(changes, query.msg) or state.left_by,
    )
    return with_calls(state, stored)


def _drafts(
    memory_id: str, messages: Sequence[ChatMessage], changes: Sequence[ChangeResult]
) -> Iterable[MessageRow]:
    """Yield the drafts as rows of the history; one that changes nothing has no row."""
    now = timezone.now()
    for message, change in zip(messages, changes, strict=True):
        for arrived in change.arrived:
            yield MessageRow(
                memory_id=memory_id,
                seq=arrived.seq,
                type=message.type,
                has_calls=message.has_tool_execution_requests,
                text=text_of(message),
                frame=frame_of(message),
                tokens=arrived.tokens,
                origin="DRAFT",
                said_at=now,
                client_id=None,
            )


def _draft(drafts: Sequence[MessageRow], seq: int | None) -> MessageRow:
    for draft in drafts:
        if draft.seq == seq:
            return draft
    raise MessageNotFound("this simulation has no such draft")


def _left_by(changes: Sequence[ChangeResult], seq: int | None) -> ChangeResult | None:
    """Return the simulated change by which a message would leave."""
    if seq is None:
        return None
    return next((change for change in changes if change.eviction_of(seq)), None)


def _texts(
    state: ConversationState,
    rows: Sequence[WindowPlace],
    drafts: Sequence[MessageRow],
    changes: Sequence[ChangeResult],
) -> dict[int, str]:
    """Return the beginnings of the texts that the state of a simulation shows, by seq."""
    known = dict(state.texts) | {draft.seq: draft.readable for draft in drafts}
    evicted = [message.seq for message in islice(_evicted(changes), EVICTED_SIZE)]
    missing = {*(row.seq for row in rows), *evicted} - known.keys()
    return known | (beginnings(state.memory.id, sorted(missing), TEXT_SIZE) if missing else {})


def _evicted(changes: Iterable[ChangeResult]) -> Iterable[EvictedMessage]:
    return chain.from_iterable(change.evicted for change in changes)
