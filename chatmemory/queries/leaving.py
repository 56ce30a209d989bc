"""What leaves a window next."""

from __future__ import annotations

from chatmemory.core import transitions
from chatmemory.core.stored_policies import can_decide
from chatmemory.core.window import Totals
from chatmemory.queries.window_rows import WindowPlace, WindowView, entries_of


def next_to_leave(window: WindowView[WindowPlace]) -> tuple[int, ...]:
    """Return the messages that leave first when there is no room: one, and its results.

    Empty without an installed policy, and if only a leading system message is left.
    """
    if not can_decide(window.policy):
        return ()
    leaving = transitions.next_to_leave(entries_of(window.rows), window.totals, window.policy)
    return tuple(seq for each in leaving if isinstance(seq := each.entry.key, int))


def is_full(window: WindowView[WindowPlace]) -> bool:
    """Return whether even a message of one token evicts another; False without a policy."""
    shortest = Totals(window.totals.count + 1, window.totals.tokens + 1)
    return can_decide(window.policy) and window.policy.is_exceeded_by(shortest)
