"""Adds messages to a window one by one, by the rules for adding to a stored conversation. Replays
use this module unless their result can be computed (see `loads`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from chatmemory.exceptions import OversizedMessage
from chatmemory.messages.estimators import count_tokens, estimator_for
from chatmemory.messages.message import ChatMessage
from chatmemory.windows.clearing import clear_for
from chatmemory.windows.eviction import Eviction
from chatmemory.windows.policies import Policy
from chatmemory.windows.transitions import Change, Transition, admit
from chatmemory.windows.window import Entry, Window

if TYPE_CHECKING:
    from chatmemory.recall.indexing import Indexing


class Added(NamedTuple):
    """The result of adding a message in a replay.

    - `change`: the transition of the add.
    - `cleared`: the tool results that became placeholders before the add.
    - `renewed`: the transition that renewed or removed the index message. None if the index message
      did not change, or if there is none.
    """

    change: Transition
    cleared: tuple[Eviction, ...] = ()
    renewed: Transition | None = None


def fold(
    window: Window, arrivals: Iterable[Entry], policy: Policy, said: Sequence[ChatMessage] = ()
) -> Iterator[Added]:
    """Add entries to a window one by one, and yield the result of each add. If the policy rejects a
    message, the window does not change, and `change.ignored` of the result is True.

    `said` has the messages of all entries. The index message is made from them; without `said`,
    there is no index. If the policy clears tool results, the entries of tool results must have
    their messages.

    Raises NoRoomBesidePins. Raises UnknownEstimator if the policy clears tool results or has an
    index.
    """
    clear = _clearing_by(policy) if policy.whole_results else None
    index = _indexing_by(policy, said) if policy.indexed_terms and said else None
    for position, arrival in enumerate(arrivals):
        cleared: tuple[Eviction, ...] = ()
        before = None
        if index:
            index.hear(position, arrival)
        if clear and (clearing := clear(window, arrival)).evictions:
            before, cleared = (list(window), window.totals), clearing.evictions
            clearing.apply_to(window)
        try:
            change = index.admit(window, arrival) if index else admit(window, arrival, policy)
        except OversizedMessage:
            if before:
                window.refill(before[0])
                window.totals = before[1]
            yield Added(Transition(Change.ADD, window.totals, window.totals, policy, policy))
            continue
        change.apply_to(window)
        yield Added(change, cleared, index.renew(window, change, cleared) if index else None)


def _clearing_by(policy: Policy) -> Callable[[Window, Entry], Transition]:
    count = partial(count_tokens, estimator_for(policy.estimator))
    return lambda window, arrival: clear_for(window, arrival, policy, count)


def _indexing_by(policy: Policy, said: Sequence[ChatMessage]) -> Indexing:
    # Here, as that module reads facts, and so imports this package
    from chatmemory.recall.indexing import Indexing

    return Indexing(policy, said)
