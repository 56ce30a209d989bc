"""Long texts are stored, found and vouched for as others are."""

from __future__ import annotations

import pytest
from django.db import connection

from chatmemory import AiMessage, MessageWindow, SystemMessage, UserMessage, queries, services
from chatmemory.core.codec import LONG, message_from_json, message_to_json, write_json
from chatmemory.core.exceptions import UnstorableText
from chatmemory.ledger.long_texts import SHORT
from chatmemory.ledger.verification import verify
from chatmemory.models import Message
from chatmemory.services import protocol

pytestmark = [pytest.mark.django_db, pytest.mark.database]

TEXTS = {
    "words": "a word " * LONG,
    "an emoji": "a word " * LONG + "\N{SLOTH}",
    "emoji in a short text": "a word " * SHORT + "\N{SLOTH}",
    "controls at the ends of pieces": ("\x1f" + "a" * (LONG - 2) + "\\") * 3,
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
    with connection.cursor() as cursor:
        kind = "pg_typeof" if connection.vendor == "postgresql" else "typeof"
        cursor.execute(f"SELECT DISTINCT {kind}(text), {kind}(frame) FROM chatmemory_message")
        assert {*cursor.fetchall()} == {("text", "text")}
    assert [row.payload for row in Message.objects.filter(seq=1)] == [message_to_json(said[0])]


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_long_text_is_written_as_its_parts_are(text):
    assert write_json(text) == '"' + "".join(write_json(sign)[1:-1] for sign in text) + '"'
    assert message_from_json(message_to_json(AiMessage(text))) == AiMessage(text)


def test_what_cannot_be_stored_of_a_long_text_is_told():
    services.create("long", MessageWindow(9))
    for text, why in {"\x00\N{SLOTH}": "NUL", "\ud800": "U.D800", "\x00\ud800": "NUL"}.items():
        with pytest.raises(UnstorableText, match=why):
            services.add("long", [AiMessage("a" * LONG + text)])
