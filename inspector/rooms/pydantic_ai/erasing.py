"""Erases redacted texts from the copies of Pydantic AI's messages that are stored beside the
history.
"""

from __future__ import annotations

import json

from chatmemory.room import Erased
from inspector.rooms.pydantic_ai.models import SavedConversation, SavedEntry


def erase(erased: Erased) -> None:
    """Erase redacted texts from the log entries of Pydantic AI. The stored JSON of each entry with
    a redacted message is erased, and so are the requests of tool calls that wait for approval.

    Later reads build such an entry from the history, whose messages are redacted. Nothing is done
    for a deleted conversation, because its rows are deleted with it.
    """
    if erased.seqs is None:
        return
    first, last = min(erased.seqs, default=0), max(erased.seqs, default=0)
    entries = SavedEntry.objects.filter(memory_id=erased.memory_id, content__isnull=False)
    entries.filter(first_seq__lte=last, last_seq__gte=first).update(content=None)
    for row in SavedConversation.objects.filter(memory_id=erased.memory_id):
        row.content = json.dumps({**json.loads(row.content), "deferred_tool_requests": None})
        row.save(update_fields=["content"])
