"""Reading the index of exact terms in a window."""

from __future__ import annotations

from collections.abc import Collection

from chatmemory.ledger.windows import read_message
from chatmemory.models import Message
from chatmemory.recall.index import Index, index_of


def index_among(memory_id: str, seqs: Collection[int]) -> Index | None:
    """Return the index in the first index message among `seqs`, or None."""
    rows = Message.objects.filter(memory_id=memory_id, seq__in=seqs)
    found = filter(None, (index_of(read_message(row)) for row in rows))
    return next(found, None)
