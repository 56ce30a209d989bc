"""Erases redacted and deleted messages from stored model calls, which have copies of messages."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence, Set

from django.db.models import Q

from chatmemory import database
from chatmemory.conf import fact_words
from chatmemory.exceptions import MessageNotFound
from chatmemory.ledger.transaction import audit, lock_memory
from chatmemory.ledger.windows import read_message
from chatmemory.messages.json_values import JsonDict
from chatmemory.messages.message import ChatMessage, text_of
from chatmemory.models import Message, Stay
from chatmemory.recall.facts import facts_of
from chatmemory.recall.term_search import Terms
from chatmemory.room import Erased
from chatmemory.sqlite_files import empty_log_after_erasure
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
from inspector.rooms.calls.reads import one_call
from inspector.rooms.calls.tools import REDACTED, forget_tools, redact_tools

SHORTEST = 4  # characters of a text that is looked for
_ALL = (ModelCall, CallMessage, KnownMessage, CallRun, CallEnd)


def erase(erased: Erased) -> None:
    """Erase the redacted messages of a conversation from its calls. If the conversation was deleted
    (`erased.seqs` is None), delete its calls.

    The messages of the history are redacted by the ledger. This function erases copies of their
    words in the rows of calls, such as in errors, tools and parameters. It also redacts messages
    that only model calls sent, if they have the text or an exact term of a redacted message.
    """
    if erased.seqs is None:
        for model in _ALL:
            model.objects.filter(memory_id=erased.memory_id).delete()
        forget_tools(erased.memory_id)
        return
    rows = Message.objects.filter(memory_id=erased.memory_id, seq__in=erased.seqs)
    messages = [read_message(row) for row in rows if row.redacted_step is None]
    forget_known(erased.memory_id, erased.seqs)
    steps = _steps_with(erased.memory_id, erased.seqs)
    _erase_copies(erased.memory_id, messages, {*erased.seqs}, steps)


def redact_sent(
    memory_id: str, n: int, place: int, *, actor: str = "", expected_version: int | None = None
) -> bool:
    """Redact a message that model calls sent and that is not in history, in all calls of the
    conversation. This cannot be undone.

    `place` is the message's index in the list of call `n`. Returns False if the message was already
    redacted. Raises MemoryNotFound, VersionConflict, CallNotFound, and MessageNotFound if no
    message is at the index. Raises MessageNotFound also for a message in history: use `redact` for
    it.
    """
    with database.atomic():
        lock_memory(memory_id, expected_version)
        row = _sent_only(one_call(memory_id, n).row, place)
        if not row.digest:
            return False
        _erase_copies(memory_id, [read_message(row)], {row.seq})
        audit(
            f"redact message {place} of call {n} of {memory_id!r}",
            action="redact_sent",
            actor=actor,
            memory_id=memory_id,
            call=n,
            place=place,
        )
        database.on_commit(empty_log_after_erasure)
    return True


def _sent_only(call: ModelCall, place: int) -> CallMessage:
    """Return the message at an index of a call's list. Raises MessageNotFound if there is no
    message, or if the message is in history.
    """
    references = decoded(call.places)
    own = -references[place].seq if place < len(references) else 0
    rows = CallMessage.objects.filter(memory_id=call.memory_id, n=own)
    row: CallMessage | None = rows.first()
    if row is None:
        raise MessageNotFound(
            f"call {call.n} has no text of its own at index {place}: give the index of a null in "
            "its `messages`. To redact a message of the history, use its seq"
        )
    return row


def _erase_copies(
    memory_id: str,
    messages: Sequence[ChatMessage],
    gone: Set[int],
    steps: Set[int | None] = frozenset(),
) -> None:
    """Erase the words of redacted messages from all rows of calls.

    `messages` are the redacted messages, and `gone` their seqs. Calls at one of these `steps`, or
    with one of these seqs, are marked as no longer exact.
    """
    CallEnd.objects.filter(memory_id=memory_id).delete()
    CallRun.objects.filter(memory_id=memory_id).update(digests=b"")
    holds = _holder(messages)
    redact_tools(memory_id, holds)
    gone = gone | redact_own(memory_id, holds, gone)
    for call in ModelCall.objects.filter(memory_id=memory_id):
        before = (call.difference, call.response, call.error)
        call.difference = _without_pieces(call.difference, call.format, holds)
        call.response = _without_pieces_of_answer(call.response, holds)
        call.error = REDACTED if call.error else ""
        has_gone = call.step in steps or any(each.seq in gone for each in decoded(call.places))
        if before != (call.difference, call.response, call.error) or has_gone:
            call.is_exact, call.style = False, ""
            call.save()


def _holder(messages: Sequence[ChatMessage]) -> Callable[[str], bool]:
    """Return a function that tells whether a text has one of these messages or its exact terms."""
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
    """Return the patch of a request without the parts that may have erased words: its messages, and
    all members for which `holds` returns True.
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
    """Return the stored parts of a response without its text. "" if other parts have erased
    words.
    """
    if not response:
        return ""
    body: JsonDict = json.loads(response)
    if "whole" in body or holds(json.dumps(body["around"], ensure_ascii=False)):
        return ""
    return json.dumps({"around": body["around"], "said": None}, separators=(",", ":"))
