"""What would have kept a message: the answer beside why it left."""

from __future__ import annotations

import pytest

from chatmemory import (
    MessageWindow,
    SystemMessage,
    TokenWindow,
    UserMessage,
    policy_from_dict,
    services,
)
from chatmemory.ledger import protocol
from chatmemory.reading import history, windows
from chatmemory.windows.policies import Policy
from inspector.conversation.keeping import SECTION
from inspector.conversation.state import conversation_state
from inspector.shell.state import ConversationQuery

from ..conversations import create_and_add, numbered, users
from ..messages.letters import CALL, RESULT

LONG_WORDS = [UserMessage("übergrößenträger " * n) for n in range(1, 7)]


def would_keep(at: int | None, msg: int, memory_id: str = "c"):
    query = ConversationQuery(at=at, msg=msg, open=frozenset({SECTION}))
    return conversation_state(memory_id, query).selection.would_keep


def limit(at: int | None, msg: int, memory_id: str = "c") -> int | None:
    return would_keep(at, msg, memory_id).keeping.limit


def page_html(client, query: str, memory_id: str = "c") -> str:
    return client.get(f"/c/{memory_id}/?open=kept&{query}").content.decode()


def gpt_4(tokens: int) -> Policy:
    return policy_from_dict({"kind": "token_window", "estimator": "gpt-4", "max_tokens": tokens})


def assert_real_windows_need(needed: int, seq: int, under, messages) -> None:
    """With this limit from the first message on, a conversation has the message; not with less."""
    for tried, stays in ((needed, True), (needed - 1, False)):
        create_and_add(f"under {tried}", under(tried), messages)
        rows = windows.outline(f"under {tried}").rows
        assert (seq in {row.seq for row in rows}) is stays


@pytest.mark.parametrize(
    ("messages", "at", "seq", "needed"),
    [
        (numbered(5), None, 2, 4),
        ([SystemMessage("be brief"), *numbered(9)], None, 8, 4),  # the system message counts
        ([UserMessage("hi"), CALL, RESULT, RESULT, *numbered(2)], None, 3, 5),  # so does the call
        ([UserMessage("hi"), CALL, RESULT, RESULT, *numbered(2)], 5, 4, 4),
    ],
)
def test_a_message_window_is_answered_in_messages(operator_client, db, messages, at, seq, needed):
    create_and_add("c", MessageWindow(2), messages)
    assert limit(at, seq) == needed
    html = page_html(operator_client, f"msg={seq}" + (f"&at={at}" if at else ""))
    assert f"<b>A limit of {needed} messages or more.</b>" in html


def test_a_lowered_limit_is_no_part_of_the_replay(db):
    create_and_add("c", MessageWindow(9), numbered(5))
    services.change("c", policy=MessageWindow(1))
    services.add("c", users("one more"))
    assert limit(None, 3) == 4


def test_tokens_are_counted_again_where_the_estimator_changed(db):
    create_and_add("c", TokenWindow(20), LONG_WORDS)
    services.change("c", policy=gpt_4(20))
    services.add("c", LONG_WORDS)
    assert_real_windows_need(limit(None, 4), 4, gpt_4, history.all_messages("c"))


def test_cleared_or_replaced_messages_have_no_keeping_limit(db):
    create_and_add(
        "c", MessageWindow(9), [SystemMessage("brief"), SystemMessage("kind"), *users("a")]
    )
    services.clear_messages("c")
    assert would_keep(None, 1) is None
    assert would_keep(None, 3) is None


@pytest.mark.parametrize("policy", [None, MessageWindow(3).metering(), MessageWindow(3)])
def test_messages_that_a_client_left_out_have_no_keeping_limit(db, policy):
    services.create("c", policy)
    for first in range(3):
        protocol.update_messages("c", numbered(5)[first : first + 3])
    assert windows.window("c").seqs == [3, 4, 5]
    assert would_keep(None, 1) is None


def test_a_limit_that_is_only_measured_since_is_replayed_as_it_was(operator_client, db):
    create_and_add("c", MessageWindow(2), numbered(5))
    services.change("c", policy=MessageWindow(2).metering())
    assert limit(None, 2) == 4
    compared = "?policy=message_window%3A2&amp;policy=message_window%3A4"
    assert compared in page_html(operator_client, "msg=2")


def test_a_clear_in_between_is_left_out_and_said(operator_client, db):
    create_and_add("c", MessageWindow(2), numbered(4))
    services.clear_messages("c")
    services.add("c", users("one more"))
    html = page_html(operator_client, "msg=2")
    assert "<b>A limit of 4 messages or more.</b>" in html
    assert "cleared or replaced" in html


def test_pins_are_left_out_and_said(operator_client, db):
    """With a limit of 3, nothing could be added beside three pinned messages."""
    create_and_add("c", MessageWindow(5), numbered(3))
    for seq in (1, 2, 3):
        services.pin("c", seq)
    services.add("c", numbered(3))
    html = page_html(operator_client, "msg=4")
    assert "memory needed 6 messages, more than the limit of 5" in html
    assert "<b>The same limit, with nothing pinned.</b> With 3 messages or more from the" in html
    assert "Compare with this limit" not in html
    assert "The replay ignores pins" in html
    assert "with nothing pinned" in page_html(operator_client, "at=9&msg=4")


def test_pins_that_came_later_are_not_left_out(operator_client, db):
    create_and_add("c", MessageWindow(2), numbered(4))
    services.pin("c", 4)
    assert "pinned.</b>" not in page_html(operator_client, "at=4&msg=2")
    assert "pinned.</b>" in page_html(operator_client, "msg=2")


def test_a_limit_that_is_in_force_by_now_is_not_compared_with_a_lower_one(operator_client, db):
    create_and_add("c", MessageWindow(2), numbered(5))
    services.change("c", policy=MessageWindow(4))
    html = page_html(operator_client, "msg=2")
    assert "<b>The same limit from the first message on.</b> With 4 messages or more" in html
    assert "Compare with this limit" not in html


def test_a_long_history_is_replayed_when_asked(operator_client, db):
    create_and_add("c", TokenWindow(20), numbered(520))
    services.change("c", policy=gpt_4(20))
    html = page_html(operator_client, "msg=2")
    assert "The page must replay 519 messages to find the limit." in html
    assert "/c/c/?msg=2&amp;replay=1&amp;open=kept" in html
    html = page_html(operator_client, "at=521&msg=2&replay=1")
    assert "tokens or more.</b>" in html
    assert "Replay</a>" not in html
