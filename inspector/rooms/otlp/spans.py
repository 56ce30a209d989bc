"""Finds model calls in spans and log records, in the conventions of OpenTelemetry (gen_ai.…) or
OpenInference.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from chatmemory.formats.runs import digests_of
from inspector.rooms.calls.bodies import messages_in
from inspector.rooms.calls.call import Dropped, DropReason, NewCall
from inspector.rooms.otlp import genai, openinference
from inspector.rooms.otlp.records import Record

EVENT = "gen_ai.client.inference.operation.details"
_PER_MESSAGE = {
    *("gen_ai.system.message", "gen_ai.user.message", "gen_ai.assistant.message"),
    *("gen_ai.tool.message", "gen_ai.choice"),
}
_NEAR = 20  # calls before and after a span that may overlap with it


def calls_of_spans(records: Iterable[Record]) -> Iterator[NewCall | Dropped]:
    """Yield the model calls in spans. If a call cannot be stored, yield the reason.

    Two libraries can trace the same call, in a span with its messages and in a span without them.
    Then the span without messages is ignored.
    """
    found = [(record, read) for record in records if (read := _read(record)) is not None]
    calls = [read for _, read in found if isinstance(read, NewCall)]
    calls.sort(key=lambda each: each.at)
    starts = [each.at for each in calls]
    for record, read in found:
        if isinstance(read, Dropped) and read.why is DropReason.NO_MESSAGES:
            place = bisect(starts, record.at)
            near = calls[max(0, place - _NEAR) : place + _NEAR]
            if any(_is_during(record, each) for each in near):
                continue
        yield read


def _read(record: Record) -> NewCall | Dropped | None:
    """Return the call of a span, or why it cannot be stored. Return None if the span is not a
    call.
    """
    if openinference.is_call(record):
        read = openinference.read(record)
        has_more = isinstance(read, Dropped) and genai.has_messages(record)
        return genai.read(record) if has_more else read
    return genai.read(record) if genai.is_call(record) else None


def _is_during(record: Record, call: NewCall) -> bool:
    """Return whether a span can be the same call as `call`, traced by another library: same model,
    same time.
    """
    is_other = record.scope != call.sender
    is_of_model = record.attributes.get("gen_ai.request.model", call.model) == call.model
    end = record.at + timedelta(seconds=record.duration or 0)
    return is_other and is_of_model and call.at <= end and record.at <= _end(call)


def calls_of_logs(records: Iterable[Record]) -> Iterator[NewCall | Dropped]:
    """Yield the model calls in log records. If a call cannot be stored, yield the reason.

    Some libraries log one event for each message of a call, instead of one event for the call. Such
    a call cannot be stored, and the reason is yielded once for each span.
    """
    counted = set()
    for record in records:
        if record.event == EVENT:
            yield genai.read(record)
        elif record.event in _PER_MESSAGE and (record.trace_id, record.span_id) not in counted:
            counted.add((record.trace_id, record.span_id))
            yield Dropped(DropReason.PER_MESSAGE_EVENTS, record.scope)


def without_doubles(calls: Iterable[NewCall]) -> list[NewCall]:
    """Return each call once, sorted by the start of its first trace. A call can be traced twice: by
    a framework (the outer trace) and by the provider's library (the inner trace).

    Two traces belong to one call under these conditions:

    - They have different senders, the same model and the same messages.
    - The inner trace lies within the time of the outer trace.

    The inner trace is returned, unless only the outer trace has the complete request (`is_exact`).
    `session`, the app's name for the conversation, is that of the outer trace. If the outer trace
    has no `session`, that of the inner trace is taken.
    """
    distinct: list[NewCall] = []
    digests: dict[str, list[bytes]] = {}

    def has_same_messages(one: NewCall, other: NewCall) -> bool:
        for each in (one, other):
            if each.key not in digests:
                digests[each.key] = digests_of(messages_in(each.sent.request, each.format) or ())
        return digests[one.key] == digests[other.key]

    for call in sorted(calls, key=lambda each: each.at):
        around = (n for n in reversed(range(len(distinct))) if _is_around(distinct[n], call))
        place = next((n for n in around if has_same_messages(distinct[n], call)), None)
        if place is None:
            distinct.append(call)
            continue
        outer = distinct[place]
        chosen = outer if outer.sent.is_exact and not call.sent.is_exact else call
        distinct[place] = replace(chosen, session=outer.session or call.session)
    return distinct


def _is_around(outer: NewCall, inner: NewCall) -> bool:
    """Return whether `outer` ended after `inner`, with the same model and another sender. The
    caller knows that `outer` began first.
    """
    return (
        outer.sender != inner.sender and outer.model == inner.model and _end(inner) <= _end(outer)
    )


def _end(call: NewCall) -> datetime:
    return call.at + timedelta(seconds=call.received.duration or 0)
