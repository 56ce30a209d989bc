"""The add that a client's list tells, beside LangChain4j's rule written a second time."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chatmemory import (
    AiMessage,
    ChatMessage,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
)
from chatmemory.core.client_lists import inferred_add
from chatmemory.core.codec import message_to_json
from chatmemory.core.transitions import Transition
from chatmemory.core.window import Entry, Window

from ..langchain4j import Said, add, explanations, times
from ..properties import examples

MESSAGES = {
    "S": SystemMessage("Be brief."),
    "T": SystemMessage("Be kind."),
    "U": SystemMessage("Be exact."),
    "V": SystemMessage("Be quick."),
    "C": AiMessage(None, (ToolExecutionRequest("1", "find", "{}"),)),
    "R": ToolExecutionResultMessage("1", "find", "found"),
    "Q": ToolExecutionResultMessage("1", "find", "also found"),
}
REASONS = {"c": "CAPACITY", "o": "ORPHANED", "r": "REPLACED"}


def messages(letters: str) -> list[ChatMessage]:
    """S, T, U and V are system messages, C calls, R and Q answer; all others are said by a user."""
    return [MESSAGES.get(letter, UserMessage(letter)) for letter in letters]


def infer(old: str, new: str) -> tuple[Window, Transition | None]:
    window = Window(Entry.of(message, 1) for message in messages(old))
    arrivals = [Entry.of(message, 1) for message in messages(new)]
    payloads = ([message_to_json(each) for each in messages(letters)] for letters in (old, new))
    before, after = payloads
    return window, inferred_add(window, before, arrivals, after)


def story(old: str, new: str) -> str | None:
    """What was added and what happened to each old message: `- .` if it stayed, else a reason."""
    window, add = infer(old, new)
    if add is None:
        return None
    reasons = {each.entry: each.reason for each in add.evictions}
    letters = {reason: letter for letter, reason in REASONS.items()}
    fates = "".join(letters[reasons[e]] if e in reasons else "." for e in window)
    where = "<" if add.at_head else "+"
    return f"{fates} {where}{len(add.arrivals)}"


EXAMPLES = {
    # an append
    ("", "a"): " +1",
    ("ab", "abc"): ".. +1",
    ("abc", "bcd"): "c.. +1",
    ("abc", "bca"): "c.. +1",
    ("aaab", "aba"): "cc.. +1",
    ("abc", "d"): "ccc +1",
    ("ab", "b"): "cc +1",
    # behind a system message, also one in mid-window
    ("Sab", "Sabc"): "... +1",
    ("Sab", "Sbc"): ".c. +1",
    ("aSbc", "Scd"): "c.c. +1",
    ("aSb", "aSbc"): "... +1",
    # a system message
    ("ab", "abS"): ".. +1",
    ("ab", "Sab"): ".. <1",
    ("abc", "Sbc"): "c.. <1",
    ("Sab", "abT"): "r.. +1",
    ("Sab", "Tab"): "r.. <1",
    ("Sab", "bT"): "rc. +1",
    ("Sab", "Tb"): "rc. <1",
    ("aSb", "abT"): ".r. +1",
    ("obSo", "oboT"): "..r. +1",
    ("Sab", "T"): "rcc +1",
    # calls and results
    ("CRa", "ab"): "co. +1",
    ("CRQa", "ab"): "coo. +1",
    ("RaC", "aCR"): "c.. +1",
    ("SCRa", "Sab"): ".co. +1",
    ("aC", "R"): "cc +1",
    # the message that was added left at once
    ("ab", ""): "cc +0",
    ("Sab", "S"): ".cc +0",
    ("aSb", "S"): "c.c +0",
    ("aCR", ""): "cco +0",
}


@pytest.mark.parametrize(("old", "new"), EXAMPLES)
def test_the_only_add_that_explains_a_list_is_inferred(old, new):
    assert story(old, new) == EXAMPLES[old, new]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("abc", "bc"),  # nothing came
        ("ab", "a"),  # the end was taken back
        ("aaa", "aa"),
        ("Sab", "Sa"),
        ("abac", "ab"),
        ("aCR", "aC"),
        ("abc", "acd"),  # what is not the oldest left
        ("ab", "abcd"),  # two came
        ("ab", "cd"),
        ("ab", "acb"),  # it came amid
        ("ab", "bc" * 2),
        ("abc", "cba"),
        ("CRa", "Rab"),  # a result outlives its call
        ("Sab", "aTb"),
        ("Sab", "STab"),  # two system messages
        ("Sab", "ab"),
        ("Sab", "abc"),  # the system message at the head left
        ("Sab", ""),
        ("", "ab"),
    ],
)
def test_a_list_that_no_add_explains_was_set(old, new):
    assert story(old, new) is None


def test_a_list_that_several_adds_explain_was_set():
    # The result leaves with its call, or alone before the system message between them does.
    assert story("CSRb", "Tb") is None
    assert story("CSRb", "TRb") == "cr.. <1"


def test_the_policy_of_a_client_is_not_known():
    _, add = infer("abc", "bcd")
    assert add.policy is None
    assert add.policy_before is None


def test_an_inferred_add_makes_the_list_of_the_window():
    window, add = infer("SCRab", "abT")
    assert [each.because and each.because.message for each in add.evictions] == [
        MESSAGES["T"],
        None,
        MESSAGES["C"],
    ]
    assert (add.before.count, add.after.count, add.after.tokens) == (5, 3, 3)
    add.apply_to(window)
    assert [entry.message for entry in window] == messages("abT")
    assert window.totals == add.after


def test_an_add_that_nobody_saw_empties_the_window():
    window, add = infer("Sab", "S")
    assert not add.ignored
    add.apply_to(window)
    assert [entry.message for entry in window] == messages("S")
    assert window.totals == add.after == (1, 1)


# A window has one system message; a list that was set may have brought another.
windows = st.text("abSTUCRQ", max_size=7).filter(lambda old: sum(map(old.count, "STU")) < 3)
rounds = st.integers(0, 8)


@examples(500)
@given(windows, st.sampled_from("abSTUCRQ"), rounds, rounds, st.booleans(), st.none() | windows)
@example("aSbTc", "V", 3, 1, False, None)
def test_exactly_one_add_explains_what_is_inferred(old, arrival, before, after, first, other):
    """Lists that adds made, and others: what is inferred is the only one of all adds."""
    said = [Said(key, message) for key, message in enumerate(messages(old))]
    (message,) = messages(arrival)
    made = add(said, Said("new", message), times(before), times(after), first)
    if made is not None and other is None:
        new = "".join(arrival if key == "new" else old[key] for key in made.keys)
    else:
        new = other or ""
    if new == old:
        return
    window, inferred = infer(old, new)
    found = explanations(said, messages(new))
    assert (inferred is not None) == (len(found) == 1)
    if inferred is not None:
        keys = {entry: key for key, entry in enumerate(window)}
        (outcome,) = found
        left = {(keys[each.entry], str(each.reason)) for each in inferred.evictions}
        assert left == outcome.departures
        assert [each.message for each in inferred.arrivals] == (
            [messages(new)[outcome.keys.index("new")]] if "new" in outcome.keys else []
        )


def test_long_windows_of_equal_messages_are_decided_by_their_length():
    assert story("a" * 2_000 + "b", "a" * 1_500) is None
    assert story("b" + "a" * 2_000, "a" * 1_500) == "c" * 502 + "." * 1_499 + " +1"
