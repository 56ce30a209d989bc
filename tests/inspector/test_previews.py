"""Previews of another limit or a draft, compared with the present window of the model."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import ChatMemoryError, MessageWindow, SystemMessage, UserMessage, services
from chatmemory.explain import captions
from chatmemory.explain.reasons import why_left
from chatmemory.reading import conversations, windows
from inspector.rooms.simulation.presenting import trying, writing
from inspector.rooms.simulation.trials import WhatIf, simulate_trial

from ..conversations import create_and_add, numbered
from ..explain.test_receipts import changes, conversation, policies
from ..messages.letters import CALL, RESULT
from ..properties import examples
from .markup import said, tree

HIDDEN = "#1, #2 and #3 are hidden already and leave with"


@pytest.fixture
def lowered(db) -> str:
    """Eight messages, of which a lowered limit hides three."""
    create_and_add("c", MessageWindow(10), numbered(8))
    services.change("c", policy=MessageWindow(5))
    return "c"


def settings(client, limit: int, kind: str = "message_window") -> str:
    typed = {"kind": kind, "limit": limit, "estimator": "gpt-4o", "options_of": kind}
    return said(client.post("/c/c/settings/", typed), "preview")


def verdict(client, text: str = "", **values) -> str:
    typed = {"role": "user", "text": text, **values}
    html = client.post("/c/c/verdict/", typed).content.decode()
    words = " ".join(element.text for element in tree(html).iter() if element.text)
    return re.sub(r" (?=[.:])", "", words)


def preview(client, text: str, **values):
    """The page of the simulation of a text."""
    typed = {"role": "user", "text": text, **values}
    return client.post("/c/c/simulate/", typed, follow=True).context["page"]


def composer_words(page):
    """What the composer says of the drafts of a page."""
    return trying(page.state, page.state.read["trial"])


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        (
            4,
            (
                f"1 message would leave at the next add: #4; {HIDDEN} it. "
                "Message window 4: the model would see 4 messages. Now the model sees 5 messages."
            ),
        ),
        (
            3,
            (
                f"2 messages would leave at the next add: #4 and #5; {HIDDEN} them. "
                "Message window 3: the model would see 3 messages."
            ),
        ),
        (
            6,
            (
                "1 message comes back: #3. #1 and #2 are hidden already and leave at the next add. "
                "Message window 6: the model would see 6 messages. Now the model sees 5 messages."
            ),
        ),
        (8, "3 messages come back: #1, #2 and #3. Message window 8: the model would see 8"),
    ],
)
def test_settings_name_what_is_hidden_already(operator_client, lowered, limit, words):
    assert words in settings(operator_client, limit)


def test_settings_add_up_what_leaves_at_the_next_add(operator_client, lowered):
    words = settings(operator_client, 4)
    assert "How memory adds up" in words
    assert "Already 4 messages over the limit 8 " in words
    assert "#4 User leaves: next oldest" in words
    assert "How memory adds up" not in settings(operator_client, 8)


@pytest.mark.parametrize(
    ("text", "limit", "words"),
    [
        ("", "4", f"Would evict 1 message: #4; {HIDDEN} it. 5 → 4 / 4 msg"),
        ("hello", "", f"Would evict 1 message: #4; {HIDDEN} it. 5 → 5 / 5 msg"),
        ("hello", "4", f"Would evict 2 messages: #4 and #5; {HIDDEN} them. 5 → 4 / 4 msg"),
        ("hello", "9", "Fits. Nothing would leave. #1, #2 and #3 would come back. 5 → 9 / 9 msg"),
        (
            "",
            "6",
            (
                "Fits. Nothing more would leave. #1 and #2 are hidden already and leave at the "
                "next add. #3 would come back. 5 → 6 / 6 msg"
            ),
        ),
    ],
)
def test_the_composer_counts_from_what_is_seen(operator_client, lowered, text, limit, words):
    assert words in verdict(operator_client, text, limit=limit)


def test_a_message_that_follows_a_preview_counts_from_it(operator_client, lowered):
    page = preview(operator_client, "one")
    shown = composer_words(page)
    assert (shown.before, shown.after) == (5, 5)
    words = "Would evict 1 message: #5. 5 → 5 / 5 msg"
    assert words in verdict(operator_client, "two", trial=page.tried["trial"])


def test_the_verdict_has_a_new_limit_and_the_drafts_before_the_text(operator_client, lowered):
    """As Preview tells it. The tokens beside the text are its own."""
    page = preview(operator_client, "one")
    typed = {"limit": 3, "shown": 5, "trial": page.tried["trial"]}
    told = verdict(operator_client, "two", **typed)
    assert "Would evict 4 messages: #4, #5, #6 and #7; #1, #2 and #3 are hidden" in told
    assert "5 → 3 / 3 msg" in told
    assert "5 tok" in told
    previewed = composer_words(preview(operator_client, "two", **typed))
    assert previewed.verdict.detail in told
    assert (previewed.before, previewed.after) == (5, 3)


@given(
    policy=policies,
    sequence=st.lists(changes, min_size=1, max_size=4),
    drafts=st.integers(0, 3),
    first=st.integers(0, 3),
    limit=st.integers(1, 60),
)
@examples(40)
def test_what_leaves_and_comes_back_makes_up_the_difference(
    db, policy, sequence, drafts, first, limit
):
    """In messages: the visible ones, plus arrivals and returns, minus those that leave."""
    with conversation(policy, sequence):
        if conversations.policy("m") is None:
            return
        window = windows.outline("m")
        try:
            trial = WhatIf(tuple(numbered(drafts)), limit)
            simulation = simulate_trial("m", trial, since=first)
        except ChatMemoryError:
            return
        outlook, kept = simulation.outlook(), set(simulation.window.seqs)
        if first == 0 or drafts == 0:
            assert outlook.before == window.totals
        arrived = sum(len(change.arrived) for change in simulation.changes[first:])
        difference = arrived + len(outlook.returning) - len(outlook.leaving)
        assert outlook.before.count + difference == outlook.after.count == len(kept)
        stored = {row.seq for row in (*window.rows, *window.over_limit)}
        if first == 0:
            assert {*outlook.leaving, *outlook.hidden} >= stored - kept
            assert set(outlook.hidden) <= {row.seq for row in window.over_limit}
        told = writing(simulation, first)
        assert (told is None) == (first >= drafts)


PAST = re.compile(r"\b(arrived|came|left|was|were|had|held|needed|took|went|fits)\b")


@given(
    policy=policies, sequence=st.lists(changes, min_size=1, max_size=4), drafts=st.integers(1, 12)
)
@examples(40)
def test_previews_use_the_conditional(db, policy, sequence, drafts):
    with conversation(policy, sequence):
        if conversations.policy("m") is None:
            return
        more = [
            SystemMessage("Be brief."),
            *numbered(drafts),
            UserMessage("word " * 90),
            CALL,
            RESULT,
        ]
        try:
            simulation = simulate_trial("m", WhatIf(tuple(more)))
        except ChatMemoryError:
            return
        for change in simulation.changes:
            if change.ignored:
                continue
            told = [captions.caption(change).summary]
            for seq in [row.seq for row in change.evicted]:
                why = why_left(change, seq)
                told += [why.question, why.summary]
            for words in told:
                assert not PAST.search(words), words
