"""Branches have the history of their source, and the window that the source had."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import MessageWindow, SystemMessage, TokenWindow, UserMessage, queries, services
from chatmemory.ledger.verification import verify
from chatmemory.models import Memory

from .properties import examples

KIND, BRIEF = SystemMessage("Be kind."), SystemMessage("Be brief.")
DRAFT = UserMessage("draft")


@pytest.fixture
def lowered(db) -> str:
    """A conversation of three messages, two of which a lowered limit hides."""
    services.create("source", MessageWindow(3))
    services.add("source", [UserMessage(text) for text in "abc"])
    services.change("source", policy=MessageWindow(1))
    return "source"


def texts(memory_id: str) -> list[str]:
    return [message.single_text() for message in queries.window(memory_id).messages]


def test_it_has_what_a_lowered_limit_hides(lowered):
    services.branch(lowered, "other", [DRAFT], policy=MessageWindow(5))
    services.change_and_add(lowered, [DRAFT], policy=MessageWindow(5))
    assert texts("other") == texts(lowered) == ["a", "b", "c", "draft"]
    assert verify("other") is None


def test_a_limit_that_is_raised_later_brings_it_back(lowered):
    services.branch(lowered, "other", [])
    assert texts("other") == ["c"]
    services.change("other", policy=MessageWindow(5))
    assert texts("other") == ["a", "b", "c"]


def test_its_label_has_room_for_the_longest_id(db):
    longest = "x" * 255
    services.create(longest, MessageWindow(3))
    services.add(longest, [UserMessage("a")])
    services.branch(longest, "branch", [])
    assert queries.memory("branch").labels == {"from": longest}


def test_it_has_a_system_message_that_was_said_again(db):
    services.create("source", MessageWindow(5))
    services.add("source", [KIND, UserMessage("one")])
    services.clear_messages("source")
    services.add("source", [KIND, UserMessage("two")])
    services.branch("source", "other", [])
    services.branch("source", "past", [], at=4)
    assert queries.said("other") == queries.said("source")
    assert queries.said("past") == [KIND, UserMessage("one"), KIND]
    assert queries.window("other").messages == [KIND, UserMessage("two")]
    assert verify("other") is None


policies = st.builds(MessageWindow, st.integers(1, 4)) | st.builds(TokenWindow, st.integers(9, 40))
changes = st.one_of(
    st.tuples(st.just("add"), st.sampled_from([KIND, BRIEF, UserMessage("hello there")])),
    st.tuples(st.just("change"), policies),
    st.tuples(st.just("clear"), st.none()),
)


@examples(60)
@given(policies, st.lists(changes, max_size=8), policies)
def test_a_draft_does_in_it_what_is_simulated(db, policy, sequence, other):
    Memory.objects.all().delete()
    services.create("source", policy)
    for kind, what in sequence:
        if kind == "add":
            services.add("source", [what])
        elif kind == "change":
            services.change("source", policy=what)
        else:
            services.clear_messages("source")
    simulation = queries.simulate("source", [DRAFT], other)
    services.branch("source", "other", [DRAFT], policy=other)
    assert queries.said("other") == [*queries.said("source"), DRAFT]
    services.change_and_add("source", [DRAFT], policy=other)
    window = queries.window("source").messages
    assert queries.window("other").messages == window
    assert len(simulation.remaining) == len(window)
    assert verify("other") is None
