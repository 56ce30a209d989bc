"""The rules of eviction, one row for each; and windows, of which no more is read than needed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import MessageWindow, Reason, TokenWindow, UserMessage
from chatmemory.messages.message import MessageType
from chatmemory.windows.eviction import Eviction, Head, oldest_first
from chatmemory.windows.transitions import Change, admit, hidden_from_reads, refill, visible
from chatmemory.windows.window import Entry, EntrySource, Totals, Window, total
from tests.messages.letters import MESSAGES, entries, entry, story


class OldestAtAnyPrice(MessageWindow):
    """A policy of someone else's: a leading system message leaves like any other."""

    def evict(self, head):
        while self.is_exceeded_by(head.totals):
            yield Eviction(head.pop(), Reason.CAPACITY)


FIRST = MessageWindow(5, always_keep_system_message_first=True)
RULES = {
    "the oldest message leaves a full window": ("ab", "c", MessageWindow(2), "c.. bc"),
    "a leading system message stays": ("Sa", "b", MessageWindow(2), ".c. Sb"),
    "one that is not first is no reason to stay": ("aS", "b", MessageWindow(2), "c.. Sb"),
    "results leave with their call": ("CRRa", "b", MessageWindow(4), "coo.. ab"),
    "others stay behind a call": ("SCRaR", "b", MessageWindow(4), ".co... SaRb"),
    "results stay if a message leaves that called nothing": (
        "aRb",
        "c",
        MessageWindow(3),
        "c... Rbc",
    ),
    "an equal system message is ignored": ("Sa", "S", MessageWindow(2), "ignored"),
    "also over the limit, and nothing leaves": ("Sab", "S", MessageWindow(1), "ignored"),
    "another one replaces it at the end": ("Sa", "T", MessageWindow(5), "r.. aT"),
    "or at the head": ("Sa", "T", FIRST, "r.. Ta"),
    "a first one is put at the end": ("a", "S", MessageWindow(5), ".. aS"),
    "a first one is put at the head": ("a", "S", FIRST, ".. Sa"),
    "it is compared with the first that the trim has left": (
        "STa",
        "T",
        OldestAtAnyPrice(2),
        "ignored",
    ),
    "and takes its place": ("STa", "S", OldestAtAnyPrice(2), "cr.. aS"),
    "what is larger than the limit leaves at once": ("a", "b", TokenWindow(9), "cc "),
    "so does all beside a system message that is": ("S", "a", TokenWindow(9), ".c S"),
    "the overhead of a request counts": ("a", "b", TokenWindow(22), "c. b"),
    "and leaves room for the rest": ("a", "b", TokenWindow(23), ".. ab"),
}


@pytest.mark.parametrize("rule", RULES)
def test_the_rules_of_an_add(rule):
    before, arriving, policy, told = RULES[rule]
    assert story(before, arriving, policy) == told


def test_an_older_system_message_behind_one_put_first_is_evicted():
    policy = TokenWindow(40, always_keep_system_message_first=True)
    assert story("STa", "U", policy, tokens=20) == "rc.. Ua"


def test_the_limit_is_read_again_after_the_append():
    assert story("ab", "c", MessageWindow(2), policy_again=lambda: MessageWindow(1)) == "cc. c"


def test_an_eviction_that_another_message_caused_names_it():
    window, arrival = Window(entries("SCRa")), entry("T")
    replaced, *others = admit(window, arrival, MessageWindow(2)).evictions[::-1]
    assert (replaced.entry, replaced.because) == (next(iter(window)), arrival)
    assert [each.because for each in others] == [others[1].entry, None]


def test_a_lowered_limit_hides_messages_until_the_next_add():
    said = entries("abc")
    window = Window(said)
    assert visible(window, MessageWindow(1)) == said[2:]
    assert visible(window, MessageWindow(3)) == visible(window, None) == said
    policy = MessageWindow(1)
    hidden = [each.entry for each in hidden_from_reads(said, policy)]
    assert (
        hidden
        == said[:2]
        == [each.entry for each in admit(window, entry("d"), MessageWindow(1)).evictions][:2]
    )


def test_a_set_without_a_policy_is_not_trimmed():
    transition = refill(Window(), entries("ab"), None)
    assert (transition.evictions, transition.after.count) == ((), 2)


def test_reasons_and_changes_are_spelled_as_databases_and_clients_have_them():
    reasons = "CAPACITY ORPHANED REPLACED CLEARED SET MOVED TURN SUMMARIZED STUBBED INTERRUPTED"
    assert " ".join(Reason) == f"{reasons} INDEXED"
    assert " ".join(Change) == "add set clear keep pin compact stub index"


# The head of a window, from which policies take messages


def test_taking_from_the_head_changes_what_remains_and_not_the_window():
    a, b, c = said = entries("abc", 2)
    window = Window(said)
    policy = TokenWindow(9)
    head = Head(window, window.measure_with(policy), policy)
    assert (head.peek(), head.peek(2), head.peek(3)) == (a, c, None)
    assert (head.pop(1), head.pop(7), head.peek(1), head.evict(7)) == (b, None, c, [])
    head.remove(c)
    assert (head.peek(1), head.totals, list(window)) == (None, Totals(1, 2, 2), said)
    assert not list(oldest_first(Head([], Totals(), TokenWindow(9)), lambda totals: True))


# Windows that a store reads as far as needed


def test_what_is_placed_or_removed_before_it_is_met():
    inside, gone, first, last = entries("abcd")
    policy = MessageWindow(9)
    head = Head([inside, gone], policy.total([inside, gone]), policy)
    head.remove(gone)
    head.place(last, at_head=False)
    head.place(first, at_head=True)
    assert head.totals == Totals(3, 30, cost=3)
    assert [head.pop() for _ in range(4)] == [first, inside, last, None]


class Kept(EntrySource):
    """Entries that are stored elsewhere. Only system messages come with their messages."""

    def __init__(self, kept: list[Entry]) -> None:
        self.kept = kept
        self.read = self.systems_asked = 0

    def entries(self):
        for each in self.kept:
            self.read += 1
            is_system = each.type is MessageType.SYSTEM
            yield each if is_system else replace(each, message=None)

    def systems(self):
        self.systems_asked += 1
        return [each for each in self.kept if each.type is MessageType.SYSTEM]

    def with_messages(self):
        return self.kept


def lazy(said: list[Entry]) -> Window:
    return Window(Kept(said), total(said))


letters = st.text(alphabet="abST", max_size=6)
changes = st.lists(
    st.one_of(
        st.tuples(st.just("place"), st.sampled_from("aS"), st.booleans()),
        st.tuples(st.just("discard"), st.integers(0, 9), st.none()),
        st.tuples(st.just("read"), st.integers(0, 4), st.none()),
        st.tuples(st.just("systems"), st.none(), st.none()),
        st.tuples(st.just("refill"), letters, st.none()),
    ),
    max_size=8,
)


@given(letters, changes)
def test_a_window_equals_a_list_however_little_of_it_was_read(start, script):
    for make in (Window, lazy):
        expected = entries(start)
        window = make(list(expected))
        for name, value, at_head in script:
            if name == "place":
                arrival = entry(value)
                window.place(arrival, at_head)
                expected.insert(0 if at_head else len(expected), arrival)
            elif name == "discard" and value < len(expected):
                window.discard(expected.pop(value))
            elif name == "read":
                read = [each for each, _ in zip(window, range(value), strict=False)]
                assert read == expected[:value]
            elif name == "refill":
                window.refill(expected := entries(value))
            elif name == "systems":
                systems = [each for each in expected if each.type is MessageType.SYSTEM]
                assert window.systems() == systems
                assert all(each.message for each in window.systems())
        assert list(window) == expected
        messages = [each.message for each in expected]
        assert [each.message for each in window.with_messages()] == messages


@given(letters, st.lists(st.sampled_from("abST"), max_size=6), st.integers(1, 4), st.booleans())
def test_a_lazy_window_decides_like_one_read_at_once(start, arriving, limit, keep_first):
    policy = MessageWindow(limit, always_keep_system_message_first=keep_first)
    said = entries(start)
    window, whole = lazy(said), Window(said)
    for arrival in entries("".join(arriving)):
        transition = admit(window, arrival, policy)
        assert transition == admit(whole, arrival, policy)
        transition.apply_to(window)
        transition.apply_to(whole)
        assert window.totals == whole.totals == policy.total(whole)
    assert list(window) == list(whole)
    assert visible(window, policy) == visible(whole, policy)


@pytest.mark.parametrize(
    ("behind", "arriving", "policy", "left", "read"),
    [
        ("", "b", MessageWindow(1_000), 1, 5),
        ("", "b", MessageWindow(1_000, low_water="0.99", snap_to_user=True), 11, 16),
        ("S", "S", MessageWindow(2_000), 0, 1),
    ],
)
def test_a_decision_reads_only_what_it_evicts(behind, arriving, policy, left, read):
    kept = Kept(entries("a" * 1_000 + behind))
    window = Window(kept, policy.total(kept.kept), measured_by=policy)
    transition = admit(window, entry(arriving), policy)
    transition.apply_to(window)
    assert len(transition.evictions) == left
    assert kept.read < read
    assert kept.systems_asked == len(behind)


def test_another_family_counts_every_message_anew():
    said = entries("aSb", 5)
    for window in (Window(said), lazy(said)):
        for expected in (Totals(3, 4), Totals(3, 4)):  # the same family counts nothing
            tokens = {MESSAGES["S"]: 1, UserMessage("a"): 2, UserMessage("b"): 1}
            window.count_with("words", tokens.pop if window.counted_by is None else None)
            assert [each.tokens for each in window] == [2, 1, 1]
            assert (window.totals, window.counted_by) == (expected, "words")
        assert list(window) == said
