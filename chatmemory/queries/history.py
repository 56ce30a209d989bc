"""What was said: pages of it, single messages, and where a phrase stands."""

from __future__ import annotations

from dataclasses import replace

from django.db.models import Count, Q, QuerySet

from chatmemory.core.exceptions import (
    MessageNotFound,
)
from chatmemory.core.messages import ChatMessage
from chatmemory.ledger.stored_window import read_message
from chatmemory.models import Message, Step
from chatmemory.queries.conversations import stored_memory, stored_step
from chatmemory.queries.rows import MessageRow, Page, step_row, with_stays

NEAREST_WORDS = 5


def history(
    memory_id: str,
    *,
    at: int | None = None,
    before: int | None = None,
    after: int | None = None,
    around: int | None = None,
    size: int = 50,
) -> Page:
    """What was said by step `at`, a page of it in order of seq.

    The last `size` messages; or those `before` a seq, `after` a seq, or `around` one. Raises
    MemoryNotFound, StepNotFound.
    """
    row = stored_memory(memory_id)
    newest = row.last_seq if at is None else stored_step(memory_id, at).last_seq if at else 0
    said = Message.objects.filter(memory_id=memory_id, seq__lte=newest, origin=Message.Origin.SAID)
    if after is not None:
        found = list(said.filter(seq__gt=after).order_by("seq")[:size])
    else:
        edge = before if before is not None else newest + 1
        if around is not None:
            ahead = said.filter(seq__gte=around).order_by("seq")[: size // 2 + 1]
            edge = max([seq for (seq,) in ahead.values_list("seq")], default=newest) + 1
        found = list(said.filter(seq__lt=edge).order_by("-seq")[:size])[::-1]
    first, last = (found[0].seq, found[-1].seq) if found else (0, newest)
    return Page(
        rows=with_stays(memory_id, found),
        has_earlier=said.filter(seq__lt=first).exists(),
        has_later=said.filter(seq__gt=last).exists() if found else False,
    )


def said(memory_id: str, at: int | None = None) -> list[ChatMessage]:
    """All that was said by step `at`, in order. Raises MemoryNotFound, StepNotFound."""
    rows = _said_by(memory_id, at).order_by("seq")
    return [read_message(row) for row in rows.iterator(2_000)]


def message(memory_id: str, seq: int) -> MessageRow:
    """One message with its stays, and the step that redacted it.

    Raises MemoryNotFound, MessageNotFound.
    """
    row = Message.objects.filter(memory_id=memory_id, seq=seq).first()
    if row is None:
        stored_memory(memory_id)
        raise MessageNotFound(f"{memory_id!r} has no message #{seq}")
    by = None
    if row.redacted_step is not None:
        by = Step.objects.filter(memory_id=memory_id, n=row.redacted_step).first()
    return replace(with_stays(memory_id, [row])[0], redacted=step_row(by) if by else None)


def mentions(
    memory_id: str, phrase: str, *, at: int | None = None, size: int = 50
) -> tuple[tuple[MessageRow, ...], int]:
    """The latest messages said by step `at` that hold a phrase, and how many do in all.

    In order of seq; letter case aside. Raises MemoryNotFound, StepNotFound.
    """
    said = _said_by(memory_id, at).filter(text__icontains=phrase)
    found = list(said.order_by("-seq")[:size])[::-1]
    return with_stays(memory_id, found), len(found) if len(found) < size else said.count()


def nearest(memory_id: str, phrase: str, *, at: int | None = None) -> str:
    """Of a phrase that nobody said by step `at`, the longest of its words, or else the longest
    beginning of one, that somebody did; empty where there is none.
    """
    words = sorted(set(phrase.split()), key=len, reverse=True)[:NEAREST_WORDS]
    longest = words[0] if words else ""
    shorter = range(len(longest) - 1, max(2, len(longest) - 1 - NEAREST_WORDS), -1)
    parts = [*words, *(longest[:length] for length in shorter)]
    said = _said_by(memory_id, at)
    counts = said.aggregate(
        **{f"part{i}": Count("seq", filter=Q(text__icontains=part)) for i, part in enumerate(parts)}
    )
    return next((part for i, part in enumerate(parts) if counts[f"part{i}"]), "")


def _said_by(memory_id: str, at: int | None) -> QuerySet[Message]:
    """What was said by a step. Raises MemoryNotFound, StepNotFound."""
    newest = 0
    if at is None:
        newest = stored_memory(memory_id).last_seq
    elif at:
        newest = stored_step(memory_id, at).last_seq
    return Message.objects.filter(memory_id=memory_id, seq__lte=newest, origin=Message.Origin.SAID)
