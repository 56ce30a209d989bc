"""Langfuse: traces, sessions and observations, as its pages and its API export them. This format is
only read.

- A generation is a model call, with the model's input under `input` and its answer under `output`.
  A trace without generations is read as one call.
- All calls of a session are one conversation, in order of time. So are the calls of a trace without
  a session.
- Two traces without a session are one conversation if one repeats the messages of the other.

Source of the shapes: Langfuse's API reference, traces, sessions and observations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from chatmemory.formats.exchanges import Call, format_of, format_of_calls
from chatmemory.formats.format import Refused
from chatmemory.formats.json_properties import dict_in, dicts_in, name_of
from chatmemory.formats.times import moment_of
from chatmemory.formats.words import Beside, strings_in
from chatmemory.messages.codec import decoded
from chatmemory.messages.json_values import JsonDict, JsonValue

_OWN = {
    *("observations", "sessionId", "traceId", "projectId", "htmlPath", "parentObservationId"),
    *("session_id", "trace_id", "startTime", "start_time"),
}
_BARE = {"input", "output", "id", "name", "metadata", "model"}
_WITHIN = ("data", "traces", "observations")
_TIMES = ("startTime", "start_time", "timestamp", "createdAt")
# Properties of messages, which no record of Langfuse has
_SAYING = ("content", "text", "messages", "message", "parts")
_ELSEWHERE = (
    "the record has words of a message, but neither an input nor an output: the record is not read"
)
_CALL, _TRACE, _OTHER = range(3)


def _finds(value: JsonValue) -> bool:
    """Return whether an object is a record of Langfuse, or has such records.

    A record has an input and an output. If it has no property that only Langfuse writes, the input
    must be messages.
    """
    if not isinstance(value, dict) or "run_type" in value:
        return False
    if "input" in value and "output" in value:
        is_bare = value.keys() <= _BARE and _has_messages(value["input"])
        return is_bare or not _OWN.isdisjoint(value)
    inner = [each for name in _WITHIN for each in dicts_in(value, name)[:1]]
    inner += [trace] if (trace := dict_in(value, "trace")) else []
    return any(map(_finds, inner))


def _has_messages(value: JsonValue) -> bool:
    value = decoded(value) if isinstance(value, str) else value
    return format_of(value.get("messages") if isinstance(value, dict) else value) is not None


def _calls(values: Iterable[JsonValue]) -> Iterator[Call | Refused]:
    for value in values:
        yield from _within(value)


def _within(
    value: JsonValue, trace: str | None = None, session: str | None = None
) -> Iterator[Call | Refused]:
    """Yield the call of a record, and the calls of the records within it, which have the same trace
    and session.
    """
    if not isinstance(value, dict):
        return
    around = dict_in(value, "trace")
    session = name_of(value, "sessionId", "session_id") or name_of(around, "sessionId") or session
    if dicts_in(value, "traces"):
        session = name_of(value, "id") or session
    is_trace = "type" not in value and "traceId" not in value
    trace = name_of(value, "traceId", "trace_id") or trace
    if is_trace and ("input" in value or dicts_in(value, "observations")):
        trace = name_of(around or value, "id") or trace
    if value.get("input") or value.get("output"):
        level = _CALL if value.get("type") == "GENERATION" else _TRACE if is_trace else _OTHER
        times = (value.get(name) for name in _TIMES)
        time = next((each for each in times if isinstance(each, str)), "")
        request, answer = value.get("input"), value.get("output")
        at = moment_of(time)
        around = _BESIDE.without(value, "input", "output", "trace", *_WITHIN)
        yield Call(request, answer, session, trace, trace, level, time, at, around)
    elif any(any(strings_in(value.get(name))) for name in _SAYING):
        yield Refused(name_of(value, "id") or "a record", _ELSEWHERE)
    for each in (each for name in _WITHIN for each in _listed(value, name)):
        yield from _within(each, trace, session)
    if around:
        yield from _within(around, trace, session)


# Properties of records about a call
_BESIDE = Beside(
    texts=(
        *("tags", "release", "environment", "level", "statusMessage", "promptName", "startTime"),
        *("endTime", "completionStartTime", "start_time", "end_time"),
    ),
    wholes=("scores", "modelParameters", "usageDetails", "costDetails", "totalCost"),
)


def _listed(value: JsonDict, name: str) -> list[JsonDict]:
    """Return the records under a property. Its value is a list, one record, or an object whose
    values are records.
    """
    found = dict_in(value, name)
    if not found:
        return dicts_in(value, name)
    inner = [each for each in found.values() if isinstance(each, dict)]
    return [found] if {"input", "output"} & found.keys() or not inner else inner


FORMAT = format_of_calls("langfuse", _finds, _calls)
