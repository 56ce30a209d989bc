"""What leaves a window next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from chatmemory.core.long_lists import seqs_of
from chatmemory.core.policies import has_own_rule
from chatmemory.core.stored_policies import can_decide
from chatmemory.core.transitions import next_to_leave as next_evictions
from chatmemory.core.trimming import next_departures
from chatmemory.core.window import Entry, EntrySource, Totals, Window
from chatmemory.queries.window_rows import WindowPlace, WindowView


class _Places(EntrySource):
    """The places of a window as entries, made as far as they are read; the key is the seq."""

    def __init__(self, places: Sequence[WindowPlace]) -> None:
        self._places = places

    def entries(self) -> Iterator[Entry]:
        for place in self._places:
            yield Entry(
                place.type, place.has_calls, place.tokens, key=place.seq, pinned=place.pinned
            )

    def systems(self) -> Iterable[Entry]:
        raise NotImplementedError("the messages of these places are not read")

    def with_messages(self) -> Iterable[Entry]:
        raise NotImplementedError("the messages of these places are not read")


def next_to_leave(window: WindowView[WindowPlace]) -> tuple[int, ...]:
    """Return the messages that leave first when there is no room: one, and its results.

    Empty without an installed policy, and if only a leading system message is left.
    """
    if not can_decide(window.policy):
        return ()
    if window.policy.has_window_options and not has_own_rule(type(window.policy)):
        left = next_departures(window.rows.columns, window.totals, window.policy)
        return tuple(seqs_of(window.rows.picked(left.positions)))
    evictions = next_evictions(Window(_Places(window.rows), window.totals), window.policy)
    return tuple(seq for each in evictions if isinstance(seq := each.entry.key, int))


def is_full(window: WindowView[WindowPlace]) -> bool:
    """Return whether even a message of one token evicts another; False without a policy."""
    shortest = Totals(window.totals.count + 1, window.totals.tokens + 1)
    return can_decide(window.policy) and window.policy.is_exceeded_by(shortest)
