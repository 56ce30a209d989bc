"""Finds words in messages that only model calls sent, when somebody searches all conversations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.db.models import F, Q, Window
from django.db.models.functions import RowNumber

from chatmemory import search
from chatmemory.reading.finding import FEW, excerpt
from inspector.rooms.calls.models import CallMessage, ModelCall
from inspector.rooms.calls.places import decoded
from inspector.shell.room import HitBeside
from inspector.shell.rooms import page_url

LOOKED_AT = 20  # the newest calls of each conversation, for one that sent the text


def hits(words: str, memory_ids: Sequence[str]) -> dict[str, HitBeside]:
    """Search conversations for words in messages that calls sent and that are not in history.
    Return a dict that maps the ID of each conversation with a match to a hit. The hit is the
    conversation's newest message with the words.
    """
    newest = search.index().newest_beside(words, memory_ids, FEW)
    if not newest:
        return {}
    these = Q()
    for memory_id, n in newest.items():
        these |= Q(memory_id=memory_id, n=n)
    rows = CallMessage.objects.filter(these).annotate(searched=search.beginning("text"))
    texts = dict(rows.values_list("memory_id", "searched"))
    calls = _newest_calls_with(newest)
    return {
        memory_id: _hit(memory_id, excerpt(text, words), calls.get(memory_id))
        for memory_id, text in texts.items()
    }


def _hit(memory_id: str, text: str, call: int | None) -> HitBeside:
    if call is None:
        where, url = "sent in an earlier call", page_url("calls", memory_id)
    else:
        where, url = f"sent in call {call:,}", page_url("call", memory_id, str(call))
    return HitBeside(text, f"{where}, not in history", url)


def _newest_calls_with(numbers: Mapping[str, int]) -> dict[str, int]:
    """Return the number of the newest call that sent a message, by conversation ID. `numbers` has
    the message's number by conversation ID.

    Conversations whose newest calls did not send the message are left out.
    """
    rank = Window(RowNumber(), partition_by="memory_id", order_by=[F("at").desc(), F("n").desc()])
    rows = ModelCall.objects.filter(memory_id__in=list(numbers)).annotate(rank=rank)
    newest = rows.filter(rank__lte=LOOKED_AT).order_by("rank")
    found: dict[str, int] = {}
    for memory_id, n, places in newest.values_list("memory_id", "n", "places"):
        if any(each.seq == -numbers[memory_id] for each in decoded(places)):
            found.setdefault(memory_id, n)
    return found
