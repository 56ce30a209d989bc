"""A conversation whose estimator changed: what was said before is counted otherwise in memory."""

from __future__ import annotations

import pytest

from chatmemory import MessageWindow, TokenWindow, UserMessage, queries, services
from chatmemory.queries import ConversationQuery
from inspector.conversation import ConversationPage

from . import markup

SAID = [UserMessage(f"नमस्ते, मेरा ऑर्डर कहाँ है? यह {n} दिन पहले आना चाहिए था।") for n in range(12)]
NOTE = "Said and forgotten: as counted when said, by another estimator"


@pytest.fixture
def hindi(db) -> str:
    """Twelve messages counted by gpt-4o; gpt-4 counts more, so that the next one evicts some."""
    services.create("hindi", TokenWindow(400))
    services.add("hindi", SAID)
    services.change("hindi", policy=TokenWindow(400, estimator="gpt-4"))
    return "hindi"


def shown(**query) -> ConversationPage:
    return ConversationPage(queries.conversation_state("hindi", ConversationQuery(**query)))


def counted_when_said(seqs) -> int:
    return sum(queries.message("hindi", seq).tokens for seq in seqs)


def test_what_is_forgotten_is_counted_as_it_was_said(hindi):
    services.add(hindi, [UserMessage("और कब?")])
    page = shown()
    gone = [said.row.seq for said in page.history_pane.rows if not said.is_in]
    assert len(gone) > 3
    assert page.forgotten.load == counted_when_said(gone)
    assert page.said.load == counted_when_said(range(1, 14)) + 3


def test_nothing_is_forgotten_before_something_left(hindi):
    """What the limit hides is not forgotten, either."""
    assert shown().hidden
    assert [shown(at=at).forgotten.load for at in range(14)] == [0] * 14


def test_a_window_of_messages_tells_its_tokens_so_too(hindi):
    services.change(hindi, policy=MessageWindow(3, estimator="gpt-4"))
    services.add(hindi, [UserMessage("और कब?")])
    assert shown().forgotten.tokens == counted_when_said(range(1, 11))  # of 13


def test_a_simulation_tells_it_too(hindi):
    trial = queries.Trial((UserMessage("और कब?"),))
    page = ConversationPage(queries.simulated_state(hindi, ConversationQuery(), trial))
    gone = [said.row.seq for said in page.history_pane.rows if not said.is_in]
    assert page.forgotten.load == counted_when_said(gone) > 0


def test_history_counts_a_message_as_memory_does(hindi):
    page = shown()
    in_memory = {row.seq: row.amount for row in page.memory_pane.messages}
    in_history = {s.row.seq: s.tokens for s in page.history_pane.rows if s.is_in}
    assert in_history == in_memory
    before = {said.row.seq: said.tokens for said in shown(at=12).history_pane.rows}
    assert before == {seq: counted_when_said([seq]) for seq in before}


def test_the_page_says_what_is_counted_otherwise(operator_client, hindi):
    page = operator_client.get("/c/hindi/?msg=12")
    now, then = shown().window.rows[-1].tokens, counted_when_said([12])
    assert NOTE in markup.said(page, "tape-read")
    assert f"{now} tok, {then} when it was said" in markup.said(page, "why")
    before = operator_client.get("/c/hindi/?msg=12&at=12")
    assert NOTE not in markup.said(before, "tape-read")
    assert f"· {then} tok" in markup.said(before, "why")
    assert "when it was said" not in markup.said(before, "why")
