"""Reads spans and log records from an OTLP request in protobuf or JSON, for any version 1.x of
OTLP.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from math import isfinite

from chatmemory.exceptions import ChatMemoryError, InvalidMessage
from chatmemory.messages.codec import load_json
from chatmemory.messages.json_values import JsonDict, JsonMap, JsonValue
from inspector.rooms.otlp import bounds

PROTOBUF, JSON = "application/x-protobuf", "application/json"
TRACES, LOGS, METRICS = "traces", "logs", "metrics"
_LISTS = {
    TRACES: ("resourceSpans", "scopeSpans", "spans"),
    LOGS: ("resourceLogs", "scopeLogs", "logRecords"),
    METRICS: ("resourceMetrics", "scopeMetrics", "metrics"),
}
HIDDEN = "__REDACTED__"  # in place of content that an app hides
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DEPTH = 20  # levels of nested values
_LATEST = 4 * 10**18  # nanoseconds since 1970: a later time is a wrong clock


class NoOtlp(ChatMemoryError):
    """Raised if the body is not an OTLP request."""


# Wide: a record of OpenTelemetry, with a field for each of its parts that is read.
@dataclass(frozen=True)
class Record:
    """A span, or a log record that belongs to a span. IDs are in hexadecimal, and times in
    nanoseconds since 1970.

    - `name`: the name of a span, or "".
    - `event`: the name of the event in a log record, or "".
    - `body`: the content of a log record; None for a span.
    - `scope`: the library that made the record.
    - `error`: the message of a failure, or "".
    - `start`, `end`: when the record began and ended. `end` equals `start` if the end is not known.
    - `lost`: the number of attributes that the sender has left out.
    """

    trace_id: str
    span_id: str
    attributes: JsonMap
    scope: str = ""
    name: str = ""
    event: str = ""
    start: int = 0
    end: int = 0
    error: str = ""
    lost: int = 0
    body: JsonValue = None

    @property
    def key(self) -> str:
        """A key for the model call, made of trace ID and span ID. A record that is sent twice has
        the same key.
        """
        return f"{self.trace_id}:{self.span_id}"

    @property
    def at(self) -> datetime:
        """The time at which a span or event began, to the microsecond."""
        return _EPOCH + timedelta(microseconds=self.start // 1000)

    @property
    def duration(self) -> float | None:
        """The duration in seconds; None if the end is not known."""
        return (self.end - self.start) / 1e9 if self.end > self.start else None

    def text(self, *names: str) -> str:
        """Return the first non-empty text among the values of the attributes `names`; "" if there
        is no such text.
        """
        return _text(*map(self.attributes.get, names))


@dataclass
class Batch:
    """The records of an OTLP request, and the number of invalid records (`rejected`)."""

    records: list[Record] = field(default_factory=list)
    rejected: int = 0


def read_batch(body: bytes, signal: str, content_type: str) -> Batch:
    """Return the records of an OTLP request. `signal` is `traces`, `logs` or `metrics`. For
    metrics, the batch is empty. Raises NoOtlp, and TooMuch for a body with too many parts.
    """
    value = _json_of(body) if content_type == JSON else _of_protobuf(body, signal)
    batch = Batch()
    if signal == METRICS:
        return batch
    outer, middle, inner = _LISTS[signal]
    if not isinstance(value, dict) or not isinstance(value.get(outer, []), list):
        raise NoOtlp(f"the body must be a JSON object with a list {outer!r}")
    if value and outer not in value:
        raise NoOtlp(
            f"the body has no list {outer!r}: send this signal to its own URL, such as /v1/traces"
        )
    read_id = _id_of_json if content_type == JSON else _id_of_protobuf
    for scope, found in _scoped(value[outer] if value else (), middle, inner):
        try:
            batch.records.append(_record(found, scope, read_id))
        except (KeyError, TypeError, ValueError, AttributeError):
            batch.rejected += 1
    return batch


def _json_of(body: bytes) -> JsonValue:
    try:
        return load_json(body.decode())
    except (UnicodeDecodeError, InvalidMessage) as error:
        raise NoOtlp(f"the body is not valid JSON: {error}") from error


def _scoped(
    resources: Iterable[JsonValue], middle: str, inner: str
) -> Iterator[tuple[str, JsonValue]]:
    """Yield each record with the name of its scope."""
    for resource in resources:
        scopes = resource.get(middle, []) if isinstance(resource, dict) else None
        if not isinstance(scopes, list):
            raise NoOtlp(f"each resource must be an object, and its {middle!r} a list")
        for scope in scopes:
            found = scope.get(inner, []) if isinstance(scope, dict) else None
            if not isinstance(found, list):
                raise NoOtlp(f"each scope must be an object, and its {inner!r} a list")
            named = scope.get("scope")
            name = _text(named.get("name") if isinstance(named, dict) else None)
            yield from ((name, each) for each in found)


def _id_of_json(text: str) -> str:
    return bytes.fromhex(text).hex()


def _id_of_protobuf(text: str) -> str:
    return b64decode(text).hex()


def _record(found: JsonDict, scope: str, read_id: Callable[[str], str]) -> Record:
    """Return a record. Raises KeyError, TypeError, ValueError or AttributeError if invalid."""
    attributes = _named(found.get("attributes", ()))
    start = found.get("startTimeUnixNano") or found.get("timeUnixNano")
    start = int(start or found.get("observedTimeUnixNano") or 0)
    status = found.get("status") or {}
    is_error = status.get("code") in (2, "STATUS_CODE_ERROR")
    messages = [_value(each.get("value")) for each in _of_exceptions(found)]
    error = str(status.get("message") or next(iter(messages), "") or "error") if is_error else ""
    return Record(
        *(read_id(found.get("traceId", "")), read_id(found.get("spanId", "")), attributes, scope),
        name=_text(found.get("name")),
        event=_text(found.get("eventName"), attributes.get("event.name")),
        start=min(max(start, 0), _LATEST),
        end=min(max(int(found.get("endTimeUnixNano") or start), 0), _LATEST),
        error=error,
        lost=int(found.get("droppedAttributesCount") or 0),
        body=_value(found.get("body")),
    )


def _of_exceptions(found: JsonDict) -> Iterator[JsonValue]:
    """Yield the attributes that have the message of an exception."""
    for event in found.get("events") or ():
        yield from (e for e in event.get("attributes", ()) if e["key"] == "exception.message")


def _value(value: JsonValue, depth: int = 0) -> JsonValue:
    """Return a value of OTLP as JSON. OTLP's JSON spells integers as text."""
    if not value or depth > _DEPTH:
        return None
    ((kind, inner),) = value.items()
    match kind:
        case "intValue":
            return int(inner)
        case "doubleValue":
            number = float(inner)
            return number if isfinite(number) else None  # JSON has only finite numbers
        case "arrayValue":
            return [_value(each, depth + 1) for each in inner.get("values", ())]
        case "kvlistValue":
            return _named(inner.get("values", ()), depth + 1)
    return inner


def _named(values: Iterable[JsonValue], depth: int = 0) -> JsonDict:
    """Return values by their keys. Raises KeyError, TypeError or AttributeError if invalid."""
    found = {each["key"]: _value(each.get("value"), depth) for each in values}
    if not all(isinstance(key, str) for key in found):
        raise TypeError("the key of an attribute must be a string")
    return found


def _text(*values: object) -> str:
    """Return the first value that is a text, or ""."""
    return next((each for each in values if isinstance(each, str) and each), "")


# Protobuf


def _of_protobuf(body: bytes, signal: str) -> JsonValue:
    """Return a protobuf body as OTLP's JSON, with ids in base64. Raises NoOtlp, TooMuch."""
    request = _requests()[signal]()
    from google.protobuf.json_format import MessageToDict
    from google.protobuf.message import DecodeError

    try:
        bounds.check(body, request.DESCRIPTOR)
        request.ParseFromString(body)
    except (bounds.NoProtobuf, DecodeError) as error:
        raise NoOtlp(f"the body is not valid protobuf: {error}") from error
    if signal == METRICS:
        return {}
    found = MessageToDict(request)
    if body and not found:
        raise NoOtlp(
            f"the body has no {signal}: send this signal to its own URL, such as /v1/traces"
        )
    return found


def _requests() -> JsonDict:
    """Return the protobuf classes of requests. Raises NoOtlp if their package is not installed."""
    try:
        from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
        from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
            ExportMetricsServiceRequest,
        )
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
            ExportTraceServiceRequest,
        )
    except ImportError as error:
        raise NoOtlp(
            "this server cannot read protobuf, because the package opentelemetry-proto is not "
            "installed: send application/json"
        ) from error
    return {
        TRACES: ExportTraceServiceRequest,
        LOGS: ExportLogsServiceRequest,
        METRICS: ExportMetricsServiceRequest,
    }


# Answers


def answer(signal: str, content_type: str, rejected: int = 0, why: str = "") -> bytes:
    """Return the body of the response to an OTLP request. `signal` is `traces`, `logs` or
    `metrics`. If `rejected`, the number of rejected records, is not 0, the body has this number and
    the reason `why`.
    """
    names = {TRACES: "Spans", LOGS: "LogRecords", METRICS: "DataPoints"}
    if content_type == JSON:
        rejection = {f"rejected{names[signal]}": str(rejected), "errorMessage": why}
        return json.dumps({"partialSuccess": rejection} if rejected else {}).encode()
    if not rejected:
        return b""
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    response = ExportTraceServiceResponse() if signal == TRACES else ExportLogsServiceResponse()
    field_name = "rejected_spans" if signal == TRACES else "rejected_log_records"
    setattr(response.partial_success, field_name, rejected)
    response.partial_success.error_message = why
    found: bytes = response.SerializeToString()
    return found
