"""Assigns numbers in a conversation: the counters in its row, and the numbers and ranks of stays.

*Ranks* are whole numbers that order the stays of a window. A stored rank never changes, because
past windows are read from the same rows. Ranks are far apart, to leave room for insertions:

- An appended stay has its number times RANK_SPACING as rank.
- A stay at the beginning has the lowest rank minus RANK_SPACING.
- An inserted stay has a rank between the ranks of its neighbors.

Two columns of the conversation's row have the number of a stay. Pinned messages and a leading
system message do not count for these columns:

- `oldest`: no message of the window has a stay with a lower number. So a query for a past window
  reads few other rows.
- `ordered_from`: of two stays with higher numbers, the later stay has the higher rank.

An eviction sets `oldest` to the number of the first stay in the window whose message can be
evicted. But if this number is not above `ordered_from`, `oldest` does not change, and queries may
read more rows than necessary. A change that can reorder the window sets both columns anew.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Sum

from chatmemory.exceptions import NotCompactable
from chatmemory.ledger.validation import check_bounds
from chatmemory.ledger.windows import stays_at, unprotected
from chatmemory.messages.codec import frame_and_size
from chatmemory.models import Memory, Step
from chatmemory.windows.transitions import Change, Transition
from chatmemory.windows.window import SAID, Entry, Window

RANK_SPACING = 2**20
# The kinds of steps that a full window refuses. Lowering a limit and clearing always work.
BOUNDED = (
    Step.Kind.ADD,
    Step.Kind.SET,
    Step.Kind.PIN,
    Step.Kind.COMPACT,
    Step.Kind.REPAIR,
)


# Stays


def numbered(
    entry: Entry,
    n: int,
    seq: int,
    rank: int,
    origin: str = SAID,
    overrides: str | None = None,
) -> Entry:
    """Return a copy of an entry with the numbers of its rows: `n` of the stay, `seq` of the
    message, and the `rank` that orders the window.

    `origin` is SAID or SYNTHETIC. `overrides` are the overrides of the stay. If they are None, an
    entry that already had a stay keeps the overrides of that stay.
    """
    if entry.n and overrides is None:
        frame, size, overrides = entry.frame, entry.size, entry.overrides
    else:
        assert entry.message is not None
        frame, size = frame_and_size(entry.message)
    first = entry.type, entry.has_calls, entry.tokens, entry.message, n, entry.pinned
    return Entry(*first, entry.is_stub, n, seq, rank, size, str(origin), frame, overrides)


def numbered_add(transition: Transition, memory: Memory, window: Window) -> Transition:
    """Return the transition of an add, with the numbers of the new message filled in: its seq, the
    number of its stay, and its rank. Ranks order the messages of a window.

    If the add changes nothing, the transition is returned unchanged.
    """
    n, seq = memory.last_stay + 1, memory.last_seq + 1
    first = next(iter(window), None) if transition.at_head else None
    rank = head_rank(first.rank) if first else appended_rank(n)
    return transition.with_entries(
        {arrival: numbered(arrival, n, seq, rank) for arrival in transition.arrivals}
    )


def appended_rank(n: int) -> int:
    """Return the rank of stay `n` at the end of the window. Ranks order the messages of a
    window.
    """
    return n * RANK_SPACING


def head_rank(first: int) -> int:
    """Return the rank of a message before all other messages. `first` is the lowest rank so far.
    Ranks order the messages of a window.
    """
    return first - RANK_SPACING


def rank_of_summary(transition: Transition, n: int) -> int:
    """Return the rank of a summary, whose stay gets the number `n`. Ranks order the messages of a
    window.

    At the position of the first replaced message, the summary gets the rank of that message. At the
    end of the window, it gets the rank of an appended stay. Elsewhere, it gets a rank between those
    of its neighbors. Raises NotCompactable if no rank is free between the neighbors.
    """
    ranks = [each.rank if each.n else None for each in transition.arrivals]
    place = ranks.index(None)
    covered = min(
        (eviction.entry.rank for eviction in transition.evictions),
        default=appended_rank(n),
    )
    if sum(rank is not None and rank < covered for rank in ranks) == place:
        return covered
    rank = place_ranks(ranks)[place]
    if rank is None and place < len(ranks) - 1:
        raise NotCompactable(
            "no place is free between the two messages around the summary: choose other messages "
            "to replace"
        )
    return appended_rank(n) if rank is None else rank


def place_ranks(ranks: Sequence[int | None]) -> list[int | None]:
    """Return the ranks of a list, with its gaps (None) filled by evenly spaced ranks.

        [None, 100, None, 300, None] -> [below 100, 100, 200, 300, None]

    Ranks after the last known rank stay None. If a gap has too little room, all ranks from the gap
    on become None. The caller then gives new ranks at the end.
    """
    placed: list[int | None] = list(ranks)
    known = [(j, rank) for j, rank in enumerate(ranks) if rank is not None]
    previous, below = -1, None
    for j, rank in known:
        gap = j - previous - 1
        low = rank - (gap + 1) * RANK_SPACING if below is None else below
        if rank - low <= gap:
            return placed[: previous + 1] + [None] * (len(ranks) - previous - 1)
        for position in range(1, gap + 1):
            placed[previous + position] = low + (rank - low) * position // (gap + 1)
        previous, below = j, rank
    return placed


# Counters


def count_change(
    memory: Memory, transition: Transition, kind: str, entering: Sequence[Entry], window: Window
) -> None:
    """Update the counters in the conversation's row after a transition.

    `entering` are the entries whose stays begin. Raises WindowTooLarge if the window is larger than
    the settings allow.
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
    """Set the columns `oldest` and `ordered_from` of a conversation's row."""
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
    """Set the row of a conversation to the state after a past step, for a simulation. The caller
    must not save the row.
    """
    memory.policy, memory.policy_estimator = step.policy, step.policy_estimator
    memory.window_count, memory.window_tokens = step.count_after, step.tokens_after
    memory.window_load = step.load
    memory.window_size = stays_at(step).aggregate(size=Sum("size", default=0))["size"]
    memory.last_step, memory.last_seq, memory.last_stay = step.n, step.last_seq, step.last_stay
    memory.said_count, memory.history_tokens = step.said_count, step.history_tokens
    memory.oldest = step.oldest
