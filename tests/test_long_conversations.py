from __future__ import annotations

import pytest

from chatmemory import AiMessage, MessageWindow, UserMessage, services
from chatmemory.models import Memory, Message, Stay, Step

from .long_conversations import long_conversation

OF_ONE_CONVERSATION = {"id", "memory_id", "created_at", "updated_at", "at", "said_at"}
DIGESTS = {"head", "labels_salt", "first_labels", "salt", "commitment", "digest"}


def rows(memory_id: str) -> list[dict]:
    """Return all rows of a conversation, without what differs between two conversations."""
    found = [*Memory.objects.filter(pk=memory_id).values()]
    for model in (Message, Stay, Step):
        found += model.objects.filter(memory=memory_id).order_by("pk").values()
    return [
        {name: row[name] for name in row.keys() - OF_ONE_CONVERSATION - DIGESTS} for row in found
    ]


@pytest.mark.parametrize("messages", [1, 9, 10, 11, 60, 61])
def test_the_rows_are_those_of_adds(db, messages):
    long_conversation("made", messages, kept=5)
    said = [(AiMessage, UserMessage)[n % 2](f"m{n}") for n in range(1, messages + 1)]
    services.import_conversation("added", said, MessageWindow(5))
    assert rows("made") == rows("added")
