"""What a trim takes from columns is what it takes from entries."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from chatmemory.core.departures import Departures, by_own_rule
from chatmemory.core.eviction import Head, Reason
from chatmemory.core.exceptions import InvalidValue, NoRoomBesidePins, OversizedMessage
from chatmemory.core.long_lists import Columns
from chatmemory.core.messages import MessageType, UserMessage
from chatmemory.core.options import Oversized
from chatmemory.core.policies import MessageWindow, Policy, TokenWindow
from chatmemory.core.transitions import admit, next_to_leave, over_limit
from chatmemory.core.trimming import departures, leaving_ahead, next_departures
from chatmemory.core.window import Entry, Totals, Window, total

from ..test_simulated_trims import OWN

turns = st.lists(
    st.tuples(st.sampled_from("SUCARRR"), st.integers(1, 9), st.sampled_from([0, 0, 1])),
    max_size=12,
)
policies = st.one_of(
    st.builds(MessageWindow, st.integers(1, 12)), st.builds(TokenWindow, st.integers(1, 60))
)
options = st.fixed_dictionaries(
    {},
    optional={
        "low_water": st.sampled_from([0.3, 0.5, 0.9]),
        "snap_to_user": st.booleans(),
        "oversized": st.sampled_from(list(Oversized)),
        "meters_only": st.sampled_from([False, False, True]),
    },
)
TYPES = {
    "S": MessageType.SYSTEM,
    "U": MessageType.USER,
    "C": MessageType.AI,
    "A": MessageType.AI,
    "R": MessageType.TOOL_EXECUTION_RESULT,
}


def with_options(policy: Policy, options: dict[str, Any]) -> Policy:
    try:
        return replace(policy, **options)
    except InvalidValue:  # a low mark that leaves no room
        return replace(policy, **(options | {"low_water": 1}))


def row_of(n: int, turn: tuple[str, int, int]) -> Columns:
    kind, tokens, pinned = turn
    return n, TYPES[kind].value, kind == "C", tokens, n, bool(pinned)


def rows_of(turns: Iterable[tuple[str, int, int]]) -> list[Columns]:
    return [row_of(n, turn) for n, turn in enumerate(turns)]


def entries_of(turns: Iterable[tuple[str, int, int]]) -> list[Entry]:
    return [
        Entry(MessageType(type), has_calls, tokens, UserMessage(f"{n}"), key=n, pinned=pinned)
        for n, type, has_calls, tokens, _, pinned in rows_of(turns)
    ]


@settings(max_examples=500)
@given(turns, policies, options)
def test_departures_are_the_evictions_of_a_read(turns, policy, options):
    policy = with_options(policy, options)
    entries = entries_of(turns)
    evictions = over_limit(Window(entries), policy)
    left = departures(rows_of(turns), total(entries), policy)
    assert left.positions == [each.entry.key for each in evictions]
    assert left.calls == {e.entry.key: e.because.key for e in evictions if e.because}


@settings(max_examples=500)
@given(turns, st.sampled_from(OWN), st.integers(1, 90), st.booleans(), st.integers(1, 5))
def test_departures_by_a_rule_of_its_own_are_the_evictions_of_a_read(
    turns, kind, limit, snaps, at_once
):
    entries, policy = entries_of(turns), kind(limit, snap_to_user=snaps)
    evictions = over_limit(Window(entries), policy)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("chatmemory.core.departures.MADE_AT_ONCE", at_once)
        left = by_own_rule(rows_of(turns), total(entries), policy)
    assert left.positions == [each.entry.key for each in evictions]
    assert left.calls == {e.entry.key: e.because.key for e in evictions if e.because}
    trimmed = list(policy.trim(Head(entries, total(entries))))
    assert left.rest == len(evictions) - len(trimmed)
    usual = [Reason.CAPACITY if each.because is None else Reason.ORPHANED for each in trimmed]
    assert left.is_usual == (usual == [each.reason for each in trimmed])


@settings(max_examples=300)
@given(turns, st.sampled_from(OWN), st.integers(1, 90), st.booleans())
def test_what_leaves_ahead_by_a_rule_of_its_own_is_the_same_if_it_is_known(
    turns, kind, limit, snaps
):
    rows, policy = rows_of(turns), kind(limit, snap_to_user=snaps)
    totals, arrival = total(entries_of(turns)), row_of(len(turns), ("U", 3, 0))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("chatmemory.core.trimming.FEW", 0)
        known = departures(rows, totals, policy)
        decided = leaving_ahead(rows, totals, arrival, policy)
        assert leaving_ahead(rows, totals, arrival, policy, left=known) == decided


@settings(max_examples=500)
@given(turns, policies, options)
def test_what_leaves_next_is_the_same_by_columns(turns, policy, options):
    policy = with_options(policy, options)
    entries = entries_of(turns)
    evictions = next_to_leave(Window(entries), policy)
    left = next_departures(rows_of(turns), total(entries), policy)
    assert left.positions == [each.entry.key for each in evictions]


@settings(max_examples=500)
@example([("U", 1, 0), ("C", 1, 0)], [("R", 9, 0)], TokenWindow(8), {}, False, False)
@given(turns, turns.filter(bool), policies, options, st.booleans(), st.booleans())
def test_what_leaves_ahead_is_what_an_add_evicts_first(
    turns, last, policy, options, at_head, is_same
):
    options = options | {"always_keep_system_message_first": at_head}
    policy = with_options(policy, options)
    kind, tokens, _ = last[-1]
    entries = entries_of(turns)
    systems = [entry for entry in entries if entry.type is MessageType.SYSTEM]
    message = systems[0].message if is_same and systems else UserMessage("new")
    arrival = Entry(TYPES[kind], kind == "C", tokens, message, key="new")
    row = row_of(len(turns), (kind, tokens, 0))
    same = [system.key for system in systems if system.message == message]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("chatmemory.core.trimming.FEW", 0)
        left = leaving_ahead(rows_of(turns), total(entries), row, policy, same)
    assert set(left.calls) <= set(left.positions)
    behind = [entry for entry in entries if entry.key not in left.positions]
    window = window_of(behind, is_trimmed=bool(left.positions) and not left.is_all)
    assert outcome(window, arrival, policy, left) == outcome(window_of(entries), arrival, policy)


def test_all_that_leaves_for_another_system_message_is_decided_at_once(monkeypatch):
    monkeypatch.setattr("chatmemory.core.trimming.FEW", 0)
    rows = rows_of([("S", 1, 0), *[("U", 2, 0)] * 9])
    left = leaving_ahead(rows, Totals(10, 19), row_of(10, ("S", 9, 0)), TokenWindow(22))
    assert (left.positions, left.is_all) == ([1, 2, 3, 4], True)


def window_of(entries: list[Entry], is_trimmed: bool = False) -> Window:
    window = Window(entries)
    window.is_trimmed = is_trimmed
    return window


def outcome(
    window: Window, arrival: Entry, policy: Policy, left: Departures | None = None
) -> tuple[object, ...]:
    """Return what an add does, behind what has left already."""
    left = left or Departures()
    try:
        change = admit(window, arrival, policy)
    except (OversizedMessage, NoRoomBesidePins) as error:
        return (type(error),)
    if change.ignored:  # what has left already is of the next change
        return ()
    evicted = [(each.entry.key, each.reason) for each in change.evictions]
    first = int(bool(evicted) and evicted[0][1] is Reason.REPLACED)
    turn = len(left.positions) - left.rest
    gone = [
        (n, Reason.ORPHANED if n in left.calls else Reason.CAPACITY if i < turn else Reason.TURN)
        for i, n in enumerate(left.positions)
    ]
    all_gone = [*gone[: left.ahead], *evicted[:first], *gone[left.ahead :], *evicted[first:]]
    pinned = None if change.has_room else change.pinned
    return change.after, all_gone, change.is_oversized, pinned
