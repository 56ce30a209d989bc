"""Bodies that are too large, sent to a real server."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator

import pytest
import requests

from chatmemory.api.bodies import size_in_words
from inspector.middleware import bodies, refusals
from inspector.middleware.bodies import BoundedBodies
from inspector.project.asgi import application

from ..peaks import MEGABYTE, bounded_growth

JSON = {"Content-Type": "application/json"}
FORM, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data; boundary=part"
KILOBYTE = 2**10
VAST = 100 * MEGABYTE
SECONDS = 20


def pieces(size: int) -> Iterator[bytes]:
    for _ in range(size // MEGABYTE):
        yield b" " * MEGABYTE


@pytest.mark.parametrize("path", ["/api/v1/memories/", "/import/"])
def test_a_huge_body_is_refused_by_its_content_length(served, path):
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {VAST}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", served.port), SECONDS) as connection:
        connection.sendall(head.encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 413 ")


@pytest.mark.own_server
@pytest.mark.parametrize("is_declared", [True, False], ids=["declared", "chunked"])
@pytest.mark.parametrize("path", ["/api/v1/memories/", "/sign-in/", "/import/"])
def test_a_huge_body_is_not_buffered(served, path, is_declared):
    served.api.get(f"{served.url}/api/v1/memories/").raise_for_status()
    body = b" " * VAST if is_declared else pieces(VAST)
    with bounded_growth(served, 5 * MEGABYTE):
        response = served.api.post(served.url + path, data=body, timeout=SECONDS)
    assert response.status_code == 413


@pytest.mark.parametrize("is_chunked", [False, True], ids=["declared", "chunked"])
@pytest.mark.parametrize(
    ("method", "path", "kind", "size", "setting"),
    [
        ("POST", "/api/v1/memories/", "application/json", 2 * MEGABYTE, "POST_BYTES"),
        ("PATCH", "/api/v1/memories/m/", "application/json", 2 * MEGABYTE, "POST_BYTES"),
        ("PUT", "/api/v1/store/m/", "application/json", 4 * MEGABYTE, "PUT_BYTES"),
        ("POST", "/sign-in/", FORM, 64 * KILOBYTE, "OPEN_FORM_BYTES"),
        ("POST", "/learn/playground/", MULTIPART, 64 * KILOBYTE, "OPEN_FORM_BYTES"),
        ("POST", "/admin/login/", FORM, 64 * KILOBYTE, "OPEN_FORM_BYTES"),
        ("POST", "/nowhere/", MULTIPART, 64 * KILOBYTE, "OPEN_FORM_BYTES"),
        ("POST", "/policies/", FORM, 256 * KILOBYTE, "FORM_BYTES"),
        ("POST", "/c/m/simulate/", FORM, 256 * KILOBYTE, "FORM_BYTES"),
        ("POST", "/c/m/simulate/", MULTIPART, 2 * MEGABYTE, "MESSAGES_FORM_BYTES"),
        ("POST", "/import/", FORM, 256 * KILOBYTE, "FORM_BYTES"),
    ],
)
def test_one_byte_more_than_its_class_allows(served, method, path, kind, size, setting, is_chunked):
    def send(body: bytes) -> requests.Response:
        given = iter([body[:size], body[size:]]) if is_chunked else body
        headers, url = {"Content-Type": kind}, served.url + path
        return requests.request(method, url, data=given, headers=headers, allow_redirects=False)

    refused = send(b" " * (size + 1))
    assert refused.status_code == 413
    told = f"the body is larger than {size_in_words(size)}, the limit of "
    where = "CHATMEMORY" if "/api/" in path else "INSPECTOR"
    if where == "CHATMEMORY":
        assert refused.headers["Content-Type"] == "application/problem+json"
        assert refused.json()["detail"] == f'{told}CHATMEMORY["{setting}"]'
    else:
        assert refused.text == f'Body too large: {told}INSPECTOR["{setting}"].\n'
    assert send(b" " * size).status_code != 413


def test_a_file_may_have_16_mb_beside_the_rest_of_its_form(served):
    asked = prepared_import(served, "spaces.json", b" " * 16 * MEGABYTE)
    with requests.Session() as session:
        answer = session.send(asked)
        assert answer.status_code == 422  # it is read
        asked = prepared_import(served, "spaces.json", b" " * (16 * MEGABYTE + 1))
        answer = session.send(asked)
        assert "larger than 16 MB, the limit of INSPECTOR" in answer.text
        asked = prepared_import(served, "spaces.json", b" " * (16 * MEGABYTE + 256 * KILOBYTE))
        assert session.send(asked).status_code == 413


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "", {"id": "chunked-POST", "labels": {"team": "sent"}}),
        ("PATCH", "chunked-PATCH/", {"labels": {"team": "sent"}}),
        ("PUT", "chunked-PUT/messages/", {"messages": [{"type": "SYSTEM", "text": "sent"}]}),
    ],
)
def test_chunked_bodies_are_read(served, method, path, body):
    memory_id = f"chunked-{method}"
    if method == "POST":
        body |= {"policy": {"kind": "message_window", "max_messages": 3}}
    else:
        served.create(memory_id)
    memories = f"{served.url}/api/v1/memories/"
    chunks = iter([json.dumps(body).encode()])
    served.api.request(method, memories + path, data=chunks, headers=JSON).raise_for_status()
    assert '"sent"' in served.api.get(memories + (path or f"{memory_id}/")).text


def prepared_import(
    served, name: str, content: bytes, path: str = "/import/"
) -> requests.PreparedRequest:
    """The request of the page that reads a file, by somebody who is signed in."""
    pages = served.session()
    pages.get(f"{served.url}/import/").raise_for_status()
    form = {"format": "auto", "kind": "message_window", "limit": "9"}
    form["csrfmiddlewaretoken"] = pages.cookies["csrftoken"]
    asked = requests.Request("POST", served.url + path, data=form, files={"file": (name, content)})
    return pages.prepare_request(asked)


def test_a_file_that_is_sent_in_chunks_is_imported(served):
    said = b'[{"role": "user", "content": "hello"}]'
    asked = prepared_import(served, "in-chunks.json", said)
    whole = asked.body
    asked.prepare_body(iter([whole[:50], whole[50:]]), None)
    del asked.headers["Content-Length"]
    assert asked.headers["Transfer-Encoding"] == "chunked"
    with requests.Session() as session:
        answer = session.send(asked)
    assert "1 conversation imported" in " ".join(answer.text.split())
    assert [text for _, text in served.history("in-chunks-1")] == ["hello"]


def test_a_chunked_body_is_refused_where_it_cannot_be_read(operator_client):
    """Under WSGI, which is what Django's test client speaks."""
    headers = {"Transfer-Encoding": "chunked"}
    response = operator_client.patch("/api/v1/memories/any/", CONTENT_LENGTH="", headers=headers)
    assert response.status_code == 411
    assert response.json()["type"] == "urn:chatmemory:length-required"


def trickled(path: str, sent: list[bytes], monkeypatch, asked=application) -> list[dict]:
    """What is answered to a body of which some parts arrive at once, and the rest never."""
    monkeypatch.setattr(bodies, "BODY_SECONDS", 0)
    monkeypatch.setattr(refusals, "LINGER_SECONDS", 0)
    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1")],
    }
    parts, answer = list(sent), []

    async def receive():
        if not parts:
            await asyncio.Event().wait()
        return {"type": "http.request", "body": parts.pop(), "more_body": True}

    async def send(message):
        answer.append(message)

    asyncio.run(asyncio.wait_for(asked(scope, receive, send), SECONDS))
    return answer


@pytest.mark.parametrize("path", ["/api/v1/memories/", "/import/"])
def test_a_body_that_arrives_too_slowly_is_refused(path, monkeypatch):
    start, body, _ = trickled(path, [], monkeypatch)
    assert start["status"] == 408
    assert (b"connection", b"close") in start["headers"]
    assert b"Request timeout" in body["body"]


def test_a_body_may_take_longer_the_larger_it_is(monkeypatch):
    monkeypatch.setattr(bodies, "BYTES_A_SECOND", 32 * KILOBYTE)  # 64 kB give 2 seconds
    (start, *_) = trickled("/theme/", [b" " * KILOBYTE] * 64 + [b" "], monkeypatch)
    assert start["status"] == 413


def test_a_body_that_stops_is_answered_once(monkeypatch):
    start = {"type": "http.response.start", "status": 200, "headers": []}
    end = {"type": "http.response.body", "body": b"", "more_body": False}

    async def answers_at_once(scope, receive, send):
        await send(start)
        await receive()
        await send(end)

    async def answers_later(scope, receive, send):
        await receive()
        await send(start)
        await send(end)

    assert trickled("/", [], monkeypatch, BoundedBodies(answers_at_once)) == [start, end]
    refused = trickled("/", [], monkeypatch, BoundedBodies(answers_later))
    assert refused[0]["status"] == 408
    assert start not in refused


def test_an_answer_may_take_longer_than_its_body(monkeypatch):
    monkeypatch.setattr(bodies, "BODY_SECONDS", 0)
    arriving, answer = [{"type": "http.disconnect"}, {"type": "http.request"}], []

    async def receive():
        for _ in range(9 * (len(arriving) == 1)):
            await asyncio.sleep(0)
        return arriving.pop()

    async def send(message):
        answer.append(message["type"])

    async def answers_at_the_end(scope, receive, send):
        await receive()
        await receive()
        await send({"type": "answered"})

    asked = BoundedBodies(answers_at_the_end)
    scope = {"type": "http", "method": "POST", "path": "/", "headers": []}
    asyncio.run(asked(scope, receive, send))
    assert answer == ["answered"]


def test_no_path_reaches_beyond_the_static_files(served):
    for path in ("/static/../manage.py", "/static/%2e%2e/manage.py", "/static/..%2fmanage.py"):
        with socket.create_connection(("127.0.0.1", served.port), SECONDS) as connection:
            connection.sendall(f"GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n".encode())
            status = connection.recv(100).split()[1]
        assert status != b"200", path
