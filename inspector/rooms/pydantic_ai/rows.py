"""Reads and writes the entries of Pydantic AI's log, and the messages of the history for each
entry.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from chatmemory.exceptions import UnreadableTranscript
from chatmemory.formats import Loss, parse_objects, render_messages
from chatmemory.integrations import tell
from chatmemory.ledger.windows import read_message
from chatmemory.memories.memory import ChatMemory
from chatmemory.messages.json_values import JsonDict
from chatmemory.messages.message import ChatMessage
from chatmemory.models import Memory, Message
from inspector.rooms.pydantic_ai.models import SavedEntry

FORMAT = "pydantic_ai"


def chain(memory_id: str, head: str | None, limit: int | None = None) -> list[SavedEntry]:
    """Return the log entries of a conversation in order, up to the entry with the ID `head`; [] if
    `head` is None. With `limit`, return only the last entries.

    Raises LookupError if the conversation has no such entry.
    """
    parents = dict(
        SavedEntry.objects.filter(memory_id=memory_id).values_list("entry", "parent").iterator()
    )
    ids: list[str] = []
    while head is not None and (limit is None or len(ids) < limit):
        ids.append(head)
        head = parents[head]
    wanted = set(ids)
    rows = SavedEntry.objects.filter(memory_id=memory_id)
    found = {row.entry: row for row in rows.iterator() if row.entry in wanted}
    return [found[id] for id in reversed(ids)]


def owner_of(entry: str) -> str:
    """Return the ID of a conversation that has the log entry with this ID. If several have it, such
    as after a fork, return the alphabetically first ID. Raises LookupError if none has it.
    """
    rows = SavedEntry.objects.filter(entry=entry, memory__deleted_at__isnull=True)
    found: str | None = rows.order_by("memory_id").values_list("memory_id", flat=True).first()
    if found is None:
        raise LookupError(f"no conversation has an entry with the id {entry!r}")
    return found


def messages_of(memory_id: str, entries: Sequence[SavedEntry]) -> dict[int, ChatMessage]:
    """Return the messages of the history from the first to the last of the given log entries, by
    seq. Messages of other log entries in between are included.
    """
    if not entries:
        return {}
    first = min(entry.first_seq for entry in entries)
    last = max(entry.last_seq for entry in entries)
    rows = Message.objects.filter(memory_id=memory_id, seq__gte=first, seq__lte=last)
    return {row.seq: read_message(row) for row in rows.iterator()}


def values_of(memory_id: str, entries: Sequence[SavedEntry]) -> list[JsonDict]:
    """Return the message of each log entry as JSON in Pydantic AI's format."""
    found = messages_of(memory_id, [entry for entry in entries if entry.content is None])
    return [
        json.loads(entry.content) if entry.content is not None else _value_of(entry, found)
        for entry in entries
    ]


def _value_of(entry: SavedEntry, found: Mapping[int, ChatMessage]) -> JsonDict:
    """Return the message of an entry as JSON, built from the history. After a redaction, the
    history may have several messages for it; they are joined.
    """
    values = _written(said_in(entry, found))
    if not values:
        return {"kind": "request", "parts": []}
    value = {**values[0], "parts": [part for each in values for part in each["parts"]]}
    return value if entry.instructions is None else value | {"instructions": entry.instructions}


def said_in(entry: SavedEntry, found: Mapping[int, ChatMessage]) -> list[ChatMessage]:
    """Return the messages of the history for one log entry, in order. `found` has messages of the
    history by seq.
    """
    return [found[seq] for seq in range(entry.first_seq, entry.last_seq + 1) if seq in found]


def _written(messages: Sequence[ChatMessage]) -> list[JsonDict]:
    written = render_messages(messages, FORMAT).value
    assert isinstance(written, list)
    return written


def append(memory: ChatMemory, entries: Iterable[tuple[str, str | None, JsonDict]]) -> None:
    """Add log entries and their messages to a conversation. The caller has locked the
    conversation's row.

    Each entry is a tuple: its ID, the ID of the previous entry (None for the first entry), and the
    message as JSON.
    """
    after = memory.messages_with_interrupted()
    for id, parent, value in entries:
        said = _read(memory, _without_instructions(value), after)
        after = [*after, *said]
        before = _newest(memory.id)
        memory.extend(said)
        newest = _newest(memory.id)
        is_told = newest - before == len(said) and _written(said) == [_without_instructions(value)]
        SavedEntry.objects.create(
            memory_id=memory.id,
            entry=id,
            parent=parent,
            first_seq=before + 1,
            last_seq=newest,
            instructions=value.get("instructions"),
            content=None if is_told else json.dumps(value),
        )


def _without_instructions(value: JsonDict) -> JsonDict:
    return {name: each for name, each in value.items() if name != "instructions"}


def _read(
    memory: ChatMemory, value: JsonDict, after: Iterable[ChatMessage]
) -> Sequence[ChatMessage]:
    """Return the messages for the history that an entry stands for. What cannot be stored is
    logged. Empty if the entry cannot be read.
    """
    try:
        read = parse_objects([value], FORMAT, after=after)
    except UnreadableTranscript as error:
        tell(memory, [Loss("an entry of the conversation", str(error))])
        return ()
    tell(memory, read.losses)
    return read.messages


def _newest(memory_id: str) -> int:
    newest: int = Memory.objects.values_list("last_seq", flat=True).get(pk=memory_id)
    return newest
