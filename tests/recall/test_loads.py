"""Loads agree with the rule of eviction, which they state a second time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, replace
from itertools import combinations_with_replacement
from typing import ClassVar

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chatmemory import (
    AiMessage,
    MessageType,
    MessageWindow,
    NoRoomBesidePins,
    SystemMessage,
    TokenWindow,
    TurnWindow,
    UserMessage,
)
from chatmemory.recall.folding import fold
from chatmemory.recall.loads import Keeping, Loads, Stub, evicts_oldest_first, smallest_limit
from chatmemory.windows.eviction import Eviction, Head, Reason
from chatmemory.windows.policies import Policy
from chatmemory.windows.window import Entry, Weighable, Window
from tests.counting_calls import CountedLines
from tests.messages.letters import CALL, RESULT

from ..properties import examples


@dataclass(frozen=True)
class Surcharged(Policy):
    """Counts tokens and a surcharge per message, and evicts by the rule of all policies."""

    kind: ClassVar[str] = "surcharged"
    label: ClassVar[str] = "Surcharged"
    unit: ClassVar[str] = "points"
    short_unit: ClassVar[str] = "pts"
    limit_name: ClassVar[str] = "max_points"

    _: KW_ONLY
    surcharge: int = 2

    def cost(self, message: Weighable) -> int:
        return message.tokens + self.surcharge


@dataclass(frozen=True)
class Halving(Surcharged):
    """Has a rule of its own: over the limit, it evicts from the head down to half of it."""

    kind: ClassVar[str] = "halving"

    def evict(self, head: Head) -> Iterator[Eviction]:
        if self.is_exceeded_by(head.totals):
            while self.load(head.totals) > self.limit // 2 and (victim := head.pop()):
                yield Eviction(victim, Reason.CAPACITY)


messages = st.sampled_from(
    [UserMessage("hello"), CALL, CALL, RESULT, RESULT, RESULT]
    + [SystemMessage(text) for text in ("brief", "kind", "long")]
)
tokens = st.integers(0, 6)
histories = st.lists(st.builds(Entry.of, messages, tokens), min_size=1, max_size=9)
first = st.booleans()
oldest_first = st.one_of(
    st.builds(MessageWindow, st.just(1), always_keep_system_message_first=first),
    st.builds(
        TokenWindow,
        st.just(1),
        always_keep_system_message_first=first,
        fixed_overhead=st.integers(0, 4),
    ),
    st.builds(Surcharged, st.just(1), always_keep_system_message_first=first),
)


def entries(*said: tuple[object, int]) -> list[Entry]:
    return [Entry.of(message, tokens) for message, tokens in said]


SWEPT_LATER = entries(
    (CALL, 2), (SystemMessage("brief"), 5), (RESULT, 1), (SystemMessage("kind"), 1), (RESULT, 9)
)
options = {
    "always_keep_system_message_first": first,
    "snap_to_user": st.booleans(),
    "oversized": st.sampled_from(["evict", "keep", "reject"]),
    "meters_only": st.sampled_from([False, False, True]),
    "free_system": st.booleans(),
    "auto_recover_orphaned_tool_messages": st.booleans(),
}
any_policy = (
    oldest_first
    | st.builds(MessageWindow, st.just(1), free_system=st.just(True))
    | st.builds(TurnWindow, st.integers(2, 4), **options)
    | st.builds(Halving, st.just(1))
    | st.builds(MessageWindow, st.integers(2, 9), low_water=st.just("0.5"), **options)
    | st.builds(TokenWindow, st.integers(20, 40), low_water=st.just("0.29"), **options)
    | st.builds(TokenWindow, st.integers(8, 40), **options)
)
pins = st.lists(st.builds(Entry, st.just(MessageType.USER), st.just(False), tokens), max_size=2)


@examples(400)
@given(histories, any_policy, st.integers(1, 45), pins)
@example(SWEPT_LATER, TokenWindow(1, fixed_overhead=0), 8, [])
def test_loads_tell_what_the_rule_does(said, policy, limit, pins):
    policy = replace(policy, limit=max(limit, policy.least_limit))
    loads = Loads(said)
    assert loads.departures(policy).at == left_by_the_rule(said, policy)
    if not evicts_oldest_first(policy):
        return
    limits = range(1, policy.load(policy.total(said)) + 3)
    left = {each: left_by_the_rule(said, replace(policy, limit=each)) for each in limits}
    assert left == {each: loads.departures(replace(policy, limit=each)).at for each in limits}
    for position, last in combinations_with_replacement(range(len(said)), 2):
        held = {each for each in limits if left[each][position] > last}
        if last == len(said) - 1:
            ranges = loads.limits_that_drop(position, policy)
            dropped = limits if ranges is None else set().union(*ranges)
            assert held == {*limits}.difference(dropped)
        if loads.have_one_system and said[position].type is not MessageType.SYSTEM:
            intervals = loads.limits_that_hold(position, last, policy)
            assert held == {n for n in limits if any(a <= n < (b or n + 1) for a, b in intervals)}
    beside_pins = replace(policy, limit=policy.limit + sum(policy.weigh(p) for p in pins))
    with suppress(NoRoomBesidePins):
        pinned = [replace(each, pinned=True, key=object()) for each in pins]
        assert left_by_the_rule(said, beside_pins, pinned) == loads.departures(policy).at


@pytest.mark.parametrize("option", [{"low_water": "0.5"}, {"snap_to_user": True}])
def test_a_replay_with_an_option_takes_as_long_as_one_without_and_grows_in_line(option):
    """It took 9 to 21 times as long, and 2.4 times as long for twice the messages."""

    def lines(n: int, **options: object) -> int:
        said = entries(*((UserMessage(f"message {i}"), 20) for i in range(n)))
        with CountedLines() as counted:
            Loads(said).departures(MessageWindow(n // 3, **options))
        return counted.count

    assert lines(60, **option) <= 2 * lines(60)
    assert lines(240, **option) <= 2.2 * lines(120, **option)


clearing = {
    "clear_tool_results": st.integers(1, 3),
    "low_water": st.sampled_from(["1", "0.5"]),
    "snap_to_user": st.booleans(),
    "free_system": st.booleans(),
    "fixed_overhead": st.integers(0, 4),
}
of_an_agent = st.lists(
    st.builds(
        Entry.of,
        st.sampled_from([UserMessage("hello"), AiMessage("hi"), CALL, RESULT, RESULT, RESULT]),
        st.sampled_from([1, 6, 20, 21, 40, 90]),
    ),
    min_size=1,
    max_size=14,
)


@examples(400)
@given(of_an_agent, st.integers(0, 1), st.builds(TokenWindow, st.integers(12, 250), **clearing))
def test_clearings_tell_what_the_rule_does(said, systems, policy):
    said = [*entries((SystemMessage("brief"), 9))[:systems], *said]
    found = Loads(said).departures(policy)
    assert (list(found.at), found.stubs) == cleared_by_the_rule(said, policy)


def test_a_replay_that_clears_results_grows_in_line():
    """Each add read the whole window, and the window of a large limit grows with the history."""

    def lines(n: int) -> int:
        said = entries(*((CALL, 9), (RESULT, 90), (AiMessage("hi"), 9)) * n)
        with CountedLines() as counted:
            Loads(said).departures(TokenWindow(20 * n, clear_tool_results=3))
        return counted.count

    assert lines(80) <= 2.2 * lines(40)


def cleared_by_the_rule(said: list[Entry], policy: Policy) -> tuple[list[int], dict[int, Stub]]:
    """When each message left, and the stubs of results."""
    window, places = Window(), {each: place for place, each in enumerate(said)}
    left, stubs = [len(said)] * len(said), {}
    for position, (change, cleared, _) in enumerate(fold(window, said, policy)):
        for each in cleared:
            places[each.because] = places[each.entry]
            stubs[places[each.entry]] = Stub(position, each.because.tokens)
        for each in change.evictions:
            left[places[each.entry]] = position
    return left, stubs


def left_by_the_rule(said: list[Entry], policy: Policy, pinned: Iterable[Entry] = ()) -> list[int]:
    """At which arrival each message left a window that begins with pinned messages. The model never
    saw an interrupted call: it left as it arrived.
    """
    window, places = Window(pinned), {each: place for place, each in enumerate(said)}
    left = dict.fromkeys(said, len(said))
    for position, (change, *_) in enumerate(fold(window, said, policy)):
        gone = said[position : position + 1] if change.ignored else ()
        left |= dict.fromkeys([*gone, *(each.entry for each in change.evictions)], position)
        unseen = [each.entry for each in change.evictions if each.reason is Reason.INTERRUPTED]
        left |= {entry: places[entry] for entry in unseen}
    return [left[each] for each in said]


@examples(120)
@given(histories, st.data(), oldest_first | st.builds(Halving, st.just(1)))
def test_every_limit_from_the_smallest_on_keeps_a_message_and_the_one_below_does_not(
    said, data, policy
):
    position = data.draw(st.sampled_from(range(len(said))))
    limits = range(1, policy.load(policy.total(said)) + 3)
    lefts = [left_by_the_rule(said, replace(policy, limit=limit)) for limit in limits]
    dropped = [
        limit for limit, left in zip(limits, lefts, strict=True) if left[position] < len(said)
    ]
    expected = None if limits[-1] in dropped else max(dropped, default=0) + 1
    assert smallest_limit(said, position, policy) == Keeping(expected)


def test_a_result_may_stay_where_its_call_left_before_it_arrived():
    said = entries((CALL, 10), (RESULT, 1), (UserMessage("thanks"), 1))
    ranges = Loads(said).limits_that_drop(1, TokenWindow(1, fixed_overhead=0)) or ()
    assert [limit for limits in ranges for limit in limits] == [1, 10, 11]
    assert smallest_limit(said, 1, TokenWindow(1, fixed_overhead=0)) == Keeping(12)


def test_a_rule_of_its_own_is_tried_on_a_grid_where_every_limit_would_take_too_long():
    said = entries(*((UserMessage(f"message {n}"), 20) for n in range(40)))
    exact = smallest_limit(said, 30, Halving(1), most_adds=10**9)
    coarse = smallest_limit(said, 30, Halving(1), most_adds=40 * 60)
    assert exact.tried_every == 1 < coarse.tried_every
    assert exact.limit <= coarse.limit <= exact.limit + coarse.tried_every
    assert smallest_limit(said, 30, Halving(1), most_adds=40) is None
