"""What a trim takes from columns is what it takes from entries."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from chatmemory.core.messages import MessageType
from chatmemory.core.policies import MessageWindow, TokenWindow
from chatmemory.core.transitions import over_limit
from chatmemory.core.trimming import departures
from chatmemory.core.window import Entry, Window, total

turns = st.lists(
    st.tuples(st.sampled_from("SUCARRR"), st.integers(1, 9)),
    max_size=12,
)
policies = st.one_of(
    st.builds(MessageWindow, st.integers(1, 12)), st.builds(TokenWindow, st.integers(1, 60))
)
TYPES = {
    "S": MessageType.SYSTEM,
    "U": MessageType.USER,
    "C": MessageType.AI,
    "A": MessageType.AI,
    "R": MessageType.TOOL_EXECUTION_RESULT,
}


@given(turns, policies)
def test_departures_are_the_evictions_of_a_read(turns, policy):
    rows = [
        (n, TYPES[kind].value, kind == "C", tokens, n, False)
        for n, (kind, tokens) in enumerate(turns)
    ]
    entries = [
        Entry(TYPES[kind], kind == "C", tokens, key=n) for n, (kind, tokens) in enumerate(turns)
    ]
    evictions = over_limit(Window(entries), policy)
    expected = [(each.entry.key, each.because.key if each.because else None) for each in evictions]
    assert list(departures(rows, total(entries), policy)) == expected
