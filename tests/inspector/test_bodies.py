"""Bodies that are too large, sent to a real server."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from inspector.middleware.body_limit import BODY_MAX

MEGABYTE = 2**20
VAST = 100 * MEGABYTE
SECONDS = 20


def peak(served) -> int:
    """The peak memory of the server in bytes."""
    status = Path(f"/proc/{served.process.pid}/status")
    if not status.exists():
        pytest.skip("the peak memory of a process is read from /proc")
    (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


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


def test_a_body_at_the_limit_is_read(served):
    body = b'{"id":"large","policy":{"kind":"message_window","max_messages":3}}'
    body += b" " * (15 * MEGABYTE)
    headers = {"Content-Type": "application/json"}
    url = f"{served.url}/api/v1/memories/"
    assert served.api.post(url, data=body, headers=headers, timeout=SECONDS).status_code == 201


def test_pages_refuse_large_bodies(served):
    response = requests.post(f"{served.url}/import/", data=pieces(VAST), timeout=SECONDS)
    assert response.status_code == 413
    assert response.text == "Too large: the body is larger than 17 MB: send less at a time.\n"


def test_no_path_reaches_beyond_the_static_files(served):
    for path in ("/static/../manage.py", "/static/%2e%2e/manage.py", "/static/..%2fmanage.py"):
        with socket.create_connection(("127.0.0.1", served.port), SECONDS) as connection:
            connection.sendall(f"GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n".encode())
            status = connection.recv(100).split()[1]
        assert status != b"200", path
