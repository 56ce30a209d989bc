"""Log lines, metrics and traces. None of them quotes a message of a conversation."""

from __future__ import annotations

import json
import logging
import socket

import pytest
from django.dispatch import Signal
from django.test import Client
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from prometheus_client.parser import text_string_to_metric_families

from chatmemory import MessageWindow, SystemMessage, UserMessage, VersionConflict, services
from inspector.observability import tracing
from inspector.observability.logs import JsonFormatter, TextFormatter, request_id

from ..conversations import create_and_add

SECRET = "my card is 4111-1111-QUOKKA"


def said(*words: str) -> dict:
    messages = [{"role": "user", "content": each} for each in words]
    return {"messages": messages, "format": "openai_chat"}


# Logs


def formatted(formatter: logging.Formatter, **extra) -> str:
    logger = logging.getLogger("tests")
    try:
        try:
            raise KeyError(SECRET)
        except KeyError as error:
            raise ValueError(f"cannot store {SECRET!r}") from error
    except ValueError as error:
        info = (type(error), error, error.__traceback__)
        record = logger.makeRecord("tests", 30, "f", 1, "it failed", (), info, extra=extra)
    return formatter.format(record)


def test_a_json_line_has_the_type_and_places_of_an_error_without_its_text():
    token = request_id.set("abc")
    try:
        line = json.loads(formatted(JsonFormatter(), memory_id="m", steps=3, odd=object()))
    finally:
        request_id.reset(token)
    errors = line.pop("error")
    assert line.pop("time").endswith("+00:00")
    assert line == {
        "level": "WARNING",
        "logger": "tests",
        "message": "it failed",
        "request_id": "abc",
        "memory_id": "m",
        "steps": 3,
    }
    assert [error["type"] for error in errors] == ["builtins.ValueError", "builtins.KeyError"]
    assert errors[0]["places"][0].endswith(" formatted")
    assert "QUOKKA" not in str(errors)


def test_a_text_line_has_no_text_of_an_error():
    text = formatted(TextFormatter())
    assert "WARNING tests: it failed" in text
    assert "builtins.ValueError" in text
    assert "QUOKKA" not in text


def receiver_that_fails(**_):
    raise ValueError(SECRET)


NEVER = f"Task exception was never retrieved\nfuture: <Task exception=KeyError({SECRET!r})>"


@pytest.mark.parametrize("formatter", [JsonFormatter(), TextFormatter()])
def test_a_line_has_the_types_of_errors_and_the_first_line_of_a_message(formatter):
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(formatter.format(record))
    django, signal = logging.getLogger("django.dispatch"), Signal()
    signal.connect(receiver_that_fails)
    django.addHandler(handler)
    try:
        signal.send_robust(None)
    finally:
        django.removeHandler(handler)
    for given in (
        {"msg": "%(count)d of %(all)d", "args": {"count": 1, "all": 2}},
        {"msg": ValueError(SECRET)},
        {"msg": NEVER, "levelname": "ERROR"},
    ):
        handler.emit(logging.makeLogRecord(given))
    wanted = ["send_robust() (ValueError)", "1 of 2", "ValueError", "never retrieved"]
    for line, words in zip(lines, wanted, strict=True):
        assert words in line
        assert "QUOKKA" not in line
    assert "\n" not in lines[-1]


def put_as_java_does(served, memory_id: str, body: str) -> bytes:
    """The first line of the answer to java.net.http, which offers HTTP/2 unless told otherwise."""
    head = (
        f"PUT /api/v1/store/{memory_id}/ HTTP/1.1",
        "Connection: Upgrade, HTTP2-Settings",
        f"Content-Length: {len(body)}",
        f"Host: 127.0.0.1:{served.port}",
        "HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA",
        "Upgrade: h2c",
        "User-Agent: Java-http-client/17.0.13",
        f"Authorization: Bearer {served.token}",
        "Content-Type: application/json",
    )
    with socket.create_connection(("127.0.0.1", served.port), 10) as connection:
        connection.sendall("\r\n".join((*head, "", body)).encode())
        return connection.makefile("rb").readline()


@pytest.mark.own_server
def test_a_server_logs_requests_and_changes_with_one_id(served, tmp_path):
    served.stop()
    served.environment["CHATMEMORY_LOG"] = "json"
    log = tmp_path / "log"
    with log.open("w") as served.log:
        served.start()
    served.create("logged")
    url = f"{served.url}/api/v1/memories/logged/messages/?as={SECRET}"
    headers = {"X-Request-ID": "from-the-proxy.1"}
    answer = served.api.post(url.partition("?")[0], json=said(SECRET), headers=headers)
    assert answer.headers["X-Request-ID"] == "from-the-proxy.1"
    served.api.get(url, headers={"X-Request-ID": "two\tlines"})
    assert put_as_java_does(served, "logged", "[]").startswith(b"HTTP/1.1 204 ")
    text = log.read_text()
    assert "QUOKKA" not in text
    assert "pgrade" not in text
    told = [json.loads(line) for line in text.splitlines()]
    change, request = (line for line in told if line["request_id"] == "from-the-proxy.1")
    assert change["actor"] == request["actor"] == "token:tests"
    names = ("logger", "memory_id", "last_step")
    assert [change[each] for each in names] == ["chatmemory.audit", "logged", 1]
    names = ("route", "method", "status")
    assert [request[each] for each in names] == ["chatmemory:messages", "POST", 201]
    assert request["milliseconds"] > 0
    assert len(told) > 2
    assert "two\tlines" not in [line["request_id"] for line in told]


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


@pytest.mark.own_server
def test_open_streams_are_counted(served):
    def streams() -> list[str]:
        text = served.api.get(f"{served.url}/metrics", headers={"Authorization": ""}).text
        return [line for line in text.splitlines() if line.startswith("chatmemory_live_streams")]

    served.create("watched")
    url = f"{served.url}/c/watched/live/"
    assert streams() == ["chatmemory_live_streams 0.0", "chatmemory_live_streams_waiting 0.0"]
    with served.api.get(url, stream=True, timeout=10) as stream:
        lines = stream.iter_lines(chunk_size=1)
        assert next(lines) == b"retry: 1000"
        assert "chatmemory_live_streams 1.0" in streams()


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
    body = said(SECRET, SECRET)
    url = "/api/v1/memories/m/messages/"
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


def test_a_503_is_an_error_and_a_404_is_none(spans):
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
