"""Langfuse: traces, sessions and observations, as its pages and its API export them; only read.

A generation has what the model was given under `input` and its answer under `output`. A trace
without generations is read as a call. All of one session, else of one trace, are one conversation
in the order of time.
Source of the shapes: Langfuse's API reference, traces, sessions and observations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from chatmemory.formats.conversion import decoded, dict_in, dicts_in, name_of
from chatmemory.formats.exchanges import Call, format_of, format_of_calls
from chatmemory.formats.format import Loss, Refused

_OWN = {
    *("observations", "sessionId", "traceId", "projectId", "htmlPath", "parentObservationId"),
    *("session_id", "trace_id", "startTime", "start_time"),
}
_BARE = {"input", "output", "id", "name", "metadata", "model"}
_WITHIN = ("data", "traces", "observations")
_TIMES = ("startTime", "start_time", "timestamp", "createdAt")


def _finds(value: Any) -> bool:
    """Whether an object has an input and an output with nothing but Langfuse's own beside them, or
    holds such objects.
    """
    if not isinstance(value, dict) or "run_type" in value:
        return False
    if "input" in value and "output" in value:
        is_bare = value.keys() <= _BARE and _has_messages(value["input"])
        return is_bare or not _OWN.isdisjoint(value)
    inner = [each for name in _WITHIN for each in dicts_in(value, name)[:1]]
    inner += [trace] if (trace := dict_in(value, "trace")) else []
    return any(map(_finds, inner))


def _has_messages(value: Any) -> bool:
    value = decoded(value) if isinstance(value, str) else value
    return format_of(value.get("messages") if isinstance(value, dict) else value) is not None


@dataclass
class _Trace:
    name: str | None  # its id, or that of its session
    itself: dict[str, Any] = field(default_factory=dict)
    observations: list[dict[str, Any]] = field(default_factory=list)

    def time(self) -> str:
        return min(filter(None, map(_time, [self.itself, *self.observations])), default="")


def _time(record: dict[str, Any]) -> str:
    return next((each for name in _TIMES if isinstance(each := record.get(name), str)), "")


class _Traces:
    """The traces of a file by their ids, whether observations stand in them or by themselves."""

    def __init__(self) -> None:
        self.found: dict[str, _Trace] = {}

    def read(self, value: Any, trace: str | None = None, session: str | None = None) -> None:
        if not isinstance(value, dict):
            return
        around = dict_in(value, "trace")
        session = name_of(value, "sessionId", "session_id") or session
        session = name_of(around, "sessionId") or session
        if dicts_in(value, "traces"):
            session = name_of(value, "id") or session
        is_trace = "type" not in value and "traceId" not in value
        trace = name_of(value, "traceId", "trace_id") or trace
        if is_trace and ("input" in value or dicts_in(value, "observations")):
            trace = name_of(around or value, "id") or trace
        if "input" in value or "output" in value:
            self.put(value, trace, session, is_trace)
        inner = [each for name in _WITHIN for each in dicts_in(value, name)]
        for each in [*inner, around] if around else inner:
            self.read(each, trace, session)

    def put(
        self, record: dict[str, Any], trace: str | None, session: str | None, is_trace: bool
    ) -> None:
        key = trace if trace is not None else f"unnamed {len(self.found)}"
        known = self.found.setdefault(key, _Trace(trace))
        known.name = session or known.name
        if is_trace:
            known.itself = record
        else:
            known.observations.append(record)


def _calls(values: Iterable[Any]) -> Iterator[Call | Refused]:
    traces = _Traces()
    for value in values:
        traces.read(value)
    for trace in sorted(traces.found.values(), key=_Trace.time):
        said = [each for each in trace.observations if each.get("type") == "GENERATION"]
        records = sorted(said, key=_time) or [trace.itself] if trace.itself or said else []
        records = records or sorted(trace.observations, key=_time)
        losses = []
        if others := len(trace.observations) - len(said) if said or trace.itself else 0:
            losses.append(Loss("trace", f"observations that are no generations ({others:,})"))
        if said and trace.itself:
            losses.append(Loss("trace", "what a trace has beside its generations"))
        for each in records:
            yield Call(each.get("input"), each.get("output"), trace.name, losses=tuple(losses))
            losses = []


FORMAT = format_of_calls("langfuse", _finds, _calls)
