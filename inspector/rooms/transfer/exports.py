"""Writes conversations to files: in the format `chatmemory` with all columns, or as transcripts in
other formats.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import TypeVar

from django.db.models import QuerySet

from chatmemory.exceptions import MemoryNotFound
from chatmemory.formats import Rendering
from chatmemory.ledger.lookup import find_memory, stored
from chatmemory.models import AuditEntry, Memory, Message, Stay, Step
from chatmemory.snapshots import one_snapshot
from chatmemory.streaming import json_list
from inspector.rooms.transfer import lines

# Rows that are read at a time: a message may have media of 4 MB
READ_AT_ONCE = {Message: 5, Stay: 500, Step: 500}

Row = TypeVar("Row", Message, Stay, Step)


def rendered_file(rendering: Rendering) -> Iterator[str]:
    """Yield the text of a file with rendered messages, piece by piece."""
    if rendering.is_text:
        yield from rendering.values
        return
    values = json_list(rendering.values, separator=",\n")
    if rendering.within:
        yield f"{{{json.dumps(rendering.within)}:"
        yield from values
        for name, value in rendering.beside.items():
            yield f",\n{json.dumps(name)}:{json.dumps(value, ensure_ascii=False)}"
        yield "}\n"
    else:
        yield from values
        yield "\n"


def archive_lines(memory_ids: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a file in the format `chatmemory`. Each conversation is read in one
    snapshot of the database. A conversation that was deleted meanwhile is left out.

    The lines of new messages and new stays come before the line of the step that added them.
    """
    yield lines.line({"chatmemory": lines.VERSION})
    count = 0
    for memory_id in memory_ids:
        with suppress(MemoryNotFound):
            yield from _conversation_lines(memory_id)
            count += 1
    yield lines.line({"conversations": count})


def _conversation_lines(memory_id: str) -> Iterator[str]:
    with one_snapshot():
        memory = find_memory(memory_id)
        yield lines.CONVERSATION.write(memory)
        messages, stays = _rows(Message, memory, "seq"), _rows(Stay, memory, "n")
        last_seq = last_stay = 0
        for step in _rows(Step, memory, "n"):
            yield from map(lines.MESSAGE.write, islice(messages, step.last_seq - last_seq))
            yield from map(lines.STAY.write, islice(stays, step.last_stay - last_stay))
            yield lines.STEP.write(step)
            last_seq, last_stay = step.last_seq, step.last_stay
        yield from map(lines.AUDIT.write, _audit_entries(memory))
        yield lines.line({"end": memory.pk})


def _rows(model: type[Row], memory: Memory, number: str) -> Iterator[Row]:
    rows: QuerySet[Row] = model.objects.filter(memory=memory).order_by(number)
    return iter(rows.iterator(chunk_size=READ_AT_ONCE[model]))


def _audit_entries(memory: Memory) -> Iterator[AuditEntry]:
    """Yield the audit entries that are needed to verify a conversation: the deletion of an earlier
    conversation with its ID, and its own redactions.
    """
    entries = list(AuditEntry.objects.filter(memory_id=memory.pk).order_by("pk"))
    is_deletion = [each.action == AuditEntry.Action.DELETE for each in entries]
    newest = max((n for n, deletes in enumerate(is_deletion) if deletes), default=-1)
    head = stored(memory.previous_head).hex()
    deletions = (each for each in entries[: newest + 1] if each.detail.get("head") == head)
    yield from islice(deletions, 1 if head else 0)
    yield from entries[newest + 1 :]
