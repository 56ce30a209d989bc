"""Options of policies: what leaves beyond LangChain4j's rule, over random sequences."""

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
    SystemMessage,
    TokenWindow,
    TokenWindowChatMemory,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    policy_from_dict,
    policy_from_text,
)
from chatmemory.core.eviction import Reason, group_of
from chatmemory.core.messages import MessageType
from chatmemory.core.policies import Policy, PolicyOptions, TokenOptions, option_fields
from chatmemory.core.stored_policies import stored_policy
from chatmemory.core.transitions import admit, next_to_leave, refill, set_pinned, visible
from chatmemory.core.window import Entry, Window, total

from ..properties import examples

CALL = AiMessage(None, (ToolExecutionRequest("1", "find", "{}"),))
RESULT = ToolExecutionResultMessage("1", "find", "found")
USER_SAID = UserMessage("hello")
USER, RESULT_TYPE = MessageType.USER, MessageType.TOOL_EXECUTION_RESULT
messages = st.sampled_from(
    [UserMessage("hello"), UserMessage("hello"), AiMessage("hi"), CALL, RESULT, RESULT]
    + [SystemMessage(text) for text in ("brief", "kind")]
)
entries = st.builds(Entry.of, messages, st.integers(1, 9))
sequences = st.lists(entries, min_size=1, max_size=16)
options = {
    "always_keep_system_message_first": st.booleans(),
    "snap_to_user": st.booleans(),
    "oversized": st.sampled_from(["evict", "reject", "keep"]),
}
policies = st.one_of(
    st.builds(MessageWindow, st.integers(1, 6), **options),
    st.builds(TokenWindow, st.integers(1, 40), **options),
    st.builds(MessageWindow, st.integers(2, 8), low_water=st.just("0.5"), **options),
    st.builds(TokenWindow, st.integers(20, 40), low_water=st.just("0.29"), **options),
)
pins = st.lists(st.integers(0, 30), max_size=6)


def user(tokens: int = 10) -> Entry:
    return Entry.of(UserMessage("hello"), tokens)


def reply(tokens: int = 10) -> Entry:
    return Entry.of(AiMessage("hi"), tokens)


def call() -> Entry:
    return Entry.of(CALL, 10)


def result() -> Entry:
    return Entry.of(RESULT, 10)


def system(tokens: int = 10) -> Entry:
    return Entry.of(SystemMessage("Be brief."), tokens)


def added(window: Window, arrival: Entry, policy: Policy) -> list[Entry]:
    """Add to the window and return what left."""
    transition = admit(window, arrival, policy)
    transition.apply_to(window)
    return [eviction.entry for eviction in transition.evictions]


def pinned(*entries: Entry) -> Window:
    """A window whose first message is pinned."""
    window = Window(entries)
    set_pinned(window, entries[0], None).apply_to(window)
    return window


# The low mark


def test_a_full_window_is_trimmed_to_the_mark_in_one_step():
    window, policy = Window([user() for _ in range(10)]), MessageWindow(10, low_water=0.4)
    assert len(added(window, user(), policy)) == 7
    assert window.totals.count == 4
    assert [added(window, user(), policy) for _ in range(6)] == [[]] * 6


def test_the_mark_is_an_exact_share():
    assert MessageWindow(100, low_water=0.29).low_mark == 29
    assert MessageWindow(10**17 + 10, low_water="0.1").low_mark == 10**16 + 1
    assert MessageWindow(100, low_water=Decimal("0.290")) == MessageWindow(100, low_water=0.29)


def test_on_the_way_to_the_mark_the_newest_message_and_its_call_stay():
    oldest, asked, found = user(), call(), result()
    window, policy = Window([oldest, asked, found]), MessageWindow(3, low_water=0.5)
    assert added(window, result(), policy) == [oldest]
    added(window, user(), policy)
    assert [entry.type for entry in window] == [USER]


def test_reads_are_trimmed_to_the_mark_too():
    window = Window([user() for _ in range(10)])
    assert len(visible(window, MessageWindow(9, low_water=0.5))) == 4
    assert len(visible(window, MessageWindow(10, low_water=0.5))) == 10


@given(st.lists(st.integers(1, 9), min_size=1, max_size=60), st.integers(12, 60))
def test_between_two_evicting_steps_comes_the_space_above_the_mark(sizes, limit):
    window, policy = Window(), TokenWindow(limit, low_water="0.5")
    appended = 0
    had_room = False
    for size in sizes:
        left = added(window, user(size), policy)
        if left and had_room:
            assert appended + size >= limit - policy.low_mark
        if left:
            appended, had_room = 0, policy.load(*window.totals) <= policy.low_mark
        else:
            appended += size


def test_what_leaves_next_is_all_that_leaves_on_the_way_to_the_mark():
    window = Window([system(), *(user() for _ in range(6))])
    leaving = next_to_leave(window, window.totals, MessageWindow(10, low_water=0.7))
    assert [eviction.entry for eviction in leaving] == list(window)[1:5]


def test_a_message_without_tokens_leaves_on_the_way_to_the_mark_too():
    window = Window([user(0), user(20), user(5)])
    policy = TokenWindow(30, low_water=0.7, fixed_overhead=0)
    leaving = next_to_leave(window, window.totals, policy)
    assert [eviction.entry for eviction in leaving] == list(window)[:2]


def test_on_the_way_to_the_mark_all_results_of_the_newest_call_stay():
    """Above the limit the first one leaves, as its call is pinned."""
    entries = [replace(call(), pinned=True), result(), result(), result()]
    left = visible(Window(entries), MessageWindow(3, low_water=0.5))
    assert left == [entries[0], *entries[2:]]


# Whole turns


def test_after_a_trim_memory_begins_with_a_user_message():
    question, answer, again = user(), reply(), user()
    window, policy = Window([question, answer, again]), MessageWindow(3, snap_to_user=True)
    transition = admit(window, reply(), policy)
    assert [(e.entry, e.reason) for e in transition.evictions] == [
        (question, Reason.CAPACITY),
        (answer, Reason.TURN),
    ]


def test_without_another_user_message_nothing_more_leaves():
    window, policy = Window([user(), reply(), call()]), MessageWindow(3, snap_to_user=True)
    assert len(added(window, result(), policy)) == 1


def test_a_window_that_was_not_trimmed_may_begin_with_anything():
    window, policy = Window([reply(), user()]), MessageWindow(3, snap_to_user=True)
    assert added(window, reply(), policy) == []
    assert len(visible(window, policy)) == 3


def test_what_a_read_hides_leaves_at_the_next_add():
    entries = [user(), reply(), reply(), user()]
    window, policy = Window(entries), MessageWindow(3, snap_to_user=True)
    assert visible(window, policy) == entries[3:]
    assert added(window, user(), policy) == entries[:3]


# Oversized messages


def test_an_oversized_message_can_be_rejected():
    window, policy = Window([system(20), user()]), TokenWindow(50, oversized="reject")
    with pytest.raises(OversizedMessage) as error:
        admit(window, user(40), policy)
    assert "40 for the message + 20 for the system message + 3 for every request" in str(
        error.value
    )
    assert "63 of 50 tokens" in str(error.value)
    assert added(window, user(27), policy)


def test_an_oversized_message_can_be_kept():
    window, policy = Window([system(20), user(), user()]), TokenWindow(50, oversized="keep")
    huge = user(99)
    added(window, huge, policy)
    assert [entry.tokens for entry in window] == [20, 99]
    assert visible(window, policy) == list(window)
    assert added(window, user(5), policy) == [huge]


def test_a_kept_result_keeps_its_call_and_its_siblings():
    policy = TokenWindow(50, oversized="keep")
    window = Window([user(), call(), result()])
    added(window, Entry.of(RESULT, 99), policy)
    assert [entry.type for entry in window] == ["AI", *["TOOL_EXECUTION_RESULT"] * 2]


def test_a_kept_result_of_a_pinned_call_keeps_its_siblings():
    """The call was pinned when it had no results, or none but the first."""
    policy, first = TokenWindow(50, oversized="keep"), result()
    for entries in ([call()], [system(), call()]):
        window = Window([user(), *entries])
        set_pinned(window, entries[-1], None).apply_to(window)
        added(window, first, MessageWindow(9))
        left = added(window, Entry.of(RESULT, 99), policy)
        assert [entry.type for entry in left] == [USER]
        assert [entry.type for entry in window][-3:] == ["AI", *["TOOL_EXECUTION_RESULT"] * 2]
        assert visible(window, policy) == list(window)
        added(window, reply(), policy)
        assert [entry.pinned for entry in window][-2:] == [True, False]


@given(
    st.lists(st.tuples(st.sampled_from([USER_SAID, CALL, RESULT, RESULT]), st.integers(1, 30))),
    policies,
    pins,
)
@examples(300)
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


def test_a_list_with_an_oversized_message_is_rejected():
    with pytest.raises(OversizedMessage) as error:
        refill(Window(), [user(), user(99)], TokenWindow(50, oversized="reject"))
    assert str(error.value).startswith("message 2: the message is oversized")


def test_in_a_list_a_system_message_counts_beside_others_once_it_leads():
    policy, brief = TokenWindow(50, oversized="reject"), system(20)
    assert refill(Window(), [user(), brief, user(15)], policy).evictions == ()
    with pytest.raises(OversizedMessage, match="20 for the system message"):
        refill(Window(), [user(), brief, user(28)], policy)
    assert len(refill(Window(), [user(26), user(20), brief], policy).evictions) == 1


# Pins


def test_pinned_messages_are_passed_over():
    first, second = user(), user()
    window = pinned(first, second)
    assert added(window, user(), MessageWindow(2)) == [second]
    assert [entry.pinned for entry in window] == [True, False]


def test_a_pinned_result_stays_when_its_call_leaves():
    asked, found = call(), replace(result(), pinned=True)
    window = Window([asked, found, result(), user()])
    assert added(window, user(), MessageWindow(4)) == [asked]


def test_a_call_and_its_results_are_pinned_together():
    for position in range(3):
        window = Window([call(), result(), result(), user()])
        set_pinned(window, list(window)[position], None).apply_to(window)
        assert [entry.pinned for entry in window] == [True, True, True, False]


def test_a_message_that_fits_only_without_the_pins_is_refused():
    window = pinned(user(40), user(10))
    with pytest.raises(NoRoomBesidePins) as error:
        admit(window, user(30), TokenWindow(60))
    assert "30 for the message + 40 for what is pinned + 3 for every request = 73 of 60" in str(
        error.value
    )
    assert window.totals == (2, 50)


def test_the_sum_of_a_refusal_has_a_system_message_behind_others():
    answer, brief, question = reply(), system(), user()
    window = Window([answer, brief, question])
    set_pinned(window, question, None).apply_to(window)
    assert refusal(window, user(), MessageWindow(2)) == (
        "1 for the message + 1 for the system message + 1 for what is pinned = 3 of 2 messages"
    )


def test_the_sum_of_a_refusal_has_the_newest_message_that_is_kept():
    answer, question = reply(), user()
    window = Window([answer, question])
    set_pinned(window, answer, None).apply_to(window)
    policy = MessageWindow(2, always_keep_system_message_first=True, oversized="keep")
    assert refusal(window, system(), policy) == (
        "1 for the message + 1 for the newest message + 1 for what is pinned = 3 of 2 messages"
    )


def test_the_sum_of_a_refused_result_has_its_call_and_its_siblings():
    window = pinned(user(40), call(), result())
    assert refusal(window, Entry.of(RESULT, 30), TokenWindow(80)) == (
        "30 for the message + 20 for what it answers + 40 for what is pinned + 3 for every request"
        " = 93 of 80 tokens"
    )


def test_a_message_that_fits_nowhere_leaves_as_ever():
    window, huge = pinned(user(40), user(10)), user(90)
    assert added(window, huge, TokenWindow(60))[-1] == huge
    assert [entry.pinned for entry in window] == [True]


def test_unpinned_it_leaves_like_any_other():
    window = pinned(user(), user())
    set_pinned(window, next(iter(window)), None, pinned=False).apply_to(window)
    oldest = next(iter(window))
    assert added(window, user(), MessageWindow(2)) == [oldest]


# Whatever is added


@given(sequences, policies, pins)
@examples(300)
def test_the_bound_holds_or_only_what_cannot_leave_remains(sequence, policy, pins):
    window = Window()
    for n, arrival in enumerate(sequence):
        before = list(window)
        held = [entry for entry in before if entry.pinned]
        try:
            transition = admit(window, arrival, policy)
        except (OversizedMessage, NoRoomBesidePins) as error:
            assert list(window) == before
            check_sum(str(error))
            continue
        transition.apply_to(window)
        after = list(window)
        assert [entry for entry in after if entry.pinned] == held
        assert window.totals == transition.after == total(window)
        if transition.ignored:
            continue
        assert not policy.is_exceeded_by(window.totals) or stuck(after, policy)
        assert not transition.evictions or not orphan_leads(before, arrival, after)
        assert visible(window, policy) == after
        if n in pins and after and after[n % len(after)].type is not MessageType.SYSTEM:
            set_pinned(window, after[n % len(after)], policy).apply_to(window)


@given(sequences, policies, pins, entries)
@examples(300)
def test_the_sum_of_a_refusal_is_above_the_limit(sequence, policy, pins, arrival):
    window = Window()
    for entry in sequence:
        admit(window, entry, MessageWindow(99)).apply_to(window)
    for n in pins:
        chosen = list(window)[n % len(list(window))]
        if chosen.type is not MessageType.SYSTEM:
            set_pinned(window, chosen, None).apply_to(window)
    try:
        admit(window, arrival, policy)
    except (NoRoomBesidePins, OversizedMessage) as error:
        check_sum(str(error))


def check_sum(words: str) -> None:
    """The parts of a refusal add up to more than the limit."""
    parts, needed, limit = re.search(r": (.+) = ([\d,]+) of ([\d,]+)", words).groups()
    numbers = [int(part.split()[0].replace(",", "")) for part in parts.split(" + ")]
    assert sum(numbers) == int(needed.replace(",", "")) > int(limit.replace(",", ""))


def refusal(window: Window, arrival: Entry, policy: Policy) -> str:
    """Return the sum with which a message is refused."""
    with pytest.raises(NoRoomBesidePins) as error:
        admit(window, arrival, policy)
    check_sum(str(error.value))
    return str(error.value).partition(": ")[2].partition(". ")[0]


def stuck(window: list[Entry], policy: Policy) -> bool:
    """Whether only a system message, pins and a kept group remain."""
    free = [entry for entry in window if not entry.pinned]
    if free and free[0].type is MessageType.SYSTEM:
        free = free[1:]
    if not policy.keeps_newest:
        return not free
    return len(free) <= 1 or (free[0].has_calls and {e.type for e in free[1:]} == {RESULT_TYPE})


def orphan_leads(before: list[Entry], arrival: Entry, after: list[Entry]) -> bool:
    """Whether a result leads memory whose call stood directly before it and left."""
    free = [entry for entry in after if not entry.pinned and entry.type is not MessageType.SYSTEM]
    if not free or free[0].type is not RESULT_TYPE or free[0] == arrival:
        return False
    position = before.index(free[0])
    first = position
    while first and before[first].type is RESULT_TYPE:
        first -= 1
    return before[first].has_calls and before[first] not in after


@given(sequences, policies)
def test_a_trim_that_snaps_leaves_a_user_message_first(sequence, policy):
    window, policy = Window(), replace(policy, snap_to_user=True, oversized="evict")
    for arrival in sequence:
        transition = admit(window, arrival, policy)
        transition.apply_to(window)
        rest = [e for e in window if e.type is not MessageType.SYSTEM or e != next(iter(window))]
        if any(each.reason is Reason.CAPACITY for each in transition.evictions):
            assert not rest or rest[0].type is USER or USER not in [each.type for each in rest]


@given(sequences, st.integers(1, 12), st.booleans())
def test_without_options_nothing_changes(sequence, limit, first):
    plain = MessageWindow(limit, always_keep_system_message_first=first)
    neutral = replace(plain, low_water="1.0", oversized="evict")
    assert neutral == plain
    assert neutral.options == ({"always_keep_system_message_first": True} if first else {})


# How options are written


def test_options_are_written_in_json_and_on_a_command_line():
    policy = TokenWindow(4_000, low_water="0.6", snap_to_user=True, oversized="keep")
    text = "token_window:4000,low_water=0.6,snap_to_user=true,oversized=keep"
    assert policy_from_text(text) == policy == policy_from_dict(policy.to_dict())
    assert policy.to_dict()["low_water"] == "0.6"
    assert policy.options == {"low_water": "0.6", "snap_to_user": True, "oversized": "keep"}
    assert policy_from_dict({"kind": "token_window", "max_tokens": 9, "low_water": 1}).options == {}


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
        ("token_window:10,low_water=0.3", "the mark would be 3 tokens"),
        ("token_window:10,low_water=0.1", "the mark would be 1 token,"),
        ("message_window:" + 20 * "9", "the limit of message_window is too large: at most 18"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(text, why):
    with pytest.raises(InvalidValue) as error:
        policy_from_text(text)
    assert why in str(error.value)


@pytest.mark.parametrize(
    "name", ["meters_only", "snap_to_user", "always_keep_system_message_first"]
)
@pytest.mark.parametrize("value", ["no", "false", "true", 1, []])
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
