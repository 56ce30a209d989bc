"""The counters in the row of a conversation.

`oldest` is a lower bound for the numbers of the open stays, except for pinned messages and a
leading system message. It makes past windows cheap to read: a query reads a range of the primary
key that is about as long as the window, and not all stays before that step. `ordered_from` is the
number of the newest stay when a whole list was last set, or a message pinned or unpinned. Above it,
the order by number is the order by rank, so the first open stay has the lowest number. Up to it the
two orders may differ; then `oldest` keeps its value, which is still a lower bound.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Sum

from chatmemory.ledger.validation import check_bounds
from chatmemory.ledger.windows import stays_at, unprotected
from chatmemory.models import Memory, Step
from chatmemory.windows.transitions import Change, Transition
from chatmemory.windows.window import SAID, Entry, Window

# The kinds of steps that a full window refuses. Lowering a limit and clearing always work.
BOUNDED = (
    Step.Kind.ADD,
    Step.Kind.SET,
    Step.Kind.PIN,
    Step.Kind.COMPACT,
    Step.Kind.REPAIR,
)


def count_change(
    memory: Memory, transition: Transition, kind: str, entering: Sequence[Entry], window: Window
) -> None:
    """Count a transition in the row of the conversation, once it was applied to the window.

    `entering` are the entries whose stays begin. Raises WindowTooLarge for an add or a list that
    leaves too much.
    """
    last_seq = memory.last_seq
    memory.last_step += 1
    memory.last_stay += len(entering)
    memory.window_count, memory.window_tokens, _ = transition.after
    for entry in entering:
        memory.window_size += entry.size
        if entry.seq > last_seq:
            memory.last_seq += 1
            if entry.origin == SAID:
                memory.said_count += 1
                memory.history_tokens += entry.tokens
    for eviction in transition.evictions:
        memory.window_size -= eviction.entry.size
    if kind in BOUNDED:
        check_bounds(memory.window_count, memory.window_size)
    _count_order(memory, transition, kind, window)


def _count_order(memory: Memory, transition: Transition, kind: str, window: Window) -> None:
    """Set `oldest` and `ordered_from`."""
    # A window that only grew has the same first entry. Not reading it saves a query in every add
    # that evicts nothing.
    grows = transition.after.count > transition.before.count > 0
    numbers = (entry.n for entry in unprotected(window))
    if kind in (Step.Kind.SET, Step.Kind.REPAIR):
        memory.oldest = min(numbers, default=memory.last_stay + 1)
        memory.ordered_from = memory.last_stay
    elif transition.change in (Change.PIN, Change.COMPACT, Change.CLEAR_RESULTS):
        # After an unpinned or covered message, a system message may begin or cease to lead.
        memory.oldest = min([memory.oldest, *numbers])
        memory.ordered_from = memory.last_stay
    elif not grows and transition.change is not Change.KEEP:
        first = next(numbers, memory.last_stay + 1)
        memory.oldest = first if first > memory.ordered_from else memory.oldest


def go_back(memory: Memory, step: Step) -> None:
    """Set an unsaved row to the state after a past step. Do not save the row."""
    memory.policy, memory.policy_estimator = step.policy, step.policy_estimator
    memory.window_count, memory.window_tokens = step.count_after, step.tokens_after
    memory.window_load = step.load
    memory.window_size = stays_at(step).aggregate(size=Sum("size", default=0))["size"]
    memory.last_step, memory.last_seq, memory.last_stay = step.n, step.last_seq, step.last_stay
    memory.said_count, memory.history_tokens = step.said_count, step.history_tokens
    memory.oldest = step.oldest
