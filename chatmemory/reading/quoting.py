"""Searches the history of a conversation for a model's query, and quotes matching messages.
Messages that left memory come first.
"""

from __future__ import annotations

from functools import reduce
from operator import add

from django.db.models import Case, Exists, OuterRef, Q, QuerySet, Value, When
from django.db.models.expressions import Combinable

from chatmemory import search
from chatmemory.ledger.lookup import find_memory
from chatmemory.messages.message import MessageType
from chatmemory.messages.phrases import SEARCHED
from chatmemory.messages.quotes import BEGINNING, ROLES, TOOL, Query, Quote, Quotes, matched_words
from chatmemory.models import Message, Stay
from chatmemory.reading.history import messages_until
from chatmemory.snapshots import one_snapshot
from chatmemory.tables import NamedRow

_COLUMNS = ("seq", "type", "said_at", "text")


@one_snapshot()
def search_history(memory_id: str, query: Query) -> Quotes:
    """Return quotes of the messages in history that match a query best. Raises MemoryNotFound.

    Redacted messages are left out, and so are calls and results of the search tool itself.
    """
    memory = find_memory(memory_id)
    said = _searched(messages_until(memory.pk, memory.last_seq))
    all_words = reduce(lambda rows, word: rows.filter(search.has(word)), query.words, said)
    rows = _ranked(all_words, Value(len(query.words)), query.limit + 1)
    if not rows and len(query.words) > 1:
        has = [Case(When(search.has(word), then=1), default=0) for word in query.words]
        some = said.annotate(score=reduce(add, has)).filter(score__gt=0)
        best = some.order_by("-score").values_list("score", flat=True).first()
        if best:
            rows = _ranked(some.filter(score=best), Value(best), query.limit + 1)
    matched = matched_words(rows[0].best, query) if rows else "none"
    hits = tuple(
        Quote(
            row.seq,
            ROLES[MessageType(row.type)],
            row.said_at.isoformat().replace("+00:00", "Z"),
            row.here,
            query.quote(row.text[:SEARCHED]),
        )
        for row in rows[: query.limit]
    )
    return Quotes(hits, matched, len(rows) > query.limit)


def _searched(messages: QuerySet[Message]) -> QuerySet[Message]:
    """Return the query for these messages without redacted ones, and without calls and results of
    the search tool.
    """
    answers = Q(type=MessageType.TOOL_EXECUTION_RESULT, text__startswith=BEGINNING)
    calls = Q(type=MessageType.AI, text__startswith=f"{TOOL}(")
    return messages.filter(redacted_step=None).exclude(answers | calls)


def _ranked(messages: QuerySet[Message], best: Combinable, most: int) -> list[NamedRow]:
    """Return the first `most` messages: those that left memory first, and the latest first.

    A cleared tool result counts as left, because the model sees only a placeholder.
    """
    here = Stay.objects.filter(
        memory_id=OuterRef("memory_id"), seq=OuterRef("seq"), left_step=None, overrides=None
    )
    ranked = messages.annotate(here=Exists(here), best=best).order_by("here", "-seq")
    return list(ranked.values_list(*_COLUMNS, "here", "best", named=True)[:most])
