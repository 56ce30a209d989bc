"""Stored messages have their text once."""

from __future__ import annotations

import pytest

from chatmemory import (
    AiMessage,
    MessageWindow,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    message_to_json,
    queries,
    services,
)
from chatmemory.ledger.changes import NewMessage
from chatmemory.ledger.verification import verify
from chatmemory.models import Message

pytestmark = [pytest.mark.django_db, pytest.mark.database]

SAID = [
    SystemMessage("Be brief."),
    UserMessage('my "order" is A-1\n\N{SLOTH}'),
    AiMessage("I look.", (ToolExecutionRequest("1", "find", '{"order":"A-1"}'),)),
    ToolExecutionResultMessage("1", "find", "sent\tyesterday"),
    AiMessage("It was sent."),
]


@pytest.fixture
def conversation() -> str:
    services.create("m", MessageWindow(9))
    services.add("m", SAID)
    return "m"


def test_a_text_is_stored_once():
    services.create("m", MessageWindow(9))
    services.add("m", SAID)
    for row, message in zip(Message.objects.order_by("seq"), SAID, strict=True):
        assert row.payload == message_to_json(message)
        assert (row.frame == row.payload) == message.has_tool_execution_requests
        assert message.has_tool_execution_requests or row.text not in row.frame


def test_messages_are_read_and_vouched_for(conversation):
    assert queries.said(conversation) == queries.window(conversation).messages == SAID
    assert [row.payload for row in Message.objects.order_by("seq")] == [*map(message_to_json, SAID)]
    assert verify(conversation) is None
    for column in ("text", "frame"):
        row = Message.objects.get(seq=2)
        Message.objects.filter(seq=2).update(**{column: getattr(row, column).replace("A-1", "B-2")})
    assert verify(conversation).row == "message #2"


def test_messages_return(conversation):
    services.set_messages(conversation, [UserMessage("another")])
    services.set_messages(conversation, SAID)
    assert [row.seq for row in queries.window(conversation).rows] == [1, 2, 3, 4, 5]
    assert verify(conversation) is None


def test_only_equal_messages_return(conversation):
    services.set_messages(conversation, [UserMessage("another")])
    named = UserMessage(SAID[1].single_text(), name="Ada")
    services.set_messages(conversation, [named])
    assert [row.seq for row in queries.window(conversation).rows] == [7]
    assert queries.window(conversation).messages == [named]


def test_copies_are_found_and_erased(conversation):
    services.branch(conversation, "branch", [])
    assert queries.copies(conversation, 2) == [("branch", 2)]
    services.redact(conversation, 2, branches=["branch"])
    for memory_id in (conversation, "branch"):
        row = Message.objects.get(memory=memory_id, seq=2)
        assert "A-1" not in row.frame + row.text
        assert verify(memory_id) is None


def test_a_message_that_is_sent_again_is_known(conversation):
    Message.objects.filter(seq=2).update(client_id="mine")
    (result,) = services.add(conversation, [NewMessage(SAID[1], client_id="mine")])
    assert (result.seq, result.step) == (2, None)
