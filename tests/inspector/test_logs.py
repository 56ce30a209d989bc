"""Log lines carry the id of their request and never quote a message."""

from __future__ import annotations

import json
import logging
import socket

import pytest
from django.dispatch import Signal

from inspector.observability.logs import JsonFormatter, TextFormatter, request_id

SECRET = "my card is 4111-1111-QUOKKA"


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


FORMATTERS = pytest.mark.parametrize("formatter", [JsonFormatter(), TextFormatter()])


@FORMATTERS
def test_an_error_among_the_arguments_is_replaced_by_its_type(formatter):
    def failing(**kwargs):
        raise ValueError(SECRET)

    signal = Signal()
    signal.connect(failing)
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(formatter.format(record))
    django = logging.getLogger("django.dispatch")
    django.addHandler(handler)
    try:
        signal.send_robust(None)
    finally:
        django.removeHandler(handler)
    assert len(lines) == 1
    assert "send_robust() (ValueError)" in lines[0]
    assert "QUOKKA" not in lines[0]


@FORMATTERS
def test_named_arguments_and_bare_errors_are_formatted(formatter):
    args = {"count": 1, "all": 2}
    named = logging.makeLogRecord({"msg": "%(count)d of %(all)d", "args": args})
    assert "1 of 2" in formatter.format(named)
    bare = formatter.format(logging.makeLogRecord({"msg": ValueError(SECRET)}))
    assert "ValueError" in bare
    assert "QUOKKA" not in bare


@FORMATTERS
def test_only_the_first_line_of_a_message_is_logged(formatter):
    words = f"Task exception was never retrieved\nfuture: <Task exception=KeyError({SECRET!r})>"
    line = formatter.format(logging.makeLogRecord({"msg": words, "levelname": "ERROR"}))
    assert "never retrieved" in line
    assert "QUOKKA" not in line
    assert "\n" not in line


@pytest.fixture
def lines(served, monkeypatch):
    """The lines that a server logs while it handles requests."""
    served.stop()
    monkeypatch.setitem(served.environment, "CHATMEMORY_LOG", "json")
    with served.logging() as read:
        served.start()
        yield read


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
def test_a_server_logs_requests_and_changes_with_one_id(served, lines):
    served.create("logged")
    url = f"{served.url}/api/v1/memories/logged/messages/?as={SECRET}"
    body = {"messages": [{"role": "user", "content": SECRET}], "format": "openai_chat"}
    answer = served.api.post(url, json=body, headers={"X-Request-ID": "from-the-proxy.1"})
    assert answer.headers["X-Request-ID"] == "from-the-proxy.1"
    served.api.get(url, headers={"X-Request-ID": "two\tlines"})
    assert put_as_java_does(served, "logged", "[]").startswith(b"HTTP/1.1 204 ")
    text = lines()
    assert "QUOKKA" not in text
    assert "pgrade" not in text
    told = [json.loads(line) for line in text.splitlines()]
    mine = [line for line in told if line["request_id"] == "from-the-proxy.1"]
    change, request = mine
    assert (change["logger"], change["memory_id"], change["last_step"]) == (
        "chatmemory.audit",
        "logged",
        1,
    )
    assert change["actor"] == request["actor"] == "token:tests"
    assert (request["route"], request["method"], request["status"]) == (
        "chatmemory:messages",
        "POST",
        201,
    )
    assert request["milliseconds"] > 0
    others = [line["request_id"] for line in told if line["request_id"] != "from-the-proxy.1"]
    assert others
    assert "two\tlines" not in others
