"""Erases redacted texts from Pydantic AI's own copies of messages, which are stored beside the
history.
"""

from __future__ import annotations

import json

from chatmemory.room import Erased
from inspector.rooms.pydantic_ai.models import SavedConversation, SavedEntry


def erase(erased: Erased) -> None:
    """Erase redacted texts from the JSON that Pydantic AI's store has stored for a conversation.

    - The JSON of all log entries from the first to the last redacted message is erased. Later reads
      build these entries from the redacted history.
    - All tool calls that wait for approval are erased, because their arguments can repeat redacted
      texts.

    If the whole conversation is being deleted, do nothing: the deletion also removes this JSON.
    """
    if erased.seqs is None:
        return
    first, last = min(erased.seqs, default=0), max(erased.seqs, default=0)
    entries = SavedEntry.objects.filter(memory_id=erased.memory_id, content__isnull=False)
    entries.filter(first_seq__lte=last, last_seq__gte=first).update(content=None)
    for row in SavedConversation.objects.filter(memory_id=erased.memory_id):
        row.content = json.dumps({**json.loads(row.content), "deferred_tool_requests": None})
        row.save(update_fields=["content"])
