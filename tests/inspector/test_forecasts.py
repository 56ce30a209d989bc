"""Forecasts of the next add and of a draft come true, with and without pins."""

from __future__ import annotations

import re

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from chatmemory import (
    AiMessage,
    ChatMemoryError,
    MessageWindow,
    NoRoomBesidePins,
    OversizedMessage,
    SystemMessage,
    TokenWindow,
    TurnWindow,
    UserMessage,
    services,
)
from chatmemory.explain.captions import Caption
from chatmemory.reading import windows
from chatmemory.reading.simulation import Simulation, simulate
from chatmemory.windows.policies import Policy
from inspector.conversation import forecasts
from inspector.conversation.forecasts import change_of_policy, over_limit
from inspector.conversation.pins import pin_preview, pinning

from ..conversations import create_and_add, numbered
from ..explain.test_receipts import changes, check_sum, conversation, make, messages, policies
from ..properties import examples
from .markup import words

OVER = re.compile(r"[Mm]emory would be ([\d,]+) (?:messages?|tokens?|turns?) over the limit")
REFUSED = "no message fits"
WOULD_REFUSE = "No message would fit"


@pytest.fixture
def pinned(db) -> str:
    """Two pinned messages among six, under a limit that became as many."""
    create_and_add("m", MessageWindow(9), numbered(6))
    for seq in (2, 3):
        services.pin("m", seq)
    services.change("m", policy=MessageWindow(2))
    return "m"


def test_nothing_leaves_at_an_add_for_which_pins_leave_no_room(pinned):
    assert over_limit(windows.outline(pinned)) == (
        "4 messages over the limit are hidden; no message fits beside the pinned messages: "
        "unpin a message or raise the limit"
    )
    outlook = simulate(pinned, [], MessageWindow(1)).outlook()
    assert change_of_policy(outlook) == (
        "Nothing more would leave. #1, #4, #5 and #6 are hidden already. "
        "No message would fit beside the pinned messages: unpin a message or choose a higher limit."
    )
    assert change_of_policy(simulate(pinned, [], MessageWindow(3)).outlook()) == (
        "1 message comes back: #6. #1, #4 and #5 are hidden already and leave at the next add."
    )
    services.change(pinned, policy=MessageWindow(9))
    assert forecast(simulate(pinned, [], MessageWindow(2))).summary == (
        "No room. 4 messages would be hidden: #1, #4, #5 and #6. "
        "No message would fit beside the pinned messages: unpin a message or choose a higher limit."
    )


def test_where_turns_are_pinned_no_other_can_begin(pinned, operator_client):
    services.clear_messages(pinned)
    services.change(pinned, policy=TurnWindow(1))
    services.add(pinned, [UserMessage("Where is A-1182?"), AiMessage("In Porto.")])
    services.pin(pinned, 7)
    window = windows.outline(pinned)
    assert (window.next_to_leave, over_limit(window)) == ((), "")
    assert ("No turn can begin beside the pinned turns: unpin a turn or raise the limit.") in words(
        operator_client.get(f"/c/{pinned}/").content
    )
    assert "Free in memory: 0 turns." in words(
        operator_client.get(f"/c/{pinned}/?open=sums").content
    )
    pin = pinning(pin_preview(window, 7))
    assert pin == "Without this pin, nothing would be pinned. #7 and #8 would leave next."


def test_nothing_leaves_at_an_add_that_is_rejected_in_any_case(db):
    create_and_add(
        "m",
        MessageWindow(9, oversized="reject"),
        [SystemMessage("Be brief."), UserMessage("one"), UserMessage("two")],
    )
    tried = MessageWindow(1, oversized="reject")
    assert forecast(simulate("m", [], tried)).summary == (
        "No room. 2 messages would be hidden: #2 and #3. "
        "No message would fit, and the policy rejects what does not fit: choose a higher limit."
    )
    services.change("m", policy=tried)
    assert over_limit(windows.outline("m")) == (
        "2 messages over the limit are hidden; "
        "no message fits, and the policy rejects what does not fit: raise the limit"
    )
    with pytest.raises(OversizedMessage):
        services.add("m", [UserMessage("three")])
    services.change("m", policy=MessageWindow(1))
    assert over_limit(windows.outline("m")) == (
        "2 messages over the limit will leave at the next add"
    )


def test_a_draft_that_is_kept_over_the_limit_does_not_fit(db):
    create_and_add("m", TokenWindow(40, oversized="keep"), [UserMessage("word " * 100)])
    services.change("m", policy=TokenWindow(40, meters_only=True))
    simulation = simulate("m", [UserMessage("hello")])
    over = simulation.policy.load(simulation.totals) - 40
    assert forecast(simulation).summary == (
        f"Over the limit. Memory would be {over} tokens over the limit. Nothing would leave."
    )
    assert over_limit(windows.outline("m")) == (
        "the policy only measures memory: the client decides what leaves"
    )


def forecast(simulation: Simulation) -> Caption:
    return forecasts.forecast(simulation.changes, simulation.outlook(), simulation.policy)


pins = st.lists(st.tuples(st.just("pin"), st.integers(1, 6)), min_size=1, max_size=4)
beside_pins = st.builds(
    lambda said, pinned, policy: [("add", said), *pinned, ("policy", policy)],
    st.lists(messages, min_size=3, max_size=6),
    pins,
    policies,
)
wide = st.one_of(st.just(MessageWindow(9)), st.just(TokenWindow(400)))


anything = st.tuples(policies, st.lists(changes, min_size=2, max_size=8))


@given(
    made=st.tuples(wide, beside_pins) | anything | anything,
    drafts=st.lists(messages, max_size=2),
    other=policies,
)
@examples(70)
def test_forecasts_come_true(db, made, drafts, other):
    with conversation(*made):
        check_next_add()
        check_draft(drafts, None)
        check_draft(drafts, other)
        simulation = simulate("m", [], other)
        before = {row.seq for row in windows.outline("m").rows}
        make("m", "policy", other)
        check_change(simulation, before)


def outcome_of_add() -> tuple[frozenset[int], type[ChatMemoryError] | None, bool]:
    """Return the evictions of adding the smallest message, the reason why it is refused, and
    whether it is oversized and refused or leaves at once.
    """
    try:
        (change,) = simulate("m", [UserMessage("a")]).changes
    except (NoRoomBesidePins, OversizedMessage) as error:
        return frozenset(), type(error), isinstance(error, OversizedMessage)
    return frozenset(each.seq for each in change.evicted), None, bool(change.misfit)


def check_next_add() -> None:
    window = windows.outline("m")
    words = over_limit(window)
    if not words:
        return
    left, refused, is_oversized = outcome_of_add()
    if window.policy.meters_only:
        assert not left
    elif REFUSED in words:
        event("refused")
        assert refused is NoRoomBesidePins or is_oversized
    elif "will leave at the next add" in words:
        event("leaves")
        assert left.issuperset(row.seq for row in window.over_limit) or is_tight(refused)


def is_tight(refused: type[ChatMemoryError] | None) -> bool:
    """Whether a message was refused though there is room for a smaller one, in tokens."""
    window = windows.outline("m")
    has_room = window.room_without_pins(window.policy) >= 1
    return refused is not None and has_room and window.policy.unit == "tokens"


def check_draft(drafts: list, other: Policy | None) -> None:
    try:
        simulation = simulate("m", drafts, other)
    except (NoRoomBesidePins, OversizedMessage):
        return
    policy, told = simulation.policy, forecast(simulation)
    over = policy.load(simulation.totals) - policy.limit
    event(told.event)
    assert (told.event == "Over the limit") <= (over > 0)
    assert (told.event == "Fits") <= (over <= 0)
    if said := OVER.search(told.summary):
        assert int(said[1].replace(",", "")) == over
    assert bool(said) == (over > 0 and told.event in ("Over the limit", "Would evict"))


def check_change(simulation: Simulation, before: set[int]) -> None:
    outlook, window = simulation.outlook(), windows.outline("m")
    words = change_of_policy(outlook)
    now = {row.seq for row in window.rows}
    assert (set(outlook.leaving), set(outlook.returning)) == (before - now, now - before)
    left, refused, is_oversized = outcome_of_add()
    if WOULD_REFUSE in words:
        event("would refuse")
        assert refused is NoRoomBesidePins or is_oversized
    elif "at the next add" in words:
        assert left.issuperset(row.seq for row in window.over_limit) or is_tight(refused)
    check_trim(simulation, {row.seq for row in window.over_limit})


def check_trim(simulation: Simulation, hidden: set[int]) -> None:
    """The limit hides exactly the messages that it would evict, and its arithmetic adds up."""
    trim = simulation.trim
    if trim is None:
        assert not hidden or simulation.outlook().no_room
        return
    event("trims")
    assert {each.seq for each in trim.evicted} == hidden
    check_sum(trim)
