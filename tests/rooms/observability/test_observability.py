"""Metrics and traces. None of them quotes a message of a conversation."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from django.test import Client
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.mmap_dict import MmapedDict
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.parser import text_string_to_metric_families

import chatmemory
from chatmemory import MessageWindow, SystemMessage, UserMessage, VersionConflict, services
from inspector.project import metrics_files
from inspector.rooms.observability import tracing
from inspector.shell.load import request_refused

from ...conversations import create_and_add
from ...serving import ROOT

SECRET = "my card is 4111-1111-QUOKKA"


def body_with(*words: str) -> dict:
    messages = [{"role": "user", "content": each} for each in words]
    return {"messages": messages, "format": "openai_chat"}


# Metrics


def read(**headers: str) -> dict[tuple[str, ...], float]:
    """The samples by name and label values."""
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(Client().get("/metrics", headers=headers).text)
        for sample in family.samples
    }


@pytest.mark.django_db(transaction=True)
def test_changes_are_counted_after_the_commit():
    before = read()
    create_and_add(
        "m",
        MessageWindow(2),
        [SystemMessage("a"), UserMessage("b"), UserMessage("c"), SystemMessage("d")],
    )
    services.clear_messages("m")
    with pytest.raises(VersionConflict):
        services.add("m", [UserMessage("never")], expected_version=0)
    after = read()
    for *key, grown in (
        ("chatmemory_messages_added_total", 4),
        ("chatmemory_messages_left_total", "CAPACITY", 1),
        ("chatmemory_messages_left_total", "REPLACED", 1),
        ("chatmemory_messages_left_total", "CLEARED", 2),
        ("chatmemory_steps_total", "add", 4),
        ("chatmemory_steps_total", "clear", 1),
        ("chatmemory_window_fill_count", 2),
        ("chatmemory_window_fill_sum", 1.0),
    ):
        assert after[*key] - before.get((*key,), 0) == pytest.approx(grown), key


def test_requests_are_timed_by_route_and_never_by_id(operator_client):
    services.create("some-id", MessageWindow(2))
    before = read()
    operator_client.get("/c/some-id/")
    operator_client.get("/c/nobody/")
    operator_client.generic("BREW", "/c/some-id/")
    after = read()
    for method, status in (("GET", "2xx"), ("GET", "4xx"), ("other", "4xx")):
        key = ("chatmemory_request_seconds_count", method, "inspector:conversation", status)
        assert after[key] - before.get(key, 0) == 1
    assert not any("some-id" in name for name in map(str, after))


def test_only_this_machine_or_who_has_the_token_reads_the_metrics(db, settings):
    assert Client().get("/metrics").status_code == 200
    elsewhere = Client(REMOTE_ADDR="192.0.2.7")
    assert elsewhere.get("/metrics").status_code == 401
    for name in ("X-Forwarded-For", "Forwarded", "X-Real-IP"):  # a local proxy
        assert Client().get("/metrics", headers={name: "127.0.0.1"}).status_code == 401
    settings.INSPECTOR = {"METRICS_TOKEN": "hunter2", "WHOLE_SITE": True}
    right, wrong = ({"Authorization": f"Bearer hunter{n}"} for n in (2, 3))
    assert Client().get("/metrics").status_code == 401
    assert Client().get("/metrics", headers=wrong).status_code == 401
    assert elsewhere.get("/metrics", headers=right).status_code == 200


@pytest.mark.django_db
def test_refusals_are_counted_by_reason_and_the_build_is_named(settings):
    before = read()
    settings.INSPECTOR = {"OPEN_FORM_BYTES": 1, "WHOLE_SITE": True}
    assert Client().post("/theme/", {"theme": "dark"}).status_code == 413
    request_refused.send(sender=None, status=503)
    after = read()
    for reason in ("size", "busy"):
        key = ("chatmemory_requests_refused_total", reason)
        assert after[key] - before.get(key, 0) == 1
    assert after["chatmemory_database_up",] == 1
    assert after["chatmemory_processes",] == 1
    (build,) = [name for name in after if name[0] == "chatmemory_build_info"]
    assert chatmemory.__version__ in build


def sample_values(folder: Path) -> dict[tuple[str, ...], float]:
    registry = CollectorRegistry()
    MultiProcessCollector(registry, str(folder))
    with metrics_files.reading(str(folder)):
        text = generate_latest(registry).decode()
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_files_of_ended_processes_are_added_up(tmp_path):
    """No count falls, and the folder does not grow with the processes."""
    for pid in range(1, 30):
        for kind, name in (("counter", "a_total"), ("histogram", "b_bucket"), ("gauge", "c")):
            mode = "_livesum" if kind == "gauge" else ""
            file = MmapedDict(str(tmp_path / f"{kind}{mode}_{pid}.db"))
            labels = {"le": "+Inf"} if kind == "histogram" else {}
            family = name.rpartition("_")[0] or name
            file.write_value(json.dumps([family, name, labels, "words"]), pid, 0.0)
            file.close()
        before = sample_values(tmp_path)
        if pid > 2:
            metrics_files.process_ended(str(tmp_path), pid - 2)
            after = sample_values(tmp_path)
            assert after["a_total",] == before["a_total",] == sum(range(pid + 1))
            assert after["b_bucket", "+Inf"] == before["b_bucket", "+Inf"]
            assert after["c",] == pid + pid - 1
    assert len([*tmp_path.glob("*.db")]) == 8  # three of each of two processes, and two sums


@pytest.mark.django_db
@pytest.mark.parametrize("file", ["alerts.yml", "grafana.json"])
def test_alerts_and_the_dashboard_ask_for_metrics_that_there_are(file):
    asked = set(re.findall(r"chatmemory_\w+", (ROOT / "deploy" / file).read_text()))
    text = (ROOT / "inspector/rooms/observability/README.md").read_text()
    documented = set(re.findall(r"`(chatmemory_\w+)", text))
    told = {family.name for family in text_string_to_metric_families(Client().get("/metrics").text)}
    assert len(asked) > 4
    for name in asked:
        name = re.sub("_(bucket|count|sum)$", "", name)
        assert name in documented
        assert name.removesuffix("_total") in told


# Traces

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def spans():
    exporter = InMemorySpanExporter()
    tracing.set_up(SimpleSpanProcessor(exporter))
    yield exporter.get_finished_spans
    tracing.shut_down()


@pytest.mark.django_db(transaction=True)
def test_a_request_is_a_span_of_its_callers_trace(spans, api):
    services.create("m", MessageWindow(1))
    body = body_with(SECRET, SECRET)
    url = "/api/v1/memories/m/messages/"
    api.post(url, body, headers={"traceparent": PARENT, "X-Request-ID": "r-1"})
    (span,) = spans()
    assert (span.name, span.kind) == ("POST chatmemory:messages", SpanKind.SERVER)
    assert f"{span.context.trace_id:032x}" == PARENT.split("-")[1]
    assert f"{span.parent.span_id:016x}" == PARENT.split("-")[2]
    assert dict(span.attributes) == {
        "http.request.method": "POST",
        "http.route": "chatmemory:messages",
        "http.response.status_code": 201,
        "chatmemory.request_id": "r-1",
    }
    (event,) = span.events
    assert dict(event.attributes) == {
        "chatmemory.memory_id": "m",
        "chatmemory.steps": 2,
        "chatmemory.said": 2,
        "chatmemory.left": 1,
    }
    assert "QUOKKA" not in span.to_json()


def test_a_503_is_an_error_and_a_404_is_not(spans):
    for status in (404, 503):
        with tracing.request_span("GET", {}) as answered:
            answered("GET", "inspector:conversation", status)
    assert [span.status.status_code for span in spans()] == [StatusCode.UNSET, StatusCode.ERROR]


def test_an_unhandled_error_is_recorded_without_its_text(spans):
    with pytest.raises(ValueError, match="QUOKKA"), tracing.request_span("GET", {}):
        raise ValueError(SECRET)
    (span,) = spans()
    assert "QUOKKA" not in span.to_json()


def test_without_configuration_nothing_is_traced(api):
    assert api.get("/api/v1/memories/").status_code == 200
    with tracing.request_span("GET", {}) as answered:
        answered("GET", "inspector:overview", 200)
