"""What a trim takes from a long window, read from columns instead of entries.

`departures` decides what `transitions.over_limit` decides. A lowered limit can evict hundreds of
thousands of messages, and an entry, a place in the head and an eviction for each take seconds.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate

from chatmemory.core.keeping import evicts_oldest_first
from chatmemory.core.long_lists import HAS_CALLS, TOKENS, TYPE, Columns
from chatmemory.core.messages import TYPES, MessageType
from chatmemory.core.policies import Policy, can_decide
from chatmemory.core.transitions import over_limit
from chatmemory.core.window import Entry, Totals, Window

PINNED = 5  # the column of places behind `entered_step`

# The position of a row that leaves, and that of the tool call with which it does, or None.
Departure = tuple[int, int | None]


def departures(
    rows: Sequence[Columns], totals: Totals, policy: Policy | None
) -> Sequence[Departure]:
    """Return what leaves a window that is over its limit, in order; nothing without a policy.

    The rows may be the first ones of a window with these totals.
    """
    if not can_decide(policy) or not policy.is_exceeded_by(totals):
        return ()
    if is_simple(rows, policy):
        return _oldest_first(rows, totals, policy)
    return _by_other_rules(rows, totals, policy)


def is_simple(rows: Sequence[Columns], policy: Policy) -> bool:
    """Return whether a window is trimmed by LangChain4j's rule alone, and nothing is pinned."""
    return evicts_oldest_first(policy) and not any(row[PINNED] for row in rows)


def fewest_to_leave(tokens: Sequence[int], totals: Totals, policy: Policy, mark: int) -> int:
    """Return how many messages of these tokens must leave a window, so that its load is the mark.

    All of them if that is not enough. A load does not fall when a message is added, so a few are
    computed.
    """
    left = [0, *accumulate(tokens)]

    def fits(number: int) -> bool:
        return policy.load(totals.count - number, totals.tokens - left[number]) <= mark

    return bisect_left(range(len(tokens)), True, key=fits)


def costs(policy: Policy, tokens: Iterable[int]) -> int:
    """Return the part of the load that messages of these tokens make up, without any overhead."""
    return sum(policy.cost(each) * number for each, number in Counter(tokens).items())


def _oldest_first(rows: Sequence[Columns], totals: Totals, policy: Policy) -> list[Departure]:
    """Return what `eviction.oldest_first` evicts."""
    system = next((i for i, row in enumerate(rows) if row[TYPE] == MessageType.SYSTEM), None)
    tokens = [row[TOKENS] for i, row in enumerate(rows) if i != system]
    capacity = fewest_to_leave(tokens, totals, policy, policy.limit)
    left: list[Departure] = []
    call = None
    for position, row in enumerate(rows):
        is_orphan = call is not None and row[TYPE] == MessageType.TOOL_EXECUTION_RESULT
        if not is_orphan:
            call = None
            if len(left) >= capacity:
                break
            if position == system:
                continue
        left.append((position, call))
        if row[HAS_CALLS]:
            call = position
    return left


def _by_other_rules(rows: Sequence[Columns], totals: Totals, policy: Policy) -> list[Departure]:
    entries = (
        Entry(TYPES[row[TYPE]], bool(row[HAS_CALLS]), row[TOKENS], key=i, pinned=bool(row[PINNED]))
        for i, row in enumerate(rows)
    )
    left: list[Departure] = []
    for eviction in over_limit(Window(entries, totals), policy):
        position, call = eviction.entry.key, eviction.because.key if eviction.because else None
        assert isinstance(position, int)
        left.append((position, call if isinstance(call, int) else None))
    return left
