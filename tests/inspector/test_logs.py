"""Log lines. None of them quotes a message of a conversation."""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Iterator

import pytest
from django.dispatch import Signal

from inspector.shell.logs import JsonFormatter, TextFormatter, request_id

from ..serving import Served, unstarted

SECRET = "my card is 4111-1111-QUOKKA"
SAID = {"messages": [{"role": "user", "content": SECRET}], "format": "openai_chat"}


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
    """The first line of the answer to java.net.http, which offers HTTP/2 by default."""
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


@pytest.fixture
def logging_server(template, tmp_path) -> Iterator[Served]:
    """A server that writes its log to the file "log"."""
    with unstarted(tmp_path, template) as served:
        served.environment["CHATMEMORY_LOG"] = "json"
        with (tmp_path / "log").open("w") as served.log:
            served.start()
        yield served


def test_a_server_logs_requests_and_changes_with_one_id(logging_server, tmp_path):
    served = logging_server
    served.create("logged")
    url = f"{served.url}/api/v1/memories/logged/messages/?as={SECRET}"
    headers = {"X-Request-ID": "from-the-proxy.1"}
    answer = served.api.post(url.partition("?")[0], json=SAID, headers=headers)
    assert answer.headers["X-Request-ID"] == "from-the-proxy.1"
    served.api.get(url, headers={"X-Request-ID": "two\tlines"})
    assert put_as_java_does(served, "logged", "[]").startswith(b"HTTP/1.1 204 ")
    text = (tmp_path / "log").read_text()
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
