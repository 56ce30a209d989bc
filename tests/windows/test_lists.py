"""What a client's list tells: the only add that explains it, beside LangChain4j's rule written a
second time; else what stayed, moved and left.
"""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chatmemory.messages.codec import message_to_json
from chatmemory.windows.lists import Alignment, align, inferred_add, rearrange
from chatmemory.windows.transitions import Transition
from chatmemory.windows.window import Window
from tests.messages.letters import FATES, MESSAGES, entries, messages

from ..langchain4j import Identified, Outcome, add, explanations, left_out, times
from ..properties import examples

payloads = st.lists(st.sampled_from("abcd"), max_size=8)
few = st.lists(st.sampled_from("ab"), max_size=10)


def infer(old: str, new: str, recovers: bool | None = None) -> tuple[Window, Transition | None]:
    window = Window(entries(old, 1))
    before, after = ([message_to_json(each) for each in messages(list)] for list in (old, new))
    return window, inferred_add(window, before, entries(new, 1), after, recovers=recovers)


def fates_of(old: str, new: str, recovers: bool | None = None) -> str | None:
    """What happened to each old message, a dot if it stayed; where something came, and how many."""
    window, add = infer(old, new, recovers)
    if add is None:
        return None
    reasons = {each.entry: FATES[each.reason] for each in add.evictions}
    fates = "".join(reasons.get(entry, ".") for entry in window)
    return f"{fates} {'<' if add.at_head else '+'}{len(add.arrivals)}"


ADDS = {
    ("", "a"): " +1",
    ("abc", "bcd"): "c.. +1",
    ("ab", "b"): "cc +1",
    ("Sab", "Sbc"): ".c. +1",
    ("Sab", "bT"): "rc. +1",
    ("Sab", "Tb"): "rc. <1",
    ("SCRa", "Sab"): ".co. +1",
    ("CRSb", "Tb"): "cor. <1",
    ("aCR", ""): "cco +0",  # what was added left at once
    ("aCb", "abd"): ".i. +1",
    ("aDRb", "abd"): ".ii. +1",
    ("SaDRb", "Tab"): "r.ii. <1",
}
NO_ADDS = {
    "nothing came": [("abc", "bc")],
    "the end was taken back": [("ab", "a"), ("aaa", "aa"), ("Sab", "Sa"), ("aCR", "aC")],
    "what is not the oldest left": [("abc", "acd")],
    "two came": [("ab", "abcd"), ("", "ab")],
    "it came amid": [("ab", "acb")],
    "a result outlives its call": [("CRa", "Rab")],
    "two system messages": [("Sab", "STab")],
    "the system message at the head left": [("Sab", "ab"), ("Sab", "")],
    # The result leaves with its call, or alone before the system message between them does
    "several adds explain it": [("CSRb", "Tb")],
    # A limit of one, or a policy that recovers interrupted calls
    "several policies explain it": [
        ("C", "b"),
        ("SDR", "Sb"),
        ("DR", ""),
        ("aCbc", "cd"),
        ("CSRb", "TRb"),
    ],
}


@pytest.mark.parametrize(("old", "new"), ADDS)
def test_the_only_add_that_explains_a_list_is_inferred(old, new):
    assert fates_of(old, new) == ADDS[old, new]


@pytest.mark.parametrize("why", NO_ADDS)
def test_a_list_that_no_add_or_more_than_one_explains_was_set(why):
    assert [fates_of(*lists) for lists in NO_ADDS[why]] == [None] * len(NO_ADDS[why])


@pytest.mark.parametrize(
    ("old", "new", "recovers", "fates"),
    [
        ("aCbc", "cd", True, "cic. +1"),
        ("aCbc", "cd", False, "ccc. +1"),
        ("CSRb", "TRb", False, "cr.. <1"),
        ("aCb", "abd", False, ".i. +1"),  # no limit explains it: the client's policy has changed
        ("aCb", "Cbd", True, "c.. +1"),
        ("DR", "", True, None),  # a second result that did not fit, or a message of another kind
    ],
)
def test_a_client_whose_policy_earlier_lists_told(old, new, recovers, fates):
    assert fates_of(old, new, recovers) == fates


def test_an_inferred_add_makes_the_list_of_the_window_under_a_policy_that_nobody_knows():
    window, add = infer("SCRab", "abT")
    causes = [each.because and each.because.message for each in add.evictions]
    assert causes == [MESSAGES["T"], None, MESSAGES["C"]]
    assert (add.before.count, *add.after[:2]) == (5, 3, 3)
    assert (add.policy, add.policy_before) == (None, None)
    add.apply_to(window)
    assert [entry.message for entry in window] == messages("abT")
    assert window.totals == add.after


# A window has one system message; a list that was set may have brought another.
windows = st.text("abSTUCDRQ", max_size=7).filter(lambda old: sum(map(old.count, "STU")) < 3)
rounds = st.integers(0, 8)
policies = st.sampled_from([None, False, True])


@examples(400)
@given(
    windows,
    st.sampled_from("abSTUCDRQ"),
    rounds,
    rounds,
    st.booleans(),
    st.none() | windows,
    policies,
)
@example("aSbTc", "V", 3, 1, False, None, None)
def test_exactly_one_add_explains_what_is_inferred(
    old, arrival, before, after, first, other, recovers
):
    """Lists that adds made, and others: an inferred add is the only one that explains the list."""
    said = [Identified(key, message) for key, message in enumerate(messages(old))]
    (message,) = messages(arrival)
    limits = times(before), times(after)
    made = add(said, Identified("new", message), *limits, first, recovers or False)
    if made is not None and other is None:
        new = "".join(arrival if key == "new" else old[key] for key in made.keys)
    else:
        new = other or ""
    if new == old:
        return
    window, inferred = infer(old, new, recovers)
    found = explained(said, messages(new), recovers)
    assert (inferred is not None) == (len(found) == 1)
    if inferred is not None:
        keys = {entry: key for key, entry in enumerate(window)}
        (outcome,) = found
        left = {(keys[each.entry], str(each.reason)) for each in inferred.evictions}
        assert left == outcome.departures
        assert [each.message for each in inferred.arrivals] == (
            [messages(new)[outcome.keys.index("new")]] if "new" in outcome.keys else []
        )


def explained(said: list[Identified], new: list, recovers: bool | None) -> set[Outcome]:
    """Return the adds that explain a list. The option matters only to interrupted calls."""
    if not left_out([each.message for each in said]):
        return explanations(said, new, [False])
    if recovers is None:
        return explanations(said, new)
    return explanations(said, new, [recovers]) or explanations(said, new, [not recovers])


def test_long_windows_of_equal_messages_are_decided_by_their_length():
    assert fates_of("a" * 2_000 + "b", "a" * 1_500) is None
    assert fates_of("b" + "a" * 2_000, "a" * 1_500) == "c" * 502 + "." * 1_499 + " +1"


# Lists that were set


@examples(300)
@given(few, few, st.integers(0, 10))
def test_a_slide_is_found_where_there_is_one_and_only_there(old, appended, first):
    """One message in common is no slide, unless it is all that there was."""

    def slide(old, new):
        shortest = min(2, len(old))
        shifts = (k for k in range(len(old)) if new[: len(old) - k] == old[k:])
        return next((k for k in shifts if len(old) - k >= shortest), None)

    for new in (appended, old[first:] + appended, old[:1] + old[first:] + appended):
        whole, behind = slide(old, new), slide(old[1:], new[1:])
        if new == old[: len(new)]:
            expected = Alignment({j: j for j in range(len(new))}, {})
        elif whole is not None:
            expected = Alignment({j: whole + j for j in range(len(old) - whole)}, {}, whole > 0)
        elif old[:1] == new[:1] and behind is not None:
            slid = {1 + j: 1 + behind + j for j in range(len(old) - 1 - behind)}
            expected = Alignment({0: 0} | slid, {}, behind > 0)
        else:
            expected = rearrange(old, new)
        assert align(old, new) == expected


@given(payloads, payloads)
def test_as_many_messages_stay_as_can_and_equal_ones_as_often_as_both_lists_have_them(old, new):
    longest = [0] * (len(new) + 1)
    for item in old:
        above = longest
        longest = [0]
        for j, other in enumerate(new):
            longest.append(above[j] + 1 if item == other else max(above[j + 1], longest[j]))
    alignment = rearrange(old, new)
    assert len(alignment.kept) == longest[-1]
    for each in (alignment, align(old, new)):
        pairs = each.kept | each.moved
        assert all(old[i] == new[j] for j, i in pairs.items())
        assert len({*pairs.values()}) == len(pairs)
        assert sorted(each.kept.values()) == [each.kept[j] for j in sorted(each.kept)]
    both = [min(old.count(letter), new.count(letter)) for letter in {*old}]
    assert len(alignment.kept | alignment.moved) == sum(both)


@pytest.mark.parametrize(
    ("old", "new", "kept", "moved", "left"),
    [
        ("abc", "axbc", {0: 0, 2: 1, 3: 2}, {}, []),
        ("abcx", "cbax", {2: 0, 3: 3}, {0: 2, 1: 1}, []),
        ("aa", "a", {0: 1}, {}, [0]),  # of equal messages the later ones stay
        ("a", "aa", {1: 0}, {}, []),
        ("aab", "ac", {0: 1}, {}, [0, 2]),
        ("aabc", "bcya", {0: 2, 1: 3}, {3: 1}, [0]),  # and move
        ("abc", "bcaa", {0: 1, 1: 2}, {3: 0}, []),
    ],
)
def test_a_list_that_was_set_is_rearranged(old, new, kept, moved, left):
    found = rearrange(old, new)
    assert (found.kept, found.moved, found.left(len(old))) == (kept, moved, left)


@pytest.mark.parametrize("kinds", [1, 8, 10_000])
def test_thousands_of_messages_are_aligned_however_often_they_repeat(kinds):
    old = [str(n * n % kinds) for n in range(3_000)]
    alignment = rearrange(old, ["before", *old[:1_000], *old[1_500:], "behind"])
    assert len(alignment.kept) == 2_500
    assert all(i - j == 499 for j, i in alignment.kept.items() if j > 2_400)
