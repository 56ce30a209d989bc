"""Options of policies: evictions beyond LangChain4j's rule, over random sequences."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal
from typing import get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import (
    AiMessage,
    InvalidValue,
    MessageWindow,
    MessageWindowChatMemory,
    NoRoomBesidePins,
    OversizedMessage,
    Reason,
    SystemMessage,
    TokenWindow,
    TokenWindowChatMemory,
    TurnWindow,
    UserMessage,
    policy_from_dict,
    policy_from_text,
)
from chatmemory.messages.message import MessageType
from chatmemory.windows.eviction import group_of
from chatmemory.windows.policies import Policy, PolicyOptions, TokenOptions, option_fields
from chatmemory.windows.stored_policies import stored_policy
from chatmemory.windows.transitions import admit, next_to_leave, refill, set_pinned, visible
from chatmemory.windows.window import Entry, Window
from tests.messages.letters import CALL, RESULT, entries, entry, story

from ..properties import examples

USER_SAID = UserMessage("hello")
USER, RESULT_TYPE = MessageType.USER, MessageType.TOOL_EXECUTION_RESULT
messages = st.sampled_from(
    [USER_SAID, USER_SAID, AiMessage("hi"), CALL, RESULT, RESULT]
    + [SystemMessage(text) for text in ("brief", "kind")]
)
said = st.builds(Entry.of, messages, st.integers(1, 9))
sequences = st.lists(said, min_size=1, max_size=16)
options = {
    "always_keep_system_message_first": st.booleans(),
    "snap_to_user": st.booleans(),
    "oversized": st.sampled_from(["evict", "reject", "keep"]),
    "free_system": st.booleans(),
}
policies = st.one_of(
    st.builds(TurnWindow, st.integers(1, 4), **options),
    st.builds(TurnWindow, st.integers(2, 6), low_water=st.just("0.5"), **options),
    st.builds(MessageWindow, st.integers(1, 6), **options),
    st.builds(TokenWindow, st.integers(1, 40), **options),
    st.builds(MessageWindow, st.integers(2, 8), low_water=st.just("0.5"), **options),
    st.builds(TokenWindow, st.integers(20, 40), low_water=st.just("0.29"), **options),
)
pins = st.lists(st.integers(0, 30), max_size=6)

SNAPS = MessageWindow(3, snap_to_user=True)
KEEPS = TokenWindow(50, oversized="keep")
RULES = {
    "a full window is trimmed to the low mark": (
        ("aaaaaaaaaa", "b", MessageWindow(10, low_water=0.4)),
        "ccccccc.... aaab",
    ),
    "but for the newest message, its call and its siblings": (
        ("aCR", "R", MessageWindow(3, low_water=0.5)),
        "c... CRR",
    ),
    "a trim goes on to a user message": (("aAb", "A", SNAPS), "ct.. bA"),
    "unless there is no other": (("aAC", "R", SNAPS), "c... ACR"),
    "the oldest turn leaves as a whole": (("SAbACRb", "b", TurnWindow(2)), ".ccttt.. Sbb"),
    "in a turn nothing leaves": (("bA", "A", TurnWindow(1)), "... bAA"),
    "without a trim memory may begin with anything": (("Ab", "A", SNAPS), "... AbA"),
    "an oversized message can be kept": (("Sab", "c", KEEPS, 99), ".cc. Sc"),
}


@pytest.mark.parametrize("rule", RULES)
def test_what_leaves_with_an_option(rule):
    given, told = RULES[rule]
    assert story(*given) == told


def evictions_of_add(window: Window, arrival: Entry, policy: Policy) -> list[Entry]:
    """Add to the window and return the evictions."""
    transition = admit(window, arrival, policy)
    transition.apply_to(window)
    return [eviction.entry for eviction in transition.evictions]


def window_with_pin(letters: str, tokens: int = 10, place: int = 0) -> Window:
    """A window in which one message is pinned."""
    window = Window(entries(letters, tokens))
    set_pinned(window, list(window)[place], None).apply_to(window)
    return window


# The low mark


def test_the_mark_is_an_exact_share():
    assert MessageWindow(100, low_water=0.29).low_mark == 29
    assert MessageWindow(10**17 + 10, low_water="0.1").low_mark == 10**16 + 1
    assert MessageWindow(100, low_water=Decimal("0.290")) == MessageWindow(100, low_water=0.29)


def test_messages_hidden_by_a_read_leave_at_the_next_add():
    for letters, policy, seen in (
        ("aaaaaaaaaa", MessageWindow(9, low_water=0.5), 4),
        ("aaaaaaaaaa", MessageWindow(10, low_water=0.5), 10),
        ("aAAb", SNAPS, 1),
    ):
        window = Window(entries(letters))
        hidden = list(window)[:-seen]
        assert visible(window, policy) == list(window)[-seen:]
        assert evictions_of_add(window, entry("b"), policy)[: len(hidden)] == hidden


@given(st.lists(st.integers(1, 9), min_size=1, max_size=60), st.integers(12, 60))
def test_between_two_evicting_steps_comes_the_space_above_the_mark(sizes, limit):
    window, policy = Window(), TokenWindow(limit, low_water="0.5")
    appended = 0
    had_room = False
    for size in sizes:
        left = evictions_of_add(window, entry("a", size), policy)
        if left and had_room:
            assert appended + size >= limit - policy.low_mark
        if left:
            appended, had_room = 0, policy.load(window.totals) <= policy.low_mark
        else:
            appended += size


def test_all_messages_down_to_the_mark_leave_next():
    window = Window(entries("Saaaaaa"))
    policy: Policy = MessageWindow(10, low_water=0.7)
    leaving = next_to_leave(window, window.measure_with(policy), policy)
    assert [eviction.entry for eviction in leaving] == list(window)[1:5]
    window = Window([entry("a", 0), entry("b", 20), entry("c", 5)])  # also one without tokens
    policy = TokenWindow(30, low_water=0.7, fixed_overhead=0)
    leaving = next_to_leave(window, window.measure_with(policy), policy)
    assert [eviction.entry for eviction in leaving] == list(window)[:2]


def test_on_the_way_to_the_mark_all_results_of_the_newest_call_stay():
    """Above the limit the first one leaves, as its call is pinned."""
    call, *results = entries("CRRR")
    call = replace(call, pinned=True)
    left = visible(Window([call, *results]), MessageWindow(3, low_water=0.5))
    assert left == [call, *results[1:]]


# Oversized messages


def test_an_oversized_message_can_be_rejected():
    policy = TokenWindow(50, oversized="reject")
    window = Window([entry("S", 20), entry("a")])
    with pytest.raises(OversizedMessage) as error:
        admit(window, entry("b", 40), policy)
    told = "40 for the message + 20 for the system message + 3 for every request = 63 of 50 tokens"
    assert told in str(error.value)
    assert evictions_of_add(window, entry("b", 27), policy)


def test_in_a_list_a_system_message_counts_beside_others_once_it_leads():
    policy, a, brief = TokenWindow(50, oversized="reject"), entry("a"), entry("S", 20)
    assert refill(Window(), [a, brief, entry("b", 15)], policy).evictions == ()
    for oversized in (
        [a, entry("b", 99)],
        [a, brief, entry("b", 28)],
    ):
        number = len(oversized)
        with pytest.raises(OversizedMessage, match=f"^message {number}: the message is oversized"):
            refill(Window(), oversized, policy)
    assert len(refill(Window(), [entry("a", 26), entry("b", 20), brief], policy).evictions) == 1


def test_a_kept_message_leaves_at_the_next_add():
    window, huge = Window(entries("Sab")), entry("c", 99)
    evictions_of_add(window, huge, KEEPS)
    assert visible(window, KEEPS) == list(window)
    assert evictions_of_add(window, entry("b", 5), KEEPS) == [huge]


@given(
    st.lists(st.tuples(st.sampled_from([USER_SAID, CALL, RESULT, RESULT]), st.integers(1, 30))),
    policies,
    pins,
)
@examples(200)
def test_a_kept_result_never_loses_its_call_or_a_sibling(sequence, policy, pins):
    window, policy = Window(), replace(policy, oversized="keep")
    for n, (message, tokens) in enumerate(sequence):
        arrival = Entry.of(message, tokens)
        before = [*window, arrival]
        try:
            admit(window, arrival, policy).apply_to(window)
        except NoRoomBesidePins:
            continue
        if arrival.type is RESULT_TYPE:
            assert set(group_of(before, len(before) - 1)) <= set(window)
        if n in pins or n - 7 in pins:
            set_pinned(window, list(window)[-1], policy).apply_to(window)


# Pins


def test_pinned_messages_are_passed_over_until_they_are_unpinned():
    window = window_with_pin("ab")
    assert [
        each.message.single_text()
        for each in evictions_of_add(window, entry("c"), MessageWindow(2))
    ] == ["b"]
    assert [each.pinned for each in window] == [True, False]
    set_pinned(window, next(iter(window)), None, pinned=False).apply_to(window)
    oldest = next(iter(window))
    assert evictions_of_add(window, entry("d"), MessageWindow(2)) == [oldest]


def test_a_call_and_its_results_are_pinned_together():
    for place in range(3):
        assert [each.pinned for each in window_with_pin("CRRa", place=place)] == [
            True,
            True,
            True,
            False,
        ]
    call, *others = entries("CRRa")  # one that was pinned alone stays when its call leaves
    window = Window([call, replace(others[0], pinned=True), *others[1:]])
    assert evictions_of_add(window, entry("b"), MessageWindow(4)) == [call]


FIRST = {"always_keep_system_message_first": True}


@pytest.mark.parametrize(
    ("window", "arrival", "policy", "told"),
    [
        (
            window_with_pin("ab", 20),
            entry("c", 30),
            TokenWindow(50),
            "30 for the message + 20 for what is pinned + 3 for every request = 53 of 50 tokens",
        ),
        (
            window_with_pin("ASb", place=2),  # the system message is behind others
            entry("c"),
            MessageWindow(2),
            "1 for the message + 1 for the system message + 1 for what is pinned = 3 of 2 messages",
        ),
        (
            window_with_pin("Ab"),  # the newest message is kept
            entry("S"),
            MessageWindow(2, oversized="keep", **FIRST),
            "1 for the message + 1 for the newest message + 1 for what is pinned = 3 of 2 messages",
        ),
        (
            window_with_pin("aCR", 20),  # its call and its siblings would stay
            entry("R", 30),
            TokenWindow(80),
            (
                "30 for the message + 40 for what it answers + 20 for what is pinned"
                " + 3 for every request = 93 of 80 tokens"
            ),
        ),
    ],
)
def test_a_message_that_fits_only_without_the_pins_is_refused_with_the_sum(
    window, arrival, policy, told
):
    before = list(window)
    with pytest.raises(NoRoomBesidePins) as error:
        admit(window, arrival, policy)
    assert f": {told}. Unpin a message" in str(error.value)
    assert list(window) == before


# Whatever is added


@given(sequences, policies, pins)
@examples(300)
def test_the_bound_holds_or_only_what_cannot_leave_remains(sequence, policy, pins):
    window = Window()
    for n, arrival in enumerate(sequence):
        before = list(window)
        held = [each for each in before if each.pinned]
        try:
            transition = admit(window, arrival, policy)
        except (OversizedMessage, NoRoomBesidePins) as error:
            assert list(window) == before
            check_sum(str(error))
            continue
        as_new = admit(Window(before), arrival, policy)
        assert (as_new.evictions, as_new.after) == (transition.evictions, transition.after)
        transition.apply_to(window)
        after = list(window)
        assert [each for each in after if each.pinned] == held
        assert window.totals == transition.after == policy.total(window)
        if transition.ignored:
            continue
        assert not policy.is_exceeded_by(window.totals) or stuck(after, policy)
        assert not transition.evictions or not orphan_leads(before, arrival, after)
        assert visible(window, policy) == after
        if any(each.reason is Reason.CAPACITY for each in transition.evictions):
            assert not policy.snap_to_user or begins_a_turn(after, policy)
        if n in pins and after and after[n % len(after)].type is not MessageType.SYSTEM:
            set_pinned(window, after[n % len(after)], policy).apply_to(window)


def check_sum(words: str) -> None:
    """The parts of a refusal add up to more than the limit."""
    parts, needed, limit = re.search(r": (.+) = ([\d,]+) of ([\d,]+)", words).groups()
    numbers = [int(part.split()[0].replace(",", "")) for part in parts.split(" + ")]
    assert sum(numbers) == int(needed.replace(",", "")) > int(limit.replace(",", ""))


def begins_a_turn(window: list[Entry], policy: Policy) -> bool:
    """Whether the first message that can leave is a user's, or no message of a user can."""
    free = [each for each in window if not each.pinned]
    rest = free[1:] if free and free[0].type is MessageType.SYSTEM else free
    return not rest or rest[0].type is USER or USER not in [each.type for each in rest]


def stuck(window: list[Entry], policy: Policy) -> bool:
    """Whether only a system message, pins and a kept group remain."""
    free = [each for each in window if not each.pinned]
    if free and free[0].type is MessageType.SYSTEM:
        free = free[1:]
    if not policy.keeps_newest:
        return not free
    return len(free) <= 1 or (free[0].has_calls and {e.type for e in free[1:]} == {RESULT_TYPE})


def orphan_leads(before: list[Entry], arrival: Entry, after: list[Entry]) -> bool:
    """Whether memory begins with a result whose call was directly before it and left."""
    free = [each for each in after if not each.pinned and each.type is not MessageType.SYSTEM]
    if not free or free[0].type is not RESULT_TYPE or free[0] == arrival:
        return False
    first = before.index(free[0])
    while first and before[first].type is RESULT_TYPE:
        first -= 1
    return before[first].has_calls and before[first] not in after


# How options are written


def test_options_are_written_in_json_and_on_a_command_line():
    policy = TokenWindow(4_000, low_water="0.6", snap_to_user=True, oversized="keep")
    text = "token_window:4000,low_water=0.6,snap_to_user=true,oversized=keep"
    assert policy_from_text(text) == policy == policy_from_dict(policy.to_dict())
    assert policy.to_dict()["low_water"] == "0.6"
    assert policy.options == {"low_water": "0.6", "snap_to_user": True, "oversized": "keep"}
    assert policy_from_dict({"kind": "token_window", "max_tokens": 9, "low_water": 1}).options == {}
    plain = MessageWindow(9, low_water="1.0", oversized="evict", **FIRST)
    assert (plain, plain.options) == (MessageWindow(9, **FIRST), FIRST)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("message_window:20,low_water=0", "low_water must be a number above 0 and at most 1"),
        ("message_window:20,low_water=1.5", "at most 1"),
        ("message_window:20,low_water=nan", "at most 1"),
        ("message_window:20,low_water=half", "at most 1"),
        ("message_window:20,low_water=0.1234567891", "up to 9 decimals"),
        ("message_window:20,snap_to_user=yes", "snap_to_user must be true or false"),
        ("message_window:20,oversized=explode", "oversized must be one of evict, reject, keep"),
        ("message_window:20,colour=red", "message_window has no option 'colour'"),
        ("message_window:3,low_water=0.2", "max_messages 3 and low_water 0.2 do not go together"),
        ("token_window:10,low_water=0.3", "memory would be trimmed to 3 tokens"),
        ("token_window:10,low_water=0.1", "memory would be trimmed to 1 token,"),
        ("message_window:" + 20 * "9", "the limit of message_window is too large: at most 18"),
    ],
)
def test_invalid_fields_are_refused_by_name(text, why):
    with pytest.raises(InvalidValue) as error:
        policy_from_text(text)
    assert why in str(error.value)


@pytest.mark.parametrize(
    "name", ["meters_only", "snap_to_user", "always_keep_system_message_first"]
)
@pytest.mark.parametrize("value", ["no", "true", 1, []])
def test_a_switch_is_no_text_and_no_number(name, value):
    for make in (MessageWindowChatMemory, TokenWindowChatMemory, MessageWindow):
        with pytest.raises(InvalidValue, match=f"{name} must be true or false, but is: "):
            make(*("m", 20)[make is MessageWindow :], **{name: value})


def test_a_switch_that_an_earlier_version_stored_as_text_acts_as_it_did():
    stored = stored_policy("message_window", 2, "gpt-4o", {"meters_only": "no"})
    assert stored == MessageWindow(2, meters_only=True)
    assert stored_policy("message_window", 2, "gpt-4o", {"snap_to_user": None}) == MessageWindow(2)


def test_memories_take_options():
    memory = MessageWindowChatMemory("a", 4, low_water=0.5, snap_to_user=True)
    memory.add(*[UserMessage(str(n)) for n in range(5)])
    assert memory.messages() == [UserMessage("3"), UserMessage("4")]
    with pytest.raises(TypeError, match="colour"):
        MessageWindowChatMemory("a", 4, colour="red")


@pytest.mark.parametrize(
    ("kind", "types"), [(MessageWindow, PolicyOptions), (TokenWindow, TokenOptions)]
)
def test_every_option_of_a_policy_has_a_type_for_callers(kind, types):
    assert get_type_hints(types).keys() == {*option_fields(kind), "estimator"}
