"""Messages are stored as they are, whatever their length, and each text once."""

from __future__ import annotations

import pytest
from django.db import connection

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
from chatmemory.ledger.verification import verify
from chatmemory.models import Message
from chatmemory.services import protocol

from ..conversations import create_and_add

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
    create_and_add("m", MessageWindow(9), SAID)
    return "m"


def test_messages_are_stored_read_and_verified(conversation):
    assert queries.said(conversation) == queries.window(conversation).messages == SAID
    for row, message in zip(Message.objects.order_by("seq"), SAID, strict=True):
        assert row.payload == message_to_json(message)
        assert (row.frame == row.payload) == message.has_tool_execution_requests
        assert message.has_tool_execution_requests or row.text not in row.frame
    assert verify(conversation) is None
    for column in ("text", "frame"):
        row = Message.objects.get(seq=2)
        Message.objects.filter(seq=2).update(**{column: getattr(row, column).replace("A-1", "B-2")})
    assert verify(conversation).row == "message #2"


def test_only_equal_messages_return(conversation):
    services.set_messages(conversation, [UserMessage("another")])
    named = UserMessage(SAID[1].single_text(), name="Ada")
    services.set_messages(conversation, [named])
    assert [row.seq for row in queries.window(conversation).rows] == [7]
    services.set_messages(conversation, SAID)
    assert [row.seq for row in queries.window(conversation).rows] == [1, 2, 3, 4, 5]
    services.set_messages(conversation, [named])
    assert queries.window(conversation).messages == [named]


TEXTS = {
    "words": "a word " * 70_000,
    "an emoji": "a word " * 70_000 + "\N{SLOTH}",
    "controls": "\x1fa\\\x02" * 10_000,
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_long_text_is_stored_as_it_is(text):
    services.create("long", MessageWindow(9))
    said = [UserMessage(text), AiMessage("short")]
    services.add("long", said)
    services.set_messages("long", [SystemMessage(text), *said])
    protocol.update_messages("long", [SystemMessage(text), *said, UserMessage(text + "!")])
    assert queries.said("long") == [*said, SystemMessage(text), UserMessage(text + "!")]
    assert verify("long") is None
    assert Message.objects.get(seq=1).text == text
    with connection.cursor() as cursor:
        kind = "pg_typeof" if connection.vendor == "postgresql" else "typeof"
        cursor.execute(f"SELECT DISTINCT {kind}(text), {kind}(frame) FROM chatmemory_message")
        assert {*cursor.fetchall()} == {("text", "text")}
