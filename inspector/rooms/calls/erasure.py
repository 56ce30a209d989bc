"""Erases copies of erased messages from the rows of calls."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from django.db.models import Q

from chatmemory.conf import fact_words
from chatmemory.ledger.windows import read_message
from chatmemory.messages.message import text_of
from chatmemory.models import Message, Stay
from chatmemory.recall.facts import facts_of
from chatmemory.recall.term_search import Terms
from chatmemory.room import Erased
from inspector.rooms.calls.beside import redact_own
from inspector.rooms.calls.bodies import OWN_FIELDS
from inspector.rooms.calls.matching import forget_known
from inspector.rooms.calls.models import (
    CallEnd,
    CallMessage,
    CallRun,
    KnownMessage,
    ModelCall,
)
from inspector.rooms.calls.places import decoded
from inspector.rooms.calls.tools import REDACTED, forget_tools, redact_tools

SHORTEST = 4  # characters of a text that is looked for
_ALL = (ModelCall, CallMessage, KnownMessage, CallRun, CallEnd)


def erase(erased: Erased) -> None:
    """Erase the words of some messages from calls, or erase all calls of a conversation.

    The messages of a request are in the ledger, where a redaction leaves a tombstone. Everything
    else is erased here: pieces of messages that the ledger does not have, errors, and messages that
    were never said, tools and parameters that contain the text or an exact term of it.
    """
    if erased.seqs is None:
        for model in _ALL:
            model.objects.filter(memory_id=erased.memory_id).delete()
        forget_tools(erased.memory_id)
        return
    CallEnd.objects.filter(memory_id=erased.memory_id).delete()
    CallRun.objects.filter(memory_id=erased.memory_id).update(digests=b"")
    holds = _holder(Message.objects.filter(memory_id=erased.memory_id, seq__in=erased.seqs))
    redact_tools(erased.memory_id, holds)
    forget_known(erased.memory_id, erased.seqs)
    gone = {*erased.seqs} | redact_own(erased.memory_id, holds)
    changed = _steps_with(erased.memory_id, erased.seqs)
    for call in ModelCall.objects.filter(memory_id=erased.memory_id):
        before = (call.difference, call.response, call.error)
        call.difference = _without_pieces(call.difference, call.format, holds)
        call.response = _without_pieces_of_answer(call.response, holds)
        call.error = REDACTED if call.error else ""
        has_gone = call.step in changed or any(each.seq in gone for each in decoded(call.places))
        if before != (call.difference, call.response, call.error) or has_gone:
            call.is_exact, call.style = False, ""
            call.save()


def _holder(rows: Iterable[Message]) -> Callable[[str], bool]:
    """Return a function that tells whether a text has one of these messages or its exact terms."""
    messages = [read_message(row) for row in rows if row.redacted_step is None]
    terms = [Terms(facts_of(each, fact_words())) for each in messages]
    texts = [text for text in map(text_of, messages) if len(text) >= SHORTEST]
    return lambda text: (
        any(each in text for each in texts) or any(each.found_in(text) for each in terms)
    )


def _steps_with(memory_id: str, seqs: Iterable[int]) -> set[int | None]:
    """Return the steps of the calls whose request has one of these messages."""
    steps = ModelCall.objects.filter(memory_id=memory_id).values_list("step", flat=True)
    found: set[int | None] = set()
    for stay in Stay.objects.filter(memory_id=memory_id, seq__in=seqs):
        within = Q(step__gte=stay.entered_step)
        if stay.left_step is not None:
            within &= Q(step__lt=stay.left_step)
        found.update(steps.filter(within))
    return found


def _without_pieces(difference: str, format: str, holds: Callable[[str], bool]) -> str:
    """Return the difference of a request without pieces of messages and without texts that `holds`
    finds.
    """
    if not difference:
        return ""
    found = json.loads(difference)
    if "c" not in found:
        return ""
    remaining = {
        name: each
        for name, each in found["c"].items()
        if name not in OWN_FIELDS[format] and not holds(json.dumps(each, ensure_ascii=False))
    }
    return json.dumps({"k": found["k"], "c": remaining}, separators=(",", ":"))


def _without_pieces_of_answer(response: str, holds: Callable[[str], bool]) -> str:
    """Return the difference of an answer without pieces that the ledger does not have."""
    if not response:
        return ""
    body: dict[str, Any] = json.loads(response)
    if "whole" in body or holds(json.dumps(body["around"], ensure_ascii=False)):
        return ""
    return json.dumps({"around": body["around"], "said": None}, separators=(",", ":"))
