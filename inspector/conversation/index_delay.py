"""Finds when a message would have left memory if the policy had no index. The index takes room, so
messages may leave earlier because of it.
"""

from __future__ import annotations

from dataclasses import replace

from chatmemory import TokenWindow
from chatmemory.explain.wording import counted
from chatmemory.ledger.lookup import find_step
from chatmemory.models import Step
from chatmemory.reading.replay import changes_until, entries_of
from chatmemory.recall.loads import Loads
from inspector.conversation.keeping import left_for_room
from inspector.shell.state import ConversationState

MOST_MESSAGES = 2_000  # that a page replays for this
# Kinds of steps with which a replay of the history alone has the windows of the ledger
REPLAYED = {"add", "index", "stub", "labels", "redact"}


def leaving_without_index(state: ConversationState) -> str:
    """Say when the selected message would have left memory if the policy had no index: `left 3
    messages later`, `left at the same time`, or `has not left yet`.

    The result is "" in these cases:

    - No message is selected, or the message did not leave because of the limit.
    - The policy has no index.
    - The history has more than MOST_MESSAGES messages.
    - Memory had changes that a replay of the history ignores, such as pins.
    """
    step, row, left_by = state.stored.step, state.selection.row, state.selection.left_by
    policy = step.policy
    if row is None or left_by is None or left_by.step is None:
        return ""
    if not isinstance(policy, TokenWindow) or not policy.index_terms or not left_for_room(state):
        return ""
    kinds, is_recounted = changes_until(step)
    by_clients = Step.objects.filter(memory_id=step.memory_id, n__lte=step.n, by_client=True)
    is_replayed = kinds <= REPLAYED and not is_recounted and not by_clients.exists()
    if step.said_count > MOST_MESSAGES or not is_replayed:
        return ""
    entries = entries_of(step.memory_id, range(1, step.last_seq + 1), policy, is_recounted=False)
    position = next(i for i, entry in enumerate(entries) if entry.seq == row.seq)
    left = Loads(entries).departures(replace(policy, index_terms=0)).at[position]
    if left == len(entries):
        return "has not left yet"
    later = left - find_step(state.stored.memory, left_by.step).said_count + 1
    if not later:
        return "left at the same time"
    return f"left {counted(abs(later), 'message')} {'later' if later > 0 else 'earlier'}"
