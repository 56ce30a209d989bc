"""Traces: a span for each request, with an event for each change."""

from __future__ import annotations

import pytest
from django.test import Client
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from chatmemory import MessageWindow, services
from inspector.observability import tracing

pytestmark = pytest.mark.django_db(transaction=True)
SECRET = "my card is 4111-1111-QUOKKA"
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def spans():
    exporter = InMemorySpanExporter()
    tracing.set_up(SimpleSpanProcessor(exporter))
    yield exporter.get_finished_spans
    tracing.shut_down()


def test_a_request_is_a_span_of_its_callers_trace(spans, api):
    services.create("m", MessageWindow(1))
    body = {"messages": [{"role": "user", "content": SECRET}] * 2, "format": "openai_chat"}
    url = f"/api/v1/memories/m/messages/?as={SECRET}"
    api.post(url, body, headers={"traceparent": PARENT})
    (span,) = spans()
    assert (span.name, span.kind) == ("POST chatmemory:messages", SpanKind.SERVER)
    assert f"{span.context.trace_id:032x}" == PARENT.split("-")[1]
    assert f"{span.parent.span_id:016x}" == PARENT.split("-")[2]
    assert dict(span.attributes) == {
        "http.request.method": "POST",
        "http.route": "chatmemory:messages",
        "http.response.status_code": 201,
    }
    (event,) = span.events
    assert dict(event.attributes) == {
        "chatmemory.memory_id": "m",
        "chatmemory.steps": 2,
        "chatmemory.said": 2,
        "chatmemory.left": 1,
    }
    assert "QUOKKA" not in span.to_json()


def test_a_404_is_not_an_error(spans):
    Client().get("/c/nobody/")
    assert [span.status.status_code for span in spans()] == [StatusCode.UNSET]


def test_an_unhandled_error_is_recorded_without_its_text(spans):
    with pytest.raises(ValueError, match="QUOKKA"), tracing.request_span("GET", {}):
        raise ValueError(SECRET)
    (span,) = spans()
    assert "QUOKKA" not in span.to_json()


def test_without_configuration_nothing_is_traced(api):
    assert api.get("/api/v1/memories/").status_code == 200
    with tracing.request_span("GET", {}) as span:
        span.end("GET", "inspector:overview", 200)
