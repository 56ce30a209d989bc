"""The words and the sums of a page agree at every step, under any changes."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import TokenWindow, UserMessage, services
from chatmemory.explain import captions, wording
from chatmemory.explain.causes import cause_of
from chatmemory.explain.wording import policy_words
from chatmemory.ledger import protocol
from chatmemory.reading import conversations
from inspector.conversation.page import ConversationPage
from inspector.conversation.state import conversation_state
from inspector.shell.state import ConversationQuery

from ..conversations import create_and_add, users
from ..properties import examples
from .test_receipts import changes, conversation, policies, stored_changes

counted_by = st.sampled_from(["gpt-4o", "gpt-4o", "gpt-4"])
STEP = re.compile(r"(?:forgotten at|left at|since) step ([\d,]+)")


def page_at(at: int, **query) -> ConversationPage:
    return ConversationPage(conversation_state("m", ConversationQuery(at=at, **query)))


@given(policy=policies, sequence=st.lists(changes, min_size=1, max_size=5))
@examples(15)
def test_a_page_tells_one_story(db, policy, sequence):
    with conversation(policy, sequence):
        last = conversations.memory("m").last_step
        for at in range(last + 1):
            page = page_at(at)
            check_numbers(page)
            check_steps(page)
            if at in (last // 2, last):
                check_reasons(page)


def check_numbers(page: ConversationPage) -> None:
    """The head, the receipt, the caption and the pane have the same numbers."""
    lines = page.panel.receipt
    hidden = page.hidden.load if page.hidden else 0
    assert page.gauge.load == page.kept.load
    assert not lines or lines[-1].amount == page.kept.load + hidden
    is_over = page.gauge.limit is not None and page.gauge.load > page.gauge.limit
    assert (page.gauge.over > 0) == is_over
    assert bool(page.over_limit) == (is_over or hidden > 0)
    assert not (is_over and "It fits." in page.caption.summary)
    stored = {row.seq for row in (*page.window.rows, *page.window.over_limit)}
    assert len(stored) == page.window.stored.count
    said = {row.row.seq for row in page.history_pane.rows}
    assert len(said) == page.said_count
    seen = set(page.window.seqs)
    assert len(seen) == len(seen & said) + page.injected_count
    if stored <= said:
        assert page.history.load == page.kept.load + hidden + page.forgotten.load
    if page.unit == "msg":
        policy = page.window.policy
        counted = {row.row.seq for row in page.history_pane.rows if policy.weigh(row.row)}
        assert (page.history.load, page.forgotten.load) == (len(counted), len(counted - stored))


def check_steps(page: ConversationPage) -> None:
    """No row names a step that is later than the step of the page."""
    tags = [row.tag for row in page.history_pane.rows]
    words = [cell.words for cell in page.timeline.cells] if page.timeline else []
    for text in (*tags, *words):
        assert all(int(step.replace(",", "")) <= page.at for step in STEP.findall(text))


def check_reasons(page: ConversationPage) -> None:
    """History, Why? and the ledger name one cause."""
    for said in page.history_pane.rows:
        selected = page_at(page.at, msg=said.row.seq)
        life = selected.panel.why.life
        assert life.entered <= page.at
        assert life.left is None or life.left <= page.at
        departure = said.row.departure(page.at)
        if departure is None or departure.reason is None:
            continue
        cause = cause_of(departure.reason, departure.misfit)
        assert said.tag == f"left memory at step {departure.left_step:,} · {cause.short}"
        assert selected.panel.why.explanation.cause == cause.sentence
        assert life.left == departure.left_step


@given(before=policies, policy=policies, estimators=st.tuples(counted_by, counted_by))
@examples(200)
def test_different_policies_have_different_words(before, policy, estimators):
    before, policy = (
        replace(each, estimator=estimator)
        for each, estimator in zip((before, policy), estimators, strict=True)
    )
    same = policy_words(before)
    assert (policy_words(policy, before) == same) == (policy == before)


def test_a_step_that_changes_only_an_option_or_the_estimator_names_it(db):
    create_and_add("m", TokenWindow(400), [UserMessage("hello")])
    for policy in (
        TokenWindow(400, estimator="gpt-4"),
        TokenWindow(400, estimator="gpt-4", always_keep_system_message_first=True),
        TokenWindow(400, estimator="gpt-4"),
        TokenWindow(400, estimator="gpt-4", meters_only=True, oversized="keep"),
        TokenWindow(400, estimator="gpt-4", meters_only=True),
    ):
        services.change("m", policy=policy)
    assert [captions.caption(change).event for change in stored_changes("m")[1:]] == [
        "The policy became Token window 400, counted as gpt-4",
        "The policy became Token window 400, system message kept first",
        "The policy became Token window 400, no longer system message kept first",
        "The policy became Token window 400, only measured",
        "The policy became Token window 400, only measured, oversized evict",
    ]


@pytest.mark.parametrize(
    ("numbers", "words"),
    [(range(1, 2001), "#1 to #2000"), (range(1, 4001, 2), "#1, #3, #5 and 1,997 more")],
)
def test_very_many_messages_are_a_number_with_a_comma(numbers, words):
    assert wording.seqs(numbers) == words


def test_injected_messages_are_marked(db):
    words = users("a", "b")
    protocol.update_messages("m", words)
    protocol.update_messages("m", [words[0], UserMessage("a summary"), words[1]])
    page = page_at(2, msg=3)
    assert page.caption.event == "User message #3 was put into memory, not in history"
    assert [row.note for row in page.memory_pane.messages] == ["", "not in history", ""]
    assert page.panel.why.is_injected
    assert page.injected_count == 1
