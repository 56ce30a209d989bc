"""Folding: messages are added one by one to a window, as live adds do; every replay uses it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from chatmemory.exceptions import OversizedMessage
from chatmemory.messages.estimators import count_tokens, estimator_for
from chatmemory.windows.clearing import clear_for
from chatmemory.windows.eviction import Eviction
from chatmemory.windows.policies import Policy
from chatmemory.windows.transitions import Change, Transition, admit
from chatmemory.windows.window import Entry, Window

# The transition of an add, and the old tool results that were cleared before it, each with its stub
Added = tuple[Transition, tuple[Eviction, ...]]


def fold(window: Window, arrivals: Iterable[Entry], policy: Policy) -> Iterator[Added]:
    """Add entries to a window one by one; yield the transition of each add.

    A message that the policy rejects changes nothing. If the policy clears old tool results, the
    entries of results must have a message: the result, or a stub of it, which is as good. Raises
    NoRoomBesidePins, and if the policy clears results, UnknownEstimator.
    """
    clear = _clearing_by(policy) if policy.whole_results else None
    for arrival in arrivals:
        cleared: tuple[Eviction, ...] = ()
        before = None
        if clear and (clearing := clear(window, arrival)).evictions:
            before, cleared = (list(window), window.totals), clearing.evictions
            clearing.apply_to(window)
        try:
            change = admit(window, arrival, policy)
        except OversizedMessage:
            if before:
                window.refill(before[0])
                window.totals = before[1]
            yield Transition(Change.ADD, window.totals, window.totals, policy, policy), ()
            continue
        change.apply_to(window)
        yield change, cleared


def _clearing_by(policy: Policy) -> Callable[[Window, Entry], Transition]:
    count = partial(count_tokens, estimator_for(policy.estimator))
    return lambda window, arrival: clear_for(window, arrival, policy, count)
