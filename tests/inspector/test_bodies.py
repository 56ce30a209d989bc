"""Bodies that are too large, sent to a real server."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator

import pytest
import requests

from inspector.middleware import body_limit, refusals
from inspector.middleware.body_limit import BODY_MAX, BoundedBodies
from inspector.project.asgi import application

from ..peaks import MEGABYTE, most, peak

JSON = {"Content-Type": "application/json"}
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
def test_a_huge_body_without_a_length_is_refused_and_not_buffered(served, is_declared):
    url = f"{served.url}/api/v1/memories/"
    served.api.get(url).raise_for_status()
    before = peak(served)
    body = b" " * VAST if is_declared else pieces(VAST)
    response = served.api.post(url, data=body, timeout=SECONDS)
    assert response.status_code == 413
    assert response.headers["Content-Type"] == "application/problem+json"
    assert "17 MB" in response.json()["detail"]
    assert peak(served) - before < 2 * BODY_MAX


def test_whole_windows_may_be_larger_than_other_bodies(served):
    api = f"{served.url}/api/v1"
    long = b'{"type":"SYSTEM","text":"' + b"word " * 90_000 + b'"}'
    body = b"[" + b",".join([long] * 6) + b"]"
    assert served.api.put(f"{api}/store/large/", data=body, headers=JSON).status_code == 204
    added = served.api.post(f"{api}/memories/large/messages/", data=body, headers=JSON)
    assert (added.status_code, added.json()["type"]) == (413, "urn:chatmemory:body-too-large")
    assert "2,097,152 bytes" in added.json()["detail"]


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


def prepared_import(served, name: str, content: bytes) -> requests.PreparedRequest:
    """The request of the page that imports a file, by somebody who is signed in."""
    pages = served.session()
    pages.get(f"{served.url}/import/").raise_for_status()
    form = {"format": "auto", "kind": "message_window", "limit": "9"}
    form["csrfmiddlewaretoken"] = pages.cookies["csrftoken"]
    asked = requests.Request(
        "POST", f"{served.url}/import/", data=form, files={"file": (name, content)}
    )
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


@pytest.mark.own_server
def test_a_file_of_very_many_lines_takes_bounded_memory(served):
    lines = b"{}\n" * (4 * MEGABYTE // 3)
    asked = prepared_import(served, "lines.jsonl", lines)
    before = peak(served)
    with requests.Session() as session:
        answer = session.send(asked)
    assert "lists, objects and commas" in answer.text
    assert peak(served) - before <= most(lines)


def test_a_chunked_body_is_refused_where_it_cannot_be_read(operator_client):
    """Under WSGI, which is what Django's test client speaks."""
    headers = {"Transfer-Encoding": "chunked"}
    response = operator_client.patch("/api/v1/memories/any/", CONTENT_LENGTH="", headers=headers)
    assert response.status_code == 411
    assert response.json()["type"] == "urn:chatmemory:length-required"


HOSTILE = {
    "objects": b"{},",
    "lists": b"[],",
    "texts": b'"ab",',
    "as many objects as are decoded": b'{"type":"%s"},' % (b"A" * 52),
}


@pytest.mark.own_server
def test_hostile_json_takes_bounded_memory(served):
    url = f"{served.url}/api/v1/store/hostile/"
    served.api.get(url).raise_for_status()
    for name, piece in HOSTILE.items():
        body = b"[" + (piece * (16 * MEGABYTE // len(piece) - 1)).rstrip(b",") + b"]"
        before = peak(served)
        response = served.api.put(url, data=body, headers=JSON)
        assert response.status_code in (400, 413, 422), (name, response.text[:200])
        assert peak(served) - before <= most(body), name


@pytest.mark.own_server
def test_one_long_text_takes_bounded_memory(served):
    url = f"{served.url}/api/v1/store/long/"
    served.api.get(url).raise_for_status()
    for name, words in {"one word": "a", "words": "a b ", "signs": "\N{SLOTH}"}.items():
        text = words * (500_000 // len(words))
        body = b'[{"type":"SYSTEM","text":"' + text.encode() + b'"}]'
        before = peak(served)
        assert served.api.put(url, data=body, headers=JSON).status_code == 204, name
        assert peak(served) - before <= most(body), name


def trickled(path: str, sent: list[bytes], monkeypatch, asked=application) -> list[dict]:
    """What is answered to a body of which some parts arrive at once, and the rest never."""
    monkeypatch.setattr(body_limit, "BODY_SECONDS", 0)
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
    monkeypatch.setattr(body_limit, "BYTES_A_SECOND", 8 * MEGABYTE)  # 17 MB give 2 seconds
    (start, *_) = trickled("/import/", [b" " * MEGABYTE] * 17 + [b" "], monkeypatch)
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
    monkeypatch.setattr(body_limit, "BODY_SECONDS", 0)
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
    asyncio.run(asked({"type": "http", "headers": []}, receive, send))
    assert answer == ["answered"]


def test_pages_refuse_large_bodies(served):
    response = requests.post(f"{served.url}/import/", data=pieces(VAST), timeout=SECONDS)
    assert response.status_code == 413
    assert response.text == "Body too large: the body is larger than 17 MB: send less at a time.\n"


def test_no_path_reaches_beyond_the_static_files(served):
    for path in ("/static/../manage.py", "/static/%2e%2e/manage.py", "/static/..%2fmanage.py"):
        with socket.create_connection(("127.0.0.1", served.port), SECONDS) as connection:
            connection.sendall(f"GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n".encode())
            status = connection.recv(100).split()[1]
        assert status != b"200", path
