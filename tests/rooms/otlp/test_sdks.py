"""The instrumentations of real SDKs, from a call in an app to the stored request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit

import pytest
from rest_framework.test import APIClient

from chatmemory.formats.runs import digests_of
from inspector.rooms.calls.bodies import answer_in, messages_in
from inspector.rooms.calls.models import DroppedCalls, ModelCall

from .sdks import (
    ANSWERS,
    APPS,
    FINISHES,
    LOOKING,
    SECRET,
    Provider,
    ask_anthropic_in_other_ways,
    instrumented,
)
from .test_intake import calls_of, client_of
from .test_recordings import system_of, without_strict

HAVE_THE_REQUEST = {"openinference-openai", "openinference-anthropic"}


@pytest.fixture(autouse=True)
def _messages_are_captured(monkeypatch):
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "span_only")


@pytest.mark.parametrize("name", APPS)
def test_the_request_of_an_app_is_rebuilt(db, name):
    app, provider = client_of("app"), Provider()
    spans = spans_of([name], lambda: APPS[name](provider))
    export(app, spans)
    export(app, spans)  # an exporter may send a batch again
    (id,) = set(ModelCall.objects.values_list("memory_id", flat=True))
    stored = calls_of(app, id)
    assert len(stored) == len(provider.sent) == 3
    assert not DroppedCalls.objects.exists()
    for call, sent in zip(stored, provider.sent, strict=True):
        assert call["is_exact"] is (name in HAVE_THE_REQUEST)
        if call["is_exact"]:
            assert call["request"] == sent
            continue
        assert call["request"]["model"] == call["model"] == sent["model"]
        given, wanted = (messages_in(each, call["format"]) for each in (call["request"], sent))
        assert digests_of(given) == digests_of(wanted)
        assert system_of(given) == system_of(wanted)
        tools = without_strict(sent) if name == "pydantic-ai" else sent["tools"]
        assert call["request"]["tools"] == tools
    said = [answer_in(call["response"], call["format"])[0].text for call in stored]
    assert said == [LOOKING, *ANSWERS]
    assert [call["finish"] for call in stored] == FINISHES[stored[0]["format"]]
    usage = [(call["usage"]["input"], call["usage"]["output"]) for call in stored]
    assert usage == [(100, 20), (200, 20), (300, 20)]


@pytest.mark.parametrize(
    ("names", "is_exact"),
    [
        (("openinference-openai", "pydantic-ai"), True),
        (("openinference-openai", "openinference-langchain"), True),
        (("genai-openai", "pydantic-ai"), False),
        (("genai-openai", "openinference-openai"), True),
    ],
)
def test_a_call_that_two_instrumentations_send_is_one(db, names, is_exact):
    """The one that has the request is kept, or else the one next to the provider."""
    app, provider = client_of("app"), Provider()
    export(app, spans_of(names, lambda: APPS[names[1]](provider)))
    stored = ModelCall.objects.order_by("n")
    assert [call.n for call in stored] == [1, 2, 3]
    assert {call.is_exact for call in stored} == {is_exact}
    assert not any(call.is_broken for call in stored)


def test_what_the_library_of_anthropic_takes_beside_a_request_is_not_kept(db):
    """Its arguments are not always members of the request, and may be secret headers."""
    app, provider = client_of("app"), Provider()
    spans = spans_of(["openinference-anthropic"], lambda: ask_anthropic_in_other_ways(provider))
    assert any(SECRET in str(span.attributes) for span in spans)
    export(app, spans)
    stored = [
        call
        for id in sorted(set(ModelCall.objects.values_list("memory_id", flat=True)))
        for call in calls_of(app, id)
    ]
    stored.sort(key=lambda call: call["at"])
    assert [call["request"] for call in stored] == provider.sent
    assert all(call["is_exact"] for call in stored)
    assert provider.sent[0]["temperature"] == 0.5
    assert "output_config" in provider.sent[2]
    assert not any(SECRET in str(row) for row in ModelCall.objects.values())


def spans_of(names: Sequence[str], run: Callable[[], None]) -> Sequence[Any]:
    """The spans of an app and its instrumentations."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    kept, tracers = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(SimpleSpanProcessor(kept))
    with ExitStack() as instrumentations:
        for name in names:
            instrumentations.enter_context(instrumented(name, tracers))
        run()
    return kept.get_finished_spans()


def export(app: APIClient, spans: Sequence[Any]) -> None:
    """Send spans with the exporter of the SDK to the site of the tests."""
    import requests
    from opentelemetry.exporter.otlp.proto.http import Compression
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import SpanExportResult

    class Site(requests.adapters.BaseAdapter):
        def send(self, request: Any, **how: Any) -> requests.Response:
            path, kind = urlsplit(request.url).path, request.headers["Content-Type"]
            headers = {k: v for k, v in request.headers.items() if k.lower() != "content-type"}
            answered = app.post(path, request.body, content_type=kind, headers=headers)
            response = requests.Response()
            response.status_code, response._content = answered.status_code, answered.content
            response.url, response.request = request.url, request
            return response

        def close(self) -> None:
            pass

    with requests.Session() as session:
        session.mount("http://", Site())
        exporter = OTLPSpanExporter(
            "http://site/otlp/v1/traces", compression=Compression.Gzip, session=session
        )
        assert exporter.export(spans) is SpanExportResult.SUCCESS
        exporter.shutdown()
