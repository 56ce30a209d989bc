"""Texts of any length that is allowed are stored, found and vouched for as they are."""

from __future__ import annotations

import pytest
from django.db import connection

from chatmemory import AiMessage, MessageWindow, SystemMessage, UserMessage, queries, services
from chatmemory.ledger.verification import verify
from chatmemory.models import Message
from chatmemory.services import protocol

pytestmark = [pytest.mark.django_db, pytest.mark.database]

TEXTS = {
    "words": "a word " * 70_000,
    "an emoji": "a word " * 70_000 + "\N{SLOTH}",
    "controls": "\x1fa\\\x02" * 100_000,
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
