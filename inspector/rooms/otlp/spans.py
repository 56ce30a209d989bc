"""Calls in spans and log records: OpenTelemetry's conventions (gen_ai.…) and OpenInference's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

from inspector.rooms.calls.call import Dropped, GivenCall, Why
from inspector.rooms.otlp import genai, openinference
from inspector.rooms.otlp.records import Record

EVENT = "gen_ai.client.inference.operation.details"
_PER_MESSAGE = {
    *("gen_ai.system.message", "gen_ai.user.message", "gen_ai.assistant.message"),
    *("gen_ai.tool.message", "gen_ai.choice"),
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def calls_of_spans(records: Iterable[Record]) -> Iterator[GivenCall | Dropped]:
    """Yield the calls of spans, and those that are left out. Other spans are none."""
    for record in records:
        if openinference.is_call(record):
            read = openinference.read(record, started(record))
            if not isinstance(read, GivenCall) and genai.has_messages(record):
                read = genai.read(record, started(record))
            yield read
        elif genai.is_call(record):
            yield genai.read(record, started(record))


def calls_of_logs(records: Iterable[Record]) -> Iterator[GivenCall | Dropped]:
    """Yield the calls of log records. The events of one call's messages are left out once."""
    told = set()
    for record in records:
        if record.event == EVENT:
            yield genai.read(record, started(record))
        elif record.event in _PER_MESSAGE and (record.trace_id, record.span_id) not in told:
            told.add((record.trace_id, record.span_id))
            yield Dropped(Why.PER_MESSAGE_EVENTS, record.scope)


def started(record: Record) -> datetime:
    """Return when a call began, to the microsecond."""
    return _EPOCH + timedelta(microseconds=record.start // 1000)
