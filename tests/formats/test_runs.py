"""Which calls of a model belong to one run."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import (
    AiMessage,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
)
from chatmemory.formats.runs import Runs, digest_of, digests_of, new_places
from chatmemory.messages.contents import TextContent

CALL = ToolExecutionRequest("c1", "find", '{"order": "A-1", "all": true}')
EQUAL = [
    (AiMessage("hi"), AiMessage("hi\n", (), "a thought", {"finish_reason": "stop"})),
    (AiMessage(None, [CALL]), AiMessage("", [CALL])),
    (
        AiMessage(None, [CALL]),
        AiMessage(None, [ToolExecutionRequest("x", "find", '{"all":true,"order":"A-1"}')]),
    ),
    (UserMessage("a\nb"), UserMessage([TextContent("a"), TextContent("b")])),
    (
        ToolExecutionResultMessage("c1", "find", "none"),
        ToolExecutionResultMessage("c2", None, "none", False),
    ),
]
UNEQUAL = [
    (UserMessage("hi"), AiMessage("hi")),
    (UserMessage("hi"), UserMessage("hi", "Ada")),
    (AiMessage(None, [CALL]), AiMessage(None)),
    (ToolExecutionResultMessage("a", "f", "x"), ToolExecutionResultMessage("a", "f", "x", True)),
]


@pytest.mark.parametrize(("one", "other"), EQUAL)
def test_messages_that_say_the_same_are_equal(one, other):
    assert digest_of(one) == digest_of(other)


@pytest.mark.parametrize(("one", "other"), UNEQUAL)
def test_messages_that_say_something_else_are_not(one, other):
    assert digest_of(one) != digest_of(other)


def test_another_system_message_is_not_compared():
    said = [UserMessage("hi"), AiMessage("ho")]
    assert digests_of([SystemMessage("Be brief."), *said]) == digests_of(said)


LISTS = [
    ("abcd", "abcdef", [4, 5]),  # goes on
    ("abcd", "abcd", []),  # was sent again
    ("abcd", "ab", []),
    ("abcd", "Scdef", [0, 3, 4]),  # compacted to a summary and the end
    ("abcdef", "abSefg", [2, 5]),  # a part was left out
    ("abcdef", "abefg", [4]),
    ("abcd", "abcDe", [3, 4]),  # the answer came back otherwise
    ("abcd", "xdef", None),  # one message in common tells nothing
    ("abcd", "abxyz", None),  # another run that began alike
    ("abcd", "wxyz", None),
]


@pytest.mark.parametrize(("known", "given", "places"), LISTS)
def test_what_of_a_list_is_new_to_a_run(known, given, places):
    assert new_places([*known], [*given]) == places  # letters in place of digests


def digests(texts: Iterable[str]) -> list[bytes]:
    return digests_of(map(UserMessage, texts))


def test_the_run_that_has_most_of_a_list_goes_on():
    runs = Runs()
    first, second = runs.put(None, digests("abxy")), runs.put(None, digests("abcd"))
    assert runs.find(digests("abcdef")) == (second, [4, 5])
    assert runs.find(digests("abxyz")) == (first, [4])
    runs.put(second, digests("abcdef"))
    assert runs.find(digests("abcdefgh")) == (second, [6, 7])
    assert runs.find(digests("abcdeFgh")) == (second, [5, 6, 7])
    assert runs.find(digests("uvw")) is None


@given(st.lists(st.lists(st.text(max_size=3), min_size=1, max_size=3), min_size=1, max_size=6))
def test_calls_of_which_each_goes_on_are_one_run(turns):
    runs, known, number = Runs(), [], None
    for turn in turns:
        before, known = known, [*known, *digests(turn)]
        found = runs.find(known)
        if number is not None:
            assert found == (number, [*range(len(before), len(known))])
        number = runs.put(number, known)
