"""Traces for OpenTelemetry, if the extra `otel` is installed and INSPECTOR["TRACES"] is set.

Each request is a span with method, route and status. Each change of a conversation is an event of
the span. Query strings, messages and error texts are left out (docs/adr/0017). OpenTelemetry's own
variables, such as OTEL_EXPORTER_OTLP_ENDPOINT, say where spans are sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from django.core.exceptions import ImproperlyConfigured

from chatmemory.services import ChangeResult
from chatmemory.signals import memory_changed
from inspector.shell.logs import request_id, trace_id

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor
    from opentelemetry.trace import Tracer

_tracer: Tracer | None = None


@contextmanager
def request_span(
    method: str, headers: Mapping[str, str]
) -> Iterator[Callable[[str, str, int], None]]:
    """Open a span for a request, and yield a function. The caller calls this function with method,
    route and status when the request is answered.

    With the header `traceparent`, the span is part of the client's trace.
    """
    if _tracer is None:
        yield lambda method, route, status: None
        return
    from opentelemetry import propagate
    from opentelemetry.trace import SpanKind, StatusCode

    context = propagate.extract({name.lower(): value for name, value in headers.items()})
    with _tracer.start_as_current_span(
        method,
        context,
        kind=SpanKind.SERVER,
        record_exception=False,  # its text may quote a message
        set_status_on_exception=False,
    ) as span:
        span.set_attribute("chatmemory.request_id", request_id.get())
        token = trace_id.set(f"{span.get_span_context().trace_id:032x}")

        def answered(method: str, route: str, status: int) -> None:
            span.update_name(f"{method} {route}")
            span.set_attribute("http.request.method", method)
            span.set_attribute("http.route", route)
            span.set_attribute("http.response.status_code", status)
            if status >= 500:
                span.set_status(StatusCode.ERROR)

        try:
            yield answered
        finally:
            trace_id.reset(token)


def set_up(*processors: SpanProcessor) -> None:
    """Turn tracing on. Without `processors`, spans are sent to a collector by OTLP over HTTP.

    Raises ImproperlyConfigured if OpenTelemetry is not installed.
    """
    global _tracer
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise ImproperlyConfigured(
            "traces need the packages of OpenTelemetry: pip install '.[otel]' in a checkout"
        ) from error
    provider = TracerProvider(resource=Resource.create({"service.name": "chatmemory"}))
    for processor in processors or (BatchSpanProcessor(OTLPSpanExporter()),):
        provider.add_span_processor(processor)
    _tracer = provider.get_tracer("chatmemory")
    memory_changed.connect(_add_event, dispatch_uid="inspector.tracing")


def shut_down() -> None:
    """Turn tracing off."""
    global _tracer
    _tracer = None
    memory_changed.disconnect(dispatch_uid="inspector.tracing")


def _add_event(memory_id: str, results: tuple[ChangeResult, ...], **_: object) -> None:
    """Signal receiver for `chatmemory.signals.memory_changed`: add an event to the span of the
    request.
    """
    from opentelemetry import trace

    attributes: dict[str, str | int] = {
        "chatmemory.memory_id": memory_id,
        "chatmemory.steps": len(results),
        "chatmemory.said": sum(each.said_count for each in results),
        "chatmemory.left": sum(len(each.evicted) for each in results),
    }
    trace.get_current_span().add_event("memory changed", attributes)
