"""Services that take time in line with the size of a window."""

from __future__ import annotations

from datetime import UTC, datetime

from inspector.rooms.calls.bodies import OPENAI, made_of
from inspector.rooms.calls.call import NewCall, SentRequest, Source
from inspector.rooms.calls.reads import one_call
from inspector.rooms.calls.recording import record_call
from inspector.rooms.calls.writes import store


def store_and_rebuild(it) -> None:
    request = {"model": "m", **made_of(it.messages, OPENAI)}
    at = datetime(2026, 11, 26, tzinfo=UTC)
    stored = store(NewCall("key", Source.RECORDER, OPENAI, SentRequest(request), at))
    assert one_call(stored.memory_id, stored.n).request == request


def store_beside(it) -> None:
    """In a conversation with this window, which a client decides."""
    request = {"model": "m", **made_of(it.messages, OPENAI)}
    at = datetime(2026, 11, 26, tzinfo=UTC)
    call = NewCall("key", Source.RECORDER, OPENAI, SentRequest(request), at, session=it.id)
    stored = store(call)
    assert one_call(stored.memory_id, stored.n).request == request


ROWS = {
    "store beside": store_beside,
    "store": store_and_rebuild,
    "record_call": lambda it: record_call(f"call of {it.id}", it.list[1:], it.list[:1]),
}
