"""A body of protobuf is counted before anything is made of it."""

from __future__ import annotations

import gzip
import time

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from inspector.rooms.calls.models import DroppedCalls
from inspector.rooms.otlp.bounds import MOST, NoProtobuf, TooMuch, check

from .recordings import bodies, names
from .test_intake import PROTOBUF, app

__all__ = ["app"]
SECONDS = 2  # of CPU, for any body
TRACES = ExportTraceServiceRequest.DESCRIPTOR


def field(number: int, content: bytes) -> bytes:
    """A field with a length."""
    size, length = len(content), b""
    while size >= 0x80:
        length += bytes([size & 0x7F | 0x80])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + content


def trace(spans: bytes) -> bytes:
    return field(1, field(2, spans))


def nested(levels: int) -> bytes:
    value = field(1, b"deep")
    for _ in range(levels):
        value = field(5, field(1, value))
    return value


SPAN = 2
ATTACKS = {
    "spans": trace(field(SPAN, b"") * 500_000),
    "events": trace(field(SPAN, field(11, b"") * 500_000)),
    "attributes": trace(field(SPAN, field(9, b"") * 500_000)),
    "attributes in a list": trace(
        field(SPAN, field(9, field(2, field(5, field(1, b"") * 500_000))))
    ),
    "groups": field(1, b"") * 500_000,
    "fields": trace(field(SPAN, b"\x08\x01" * 1_000_000)),
    "levels": trace(field(SPAN, field(9, field(2, nested(60))))),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_a_small_body_with_many_messages_is_refused_within_two_seconds(app, name):
    packed = gzip.compress(ATTACKS[name])
    assert len(packed) < 20_000
    start = time.process_time()
    answer = app.generic(
        "POST", "/otlp/v1/traces", packed, content_type=PROTOBUF, HTTP_CONTENT_ENCODING="gzip"
    )
    assert time.process_time() - start < SECONDS
    what = name.partition(" ")[0]
    assert answer.status_code == 413
    assert f"at most {MOST[what]:,} are read" in answer.json()["detail"]
    assert f"in {len(ATTACKS[name]):,} bytes" in answer.json()["detail"]
    counted = DroppedCalls.objects.get()
    assert (counted.why, counted.sender, counted.count) == ("too_large", "traces", 1)


@pytest.mark.parametrize(
    "body",
    [
        b"\x0a\x05abc",  # longer than the body
        b"\x0a\x80",  # a length without an end
        b"\x0a" + b"\xff" * 11,
        b"\x0b",  # a group
        b"\x09abc",  # a number of 8 bytes
    ],
)
def test_bytes_that_are_no_protobuf_are_refused(app, body):
    with pytest.raises(NoProtobuf):
        check(body, TRACES)
    assert app.generic("POST", "/otlp/v1/traces", body, content_type=PROTOBUF).status_code == 400
    assert DroppedCalls.objects.get().why == "invalid"


def test_log_records_count_as_spans():
    body = field(1, field(2, field(2, b"") * (MOST["spans"] + 1)))
    with pytest.raises(TooMuch, match=r"10,001 spans"):
        check(body, ExportLogsServiceRequest.DESCRIPTOR)


@pytest.mark.parametrize("name", names())
def test_what_instrumentations_send_is_within_the_bounds(name):
    types = {"traces": ExportTraceServiceRequest, "logs": ExportLogsServiceRequest}
    for signal, body in bodies(name):
        check(body, types[signal].DESCRIPTOR)


def test_as_much_as_the_bounds_allow_is_read():
    attribute = field(9, field(1, b"name") + field(2, field(1, b"text")))
    check(trace(field(SPAN, attribute * 10) * MOST["spans"]), TRACES)
