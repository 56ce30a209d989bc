"""Finds the summaries that still contain exact terms of a message."""

from __future__ import annotations

from collections.abc import Iterable

from chatmemory.conf import fact_words
from chatmemory.ledger.windows import read_message
from chatmemory.models import Message
from chatmemory.reading.history import message_row
from chatmemory.reading.summaries import summaries_covering
from chatmemory.recall.facts import facts_of, texts_with_facts
from chatmemory.recall.term_search import Terms


def summaries_holding(memory_id: str, seq: int) -> list[int]:
    """Return the seqs of a message's summaries that contain one of the message's exact terms.
    Summaries that replaced an earlier summary of the message are searched, too.

    A redacted message has no such summaries, because its terms are gone. Raises MessageNotFound,
    UnstorableText.
    """
    row = message_row(memory_id, seq)
    return [
        summary.seq for summary in holding_terms(row, summaries_covering(row.memory_id, row.seq))
    ]


def holding_terms(row: Message, summaries: Iterable[Message]) -> list[Message]:
    """Return the given summaries whose text contains an exact term of a message.

    A redacted message has no terms, and a redacted summary contains none.
    """
    if row.redacted_step is not None:
        return []
    readable = [summary for summary in summaries if summary.redacted_step is None]
    terms = Terms(facts_of(read_message(row), fact_words()) if readable else ())
    return [
        summary
        for summary in readable
        if any(map(terms.found_in, texts_with_facts(read_message(summary))))
    ]
