"""Calls in spans and log records: OpenTelemetry's conventions (gen_ai.…) and OpenInference's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from chatmemory.messages.runs import digests_of
from inspector.rooms.calls.bodies import messages_in
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
    counted = set()
    for record in records:
        if record.event == EVENT:
            yield genai.read(record, started(record))
        elif record.event in _PER_MESSAGE and (record.trace_id, record.span_id) not in counted:
            counted.add((record.trace_id, record.span_id))
            yield Dropped(Why.PER_MESSAGE_EVENTS, record.scope)


def without_doubles(calls: Iterable[GivenCall]) -> list[GivenCall]:
    """Return calls by their start, without those that two instrumentations have sent, such as that
    of a framework and that of the provider's library.

    Such a call is twice in a batch: with the same model and messages, one within the time of the
    other. The exact one is kept, or else the inner one; it has the session of either.
    """
    kept: list[GivenCall] = []
    digests: dict[str, list[bytes]] = {}

    def has_same_messages(one: GivenCall, other: GivenCall) -> bool:
        for each in (one, other):
            if each.key not in digests:
                digests[each.key] = digests_of(messages_in(each.request, each.format) or ())
        return digests[one.key] == digests[other.key]

    for call in sorted(calls, key=lambda each: each.at):
        around = (n for n in reversed(range(len(kept))) if _is_around(kept[n], call))
        place = next((n for n in around if has_same_messages(kept[n], call)), None)
        if place is None:
            kept.append(call)
            continue
        outer = kept[place]
        chosen = outer if outer.is_exact and not call.is_exact else call
        kept[place] = replace(chosen, session=outer.session or call.session)
    return kept


def _is_around(outer: GivenCall, inner: GivenCall) -> bool:
    """Whether a call of the same model, which began before, ended later, and has another sender."""
    return (
        outer.sender != inner.sender and outer.model == inner.model and _end(inner) <= _end(outer)
    )


def _end(call: GivenCall) -> datetime:
    return call.at + timedelta(seconds=call.duration or 0)


def started(record: Record) -> datetime:
    """Return when a call began, to the microsecond."""
    return _EPOCH + timedelta(microseconds=record.start // 1000)
