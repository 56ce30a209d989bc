"""Receipts add up, and their causes are the core's, under any changes of a window."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from operator import attrgetter

import pytest
from django.db import transaction
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import (
    AiMessage,
    MessageNotFound,
    MessageWindow,
    NoRoomBesidePins,
    NotPinnable,
    OversizedMessage,
    PolicyRequired,
    Reason,
    SystemMessage,
    TokenWindow,
    ToolExecutionResultMessage,
    TurnWindow,
    UserMessage,
    services,
)
from chatmemory.explain import captions, receipts
from chatmemory.explain.reasons import Explanation, why_left
from chatmemory.explain.receipts import ReceiptLine
from chatmemory.explain.wording import in_unit
from chatmemory.ledger import protocol
from chatmemory.ledger.verification import verify
from chatmemory.models import Memory
from chatmemory.reading import conversations, windows
from chatmemory.reading.simulation import simulate
from chatmemory.reading.steps import step, step_samples
from chatmemory.services import ChangeResult
from inspector.conversation.page import ConversationPage
from inspector.conversation.state import conversation_state
from inspector.shell.state import ConversationQuery

from ..conversations import create_and_add, numbered, users
from ..messages.letters import CALL
from ..properties import examples

texts = st.integers(1, 40).map(lambda n: "word " * n)
messages = st.one_of(
    texts.map(UserMessage),
    texts.map(AiMessage),
    texts.map(SystemMessage),
    st.just(CALL),
    texts.map(lambda text: ToolExecutionResultMessage("1", "find", text)),
)
options = {
    "always_keep_system_message_first": st.booleans(),
    "snap_to_user": st.booleans(),
    "meters_only": st.sampled_from([False, False, False, True]),
    "oversized": st.sampled_from(["evict", "evict", "keep", "reject"]),
    "free_system": st.booleans(),
}
policies = st.one_of(
    st.builds(TurnWindow, st.integers(1, 3), **options),
    st.builds(MessageWindow, st.integers(1, 6), **options),
    st.builds(
        MessageWindow, st.integers(3, 9), low_water=st.sampled_from(["0.4", "0.7"]), **options
    ),
    st.builds(TokenWindow, st.integers(1, 4), **options),
    st.builds(TokenWindow, st.integers(1, 120), **options),
    st.builds(TokenWindow, st.integers(20, 120), low_water=st.just(0.7), **options),
)
changes = st.one_of(
    st.tuples(st.just("add"), st.lists(messages, min_size=1, max_size=4)),
    st.tuples(st.just("set"), st.lists(messages, max_size=6)),
    st.tuples(st.just("update"), st.lists(messages, max_size=6)),
    st.tuples(st.just("policy"), policies),
    st.tuples(st.just("clear"), st.none()),
    st.tuples(st.sampled_from(["pin", "pin", "unpin"]), st.integers(1, 12)),
)
REFUSALS = (OversizedMessage, NoRoomBesidePins, NotPinnable, MessageNotFound, PolicyRequired)


def make(memory_id: str, kind: str, value: object) -> list[ChangeResult]:
    """Make a change; one that is refused changes nothing."""
    version = conversations.memory(memory_id).version
    try:
        with transaction.atomic():
            return make_change(memory_id, kind, value)
    except REFUSALS:
        assert conversations.memory(memory_id).version == version
        return []


def make_change(memory_id: str, kind: str, value: object) -> list[ChangeResult]:
    match kind:
        case "add":
            return services.add(memory_id, value)
        case "set":
            return [services.set_messages(memory_id, value)]
        case "update":
            return [protocol.update_messages(memory_id, value)]
        case "policy":
            services.change(memory_id, policy=value)
            return []
        case "pin" | "unpin":
            made = (
                services.pin(memory_id, value)
                if kind == "pin"
                else services.unpin(memory_id, value)
            )
            return [made] if made else []
    return [services.clear_messages(memory_id)]


@contextmanager
def conversation(policy, sequence) -> Iterator[list[ChangeResult]]:
    """Make the conversation "m" by these changes, and undo it at the end of the block."""
    with transaction.atomic():
        services.create("m", policy)
        yield [result for kind, value in sequence for result in make("m", kind, value)]
        transaction.set_rollback(True)


def stored_changes(memory_id: str) -> list[ChangeResult]:
    steps = range(1, conversations.memory(memory_id).last_step + 1)
    return [step(memory_id, n).change for n in steps]


@given(policy=policies, sequence=st.lists(changes, max_size=8))
@examples(60)
def test_whatever_happens_receipts_add_up(db, policy, sequence):
    with conversation(policy, sequence) as made:
        for result in made:
            if result.step is not None:
                assert_equal(step("m", result.step).change, result)
        for change in stored_changes("m"):
            check_sum(change)
            for message in change.evicted:
                check_cause(change, why_left(change, message.seq), message)
        assert verify("m") is None


def assert_equal(stored: ChangeResult, made: ChangeResult) -> None:
    """The change that is read back equals the returned one; evictions are ordered by rank."""
    assert replace(stored, evicted=()) == replace(made, evicted=())
    by_seq = attrgetter("seq", "reason")
    assert sorted(stored.evicted, key=by_seq) == sorted(made.evicted, key=by_seq)
    assert facts_of(stored) == facts_of(made)


def facts_of(change: ChangeResult) -> list[object]:
    """Return what equal entries, which have the same key, may differ in."""
    return [
        sorted((each.seq, each.type, each.has_calls, each.tokens) for each in entries)
        for entries in (change.arrived, change.evicted)
    ] + [[each.origin for each in change.arrived]]


def check_sum(change: ChangeResult) -> None:
    lines = receipts.receipt(change)
    if not lines:
        return
    first, *between, last = lines
    in_force = (change.policy, change.policy_before)
    load = first.amount
    for line in between:
        if line.kind == "over":
            assert line.amount == load > limit_of(change, line)
        elif line.kind == "ahead":
            assert line.amount == load <= max(each.limit for each in in_force if each)
        else:
            load += line.amount
    assert last.amount == load == change.policy.load(change.after)
    assert (last.kind == "over") == change.policy.is_exceeded_by(change.after)
    seqs = [line.seq for line in between if line.kind == "minus" and line.seq]
    assert sorted(seqs) == sorted(message.seq for message in change.evicted)
    assert_arrivals_come_first(change, between)


def limit_of(change: ChangeResult, line: ReceiptLine) -> int:
    before = change.policy_before or change.policy
    return min(before.limit, change.policy.limit)


def assert_arrivals_come_first(change: ChangeResult, lines: list[ReceiptLine]) -> None:
    """No message is taken away before it is there."""
    there: set[int] = set()
    arriving = {message.seq for message in change.arrived if message.seq > change.last_seq}
    for line in lines:
        if line.kind == "plus" and line.seq:
            there.add(line.seq)
        assert line.kind != "minus" or line.seq not in arriving - there


def check_cause(change: ChangeResult, why: Explanation, message) -> None:
    is_own = change.kind == "add" and [message.seq] == [each.seq for each in change.arrived]
    causes = {
        Reason.CAPACITY: "There was no room.",
        Reason.ORPHANED: "Its tool call left.",
        Reason.REPLACED: "Another system message took its place.",
        Reason.CLEARED: "Memory was cleared.",
        Reason.SET: "The message list was replaced.",
        Reason.TURN: "Its turn had lost its beginning.",
    }
    if change.by_client:
        causes |= {
            Reason.CAPACITY: "The client left it out of its list, as if memory were full.",
            Reason.ORPHANED: "The client left it out of its list with its tool call.",
            Reason.REPLACED: "The client put another system message in its place.",
            Reason.SET: "The client left it out of its list.",
        }
    if change.by_client and message.reason is Reason.CAPACITY:
        assert str(change.policy.limit) not in why.detail.replace(f"step {change.step}", "")
        assert all(line.kind != "ahead" for line in why.receipt)
    if message.reason is not Reason.CAPACITY or not is_own:
        assert why.cause == causes[message.reason]
        return
    alone = change.policy.is_exceeded_by(change.policy.total([message]))
    system = change.policy.is_exceeded_by(change.after.without(change.pinned))
    assert ("system message alone is larger" in why.cause) == system
    if "on its own" in why.cause:
        assert alone
    if "system message" in why.cause:
        assert change.after.without(change.pinned).count


BIG, SMALL = UserMessage("word " * 16), UserMessage("a small question")


@pytest.mark.parametrize(
    ("system", "said", "cause", "detail"),
    [
        (
            "word " * 60,
            SMALL,
            "The system message alone is larger than the limit.",
            "It takes 68 of 30 tokens: nothing else can stay.",
        ),
        (
            "word " * 8,
            BIG,
            "It had no room beside the system message.",
            "With the system message, #2 needs 37 of 30 tokens.",
        ),
    ],
)
def test_what_leaves_beside_a_large_system_message_says_so(db, system, said, cause, detail):
    create_and_add("m", TokenWindow(30), [SystemMessage(system), said])
    change = step("m", 2).change
    why = why_left(change, 2)
    assert (why.cause, why.detail) == (cause, detail)
    caption = captions.caption(change).summary
    assert ("no room beside the system message" in caption) == (said is BIG)
    assert why.receipt[-1].kind == ("fits" if said is BIG else "over")
    assert verify("m") is None


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_a_limit_below_the_overhead_of_a_request_blames_no_system_message(db, limit):
    create_and_add("tiny", TokenWindow(limit), [UserMessage("hello")])
    for change in (
        step("tiny", 1).change,
        *simulate("tiny", [UserMessage("hello")]).changes,
    ):
        (left,) = change.evicted
        why = why_left(change, left.seq)
        assert why.cause in (
            "It was too large for the limit.",
            "It would be too large for the limit.",
        )
        assert why.detail.endswith(f"alone needs 8 of {in_unit(limit, TokenWindow(limit))}.")
    assert verify("tiny") is None


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (UserMessage("much " * 60), "at once, so it never reached the model: it was too large"),
        (AiMessage("much " * 60), "at once: it was too large"),
    ],
)
def test_a_message_that_could_not_stay_is_one_sentence(db, message, words):
    create_and_add("big", TokenWindow(30), [message])
    change = step("big", 1).change
    noun = "AI" if isinstance(message, AiMessage) else "User"
    assert captions.caption(change).summary == (
        f"{noun} message #1 ({change.lost} tokens) arrived and left {words} for the limit."
    )


def test_what_left_is_the_oldest_only_beside_pins(db):
    """A pinned message that is older stays, in past and in hypothetical changes."""
    create_and_add("pinned", MessageWindow(3), numbered(3))
    services.pin("pinned", 2)
    services.add("pinned", [UserMessage("first")])
    for words in ("#1 was the oldest.", "#3 was the oldest that could leave."):
        change = step("pinned", conversations.memory("pinned").last_step).change
        assert captions.caption(change).summary.endswith(words)
        label = words.removesuffix(".").replace(" was", " User leaves:")
        assert label in [line.label for line in receipts.receipt(change)]
        (simulated,) = simulate("pinned", [UserMessage("second")]).changes
        assert captions.caption(simulated).summary.endswith("the oldest that could leave.")
        (added,) = services.add("pinned", [UserMessage("second")])
        assert added.passed_pins
    page = ConversationPage(conversation_state("pinned", ConversationQuery()))
    assert [row.note for row in page.memory_pane.just_evicted.rows] == ["oldest that could leave"]


def test_several_messages_of_a_set_list_are_not_each_too_big(db):
    services.create("set", MessageWindow(2))
    services.set_messages("set", numbered(5))
    change = step("set", 1).change
    assert captions.caption(change).summary.endswith("#1, #2 and #3 were the oldest.")
    why = why_left(change, 2)
    assert why.detail.startswith("The new list needed 5 messages, more than the limit of 2")


def test_a_receipt_goes_on_to_the_low_mark_only_if_a_message_leaves_for_it(db):
    create_and_add("m", MessageWindow(2), [UserMessage("word "), SystemMessage("word " * 7)])
    (change,) = simulate("m", [CALL], TokenWindow(20, low_water=0.7)).changes
    lines = receipts.receipt(change)
    check_sum(change)
    assert [line.kind for line in lines if line.kind == "minus"]
    assert all(after.kind == "minus" for line, after in pairwise(lines) if line.kind == "ahead")


def test_a_step_whose_message_nobody_saw_says_so(db):
    for words in ("a", "ab", ""):
        change = protocol.update_messages("client", users(*words))
    tokens = sum(each.tokens for each in change.evicted)
    assert captions.caption(change).summary == (
        f"A message arrived and left at once. 2 messages left memory, −{tokens} tokens: "
        "#1 and #2 were the oldest."
    )
    assert (
        why_left(change, 1).cause == "The client left it out of its list, as if memory were full."
    )
    assert step("client", 3).change == change
    samples = step_samples(Memory.objects.get(pk="client"), 3).part
    assert [sample.arrival and sample.arrival.seq for sample in samples] == [1, 2, None]


@pytest.mark.parametrize(
    "policy", [MessageWindow(3), MessageWindow(3, low_water=0.4), TokenWindow(1_000)]
)
def test_a_message_that_a_client_leaves_out_has_not_left_for_the_limit(db, policy):
    create_and_add("client", policy, users("one", "two", "three"))
    protocol.update_messages("client", [UserMessage("four")])
    change = step("client", 4).change
    assert change.by_client
    for seq in (1, 2, 3):
        why = why_left(change, seq)
        assert why.summary == (
            "The client left it out of its list, as if memory were full. It left the head of the "
            "list at step 4."
        )
        over = [line.amount for line in why.receipt if line.kind in ("over", "ahead")]
        assert over == ([4] if isinstance(policy, MessageWindow) else [])


at_first = st.tuples(policies, st.lists(changes, min_size=4, max_size=8))
drafted = st.tuples(at_first, st.lists(messages, min_size=1, max_size=3), policies)
a_result = st.integers(1, 120).map(
    lambda size: [CALL, ToolExecutionResultMessage("1", "find", "word " * size)]
)
answered = st.builds(  # under a limit that was only measured before
    lambda policy, said, result: ((policy.metering(), [("add", said)]), result, policy),
    st.builds(TokenWindow, st.integers(1, 80), **options),
    st.lists(messages, min_size=1, max_size=3),
    a_result,
)


@given(drafted | answered)
@examples(80)
def test_a_simulation_under_another_policy_comes_true(db, tried):
    made, drafts, other = tried
    with conversation(*made):
        check_simulated("m", drafts, other)


def check_simulated(memory_id, drafts, other) -> None:
    """What is simulated under another policy happens, or is refused for the same reason."""
    try:
        simulation = simulate(memory_id, drafts, other)
    except (OversizedMessage, NoRoomBesidePins) as error:
        with pytest.raises(type(error), match=re.escape(str(error))):
            services.change_and_add(memory_id, drafts, policy=other)
        return
    made = services.change_and_add(memory_id, drafts, policy=other)
    assert simulation.changes == tuple(made)
    rows = windows.outline(memory_id).rows
    assert [each.seq for each in simulation.window.rows] == [each.seq for each in rows]
