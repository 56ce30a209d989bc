"""Branches have the history of their source, and the window that the source had."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import (
    MessageNotFound,
    MessageWindow,
    SystemMessage,
    TokenWindow,
    UserMessage,
    services,
)
from chatmemory.access.tokens import create_token
from chatmemory.ledger.verification import verify
from chatmemory.models import Memory
from chatmemory.reading import conversations, history, windows
from chatmemory.reading.simulation import simulate
from tests.conversations import BRIEF, create_and_add, texts, users
from tests.properties import examples

KIND = SystemMessage("Be kind.")
DRAFT = UserMessage("draft")


@pytest.fixture
def lowered(db) -> str:
    """A conversation of three messages, two of which a lowered limit hides."""
    create_and_add("source", MessageWindow(3), users(*"abc"))
    services.change("source", policy=MessageWindow(1))
    return "source"


def test_a_limit_that_is_raised_later_brings_it_back(lowered):
    longest = "x" * 255
    services.branch(lowered, longest, [])
    assert texts(longest) == ["c"]
    services.change(longest, policy=MessageWindow(5))
    assert texts(longest) == ["a", "b", "c"]
    services.branch(longest, "twig", [])
    assert conversations.memory("twig").labels == {"from": "step 7"}
    assert conversations.memory("twig").branched_from == longest


def test_it_has_a_system_message_that_was_said_again(db):
    create_and_add("source", MessageWindow(5), [KIND, UserMessage("one")])
    services.clear_messages("source")
    services.add("source", [KIND, UserMessage("two")])
    services.branch("source", "other", [])
    services.branch("source", "past", [], at=4)
    assert history.all_messages("other") == history.all_messages("source")
    assert history.all_messages("past") == [KIND, UserMessage("one"), KIND]
    assert windows.window("other").messages == [KIND, UserMessage("two")]
    assert verify("other") is None


policies = st.builds(MessageWindow, st.integers(1, 4)) | st.builds(TokenWindow, st.integers(9, 40))
changes = st.one_of(
    st.tuples(st.just("add"), st.sampled_from([KIND, BRIEF, UserMessage("hello there")])),
    st.tuples(st.just("change"), policies),
    st.tuples(st.just("clear"), st.none()),
    st.tuples(st.just("redact"), st.integers(1, 8)),
)


@examples(30)
@given(policies, st.lists(changes, max_size=8), policies)
def test_a_draft_does_in_it_what_is_simulated(db, policy, sequence, other):
    Memory.objects.all().delete()
    services.create("source", policy)
    for kind, what in sequence:
        if kind == "add":
            services.add("source", [what])
        elif kind == "change":
            services.change("source", policy=what)
        elif kind == "redact":
            with suppress(MessageNotFound):
                services.redact("source", what)
        else:
            services.clear_messages("source")
    simulation = simulate("source", [DRAFT], other)
    services.branch("source", "other", [DRAFT], policy=other)
    assert history.all_messages("other") == [*history.all_messages("source"), DRAFT]
    services.change_and_add("source", [DRAFT], policy=other)
    window, branched = windows.window("source"), windows.window("other")
    assert branched.messages == window.messages
    assert branched.totals == window.totals == simulation.totals
    assert len(simulation.window.rows) == len(window.messages)
    assert (
        conversations.memory("other").history_tokens
        == conversations.memory("source").history_tokens
    )
    assert verify("other") is None


@pytest.mark.parametrize("words", ["hi", "word " * 20])
def test_it_counts_a_redacted_message_by_the_words_that_it_had(db, words):
    create_and_add("source", TokenWindow(100), users(words, "yo"))
    load = windows.window("source").load
    services.redact("source", 1)
    services.branch("source", "other", [], policy=TokenWindow(load))
    services.branch("other", "twig", [])
    for branch in ("other", "twig"):
        assert (texts(branch), windows.window(branch).load) == (["[redacted #1]", "yo"], load)
        assert verify(branch) is None


def test_its_label_does_not_name_its_source_to_a_token_that_may_not_see_it(db, client):
    create_and_add("secret/1", MessageWindow(5), users("a"))
    services.branch("secret/1", "acme/1", [])
    token = create_token("acme", prefix="acme/")
    listed = client.get("/api/v1/memories/", headers={"Authorization": f"Bearer {token}"})
    assert [each["labels"] for each in listed.json()["results"]] == [{"from": "step 1"}]
    assert "secret" not in listed.content.decode()


def test_the_overview_links_it_to_its_source(operator_client):
    create_and_add("source", MessageWindow(5), users("a"))
    services.branch("source", "other", [])
    assert '<a class="label" href="/c/source/"' in operator_client.get("/").content.decode()
