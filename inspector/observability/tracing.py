"""OpenTelemetry, where the extra `otel` is installed and CHATMEMORY_OTEL=1 asks for it.

A span is a request: its method, route and status, and what it changed in numbers. No query of an
address and no word of a message is in it. Where spans go is said by OpenTelemetry's own variables,
such as OTEL_EXPORTER_OTLP_ENDPOINT.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ImproperlyConfigured

from chatmemory.services import ChangeResult
from chatmemory.signals import memory_changed

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor
    from opentelemetry.trace import Tracer

_tracer: Tracer | None = None


class Span:
    """One request, of which nothing is told while nobody traces."""

    def __init__(self, span: Any = None) -> None:
        self._span = span

    def end(self, method: str, route: str, status: int) -> None:
        if self._span is None:
            return
        from opentelemetry.trace import StatusCode

        self._span.update_name(f"{method} {route}")
        self._span.set_attributes(
            {
                "http.request.method": method,
                "http.route": route,
                "http.response.status_code": status,
            }
        )
        if status >= 500:
            self._span.set_status(StatusCode.ERROR)


@contextmanager
def request_span(method: str, headers: Mapping[str, str]) -> Iterator[Span]:
    """A part of the caller's trace, if the request brought one (`traceparent`)."""
    if _tracer is None:
        yield Span()
        return
    from opentelemetry import propagate
    from opentelemetry.trace import SpanKind

    brought = {name.lower(): value for name, value in headers.items()}
    context = propagate.extract(brought)
    with _tracer.start_as_current_span(method, context, kind=SpanKind.SERVER) as span:
        yield Span(span)


def set_up(*processors: SpanProcessor) -> None:
    """Trace from now on; without processors spans go to the collector by OTLP over HTTP.

    Raises ImproperlyConfigured where OpenTelemetry is not installed.
    """
    global _tracer
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise ImproperlyConfigured(
            "CHATMEMORY_OTEL=1 needs the extra: pip install 'chatmemory[otel]'"
        ) from error
    provider = TracerProvider(resource=Resource.create({"service.name": "chatmemory"}))
    for processor in processors or (BatchSpanProcessor(OTLPSpanExporter()),):
        provider.add_span_processor(processor)
    _tracer = provider.get_tracer("chatmemory")
    memory_changed.connect(_tell, dispatch_uid="inspector.observability.tracing")


def shut_down() -> None:
    global _tracer
    _tracer = None
    memory_changed.disconnect(dispatch_uid="inspector.observability.tracing")


def _tell(memory_id: str, results: tuple[ChangeResult, ...], **_: Any) -> None:
    from opentelemetry import trace

    attributes: dict[str, str | int] = {
        "chatmemory.memory_id": memory_id,
        "chatmemory.steps": len(results),
        "chatmemory.said": sum(each.was_said for one in results for each in one.arrived),
        "chatmemory.left": sum(len(each.evicted) for each in results),
    }
    trace.get_current_span().add_event("memory changed", attributes)
