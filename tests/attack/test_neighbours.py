"""Clients that take more than their share of a deployed server (`make attack`)."""

from __future__ import annotations

import socket
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
import requests
from django.db import connection

from ..connecting import row_locked
from ..deployed import deploying
from ..test_outages import TWO

pytestmark = pytest.mark.long
SECONDS = 60


@pytest.fixture(scope="module")
def served(template, tmp_path_factory):
    folder = tmp_path_factory.mktemp("attacked")
    with deploying(folder, template, WEB_CONCURRENCY="4") as deployed:
        yield deployed.served


def ask(served, method: str, path: str, **body) -> int:
    url, headers = f"{served.url}/api/v1/memories/{path}", dict(served.api.headers)
    return requests.request(method, url, headers=headers, timeout=SECONDS, **body).status_code


def test_twenty_clients_take_less_than_twenty_connections(served):
    if connection.vendor != "postgresql":
        pytest.skip("a connection to SQLite is an open file")
    for n in range(20):
        served.create(f"client-{n}")

    def be_a_client(n: int) -> list[tuple[int, int]]:
        with psycopg.connect(served.environment["DATABASE_URL"], autocommit=True) as asking:
            return [(use(n), open_connections(asking)) for _ in range(20)]

    def use(n: int) -> int:
        ask(served, "POST", f"client-{n}/messages/", json=TWO)
        return ask(served, "GET", f"client-{n}/")

    def open_connections(asking: psycopg.Connection) -> int:
        ours = "application_name = 'chatmemory' AND datname = current_database()"
        (count,) = asking.execute(f"SELECT COUNT(*) FROM pg_stat_activity WHERE {ours}").fetchone()
        return count

    with ThreadPoolExecutor(20) as clients:
        seen = [each for client in clients.map(be_a_client, range(20)) for each in client]
    assert {status for status, _ in seen} == {200}
    assert 0 < max(count for _, count in seen) < 20
    assert all(len(served.history(f"client-{n}")) == 20 for n in range(20))


def test_four_hundred_writers_of_a_locked_conversation_stop_no_other(served):
    for memory_id in ("hot", "other"):
        served.create(memory_id)

    def write(_: int) -> int:
        return ask(served, "POST", "hot/messages/", json=TWO)

    with ThreadPoolExecutor(400) as threads:
        with row_locked(served.environment["DATABASE_URL"], "hot"):
            writers = [threads.submit(write, n) for n in range(400)]
            for _ in range(10):
                assert ask(served, "GET", "hot/") == ask(served, "GET", "other/") == 200
                if connection.vendor == "postgresql":
                    assert ask(served, "POST", "other/messages/", json=TWO) == 201
        statuses = Counter(writer.result() for writer in writers)
    assert set(statuses) == {201, 503}
    assert len(served.history("hot")) == statuses[201]


def sending_slowly(served, start: bytes, number: int) -> list[socket.socket]:
    """Connections of clients that have sent the start of a request, and then nothing."""
    slow = [socket.create_connection(("127.0.0.1", served.port), SECONDS) for _ in range(number)]
    for each in slow:
        each.sendall(start)
    assert served.api.get(f"{served.url}/readyz", timeout=SECONDS).status_code == 200
    return slow


def test_slow_bodies_are_cut_off(served):
    head = b"POST /import/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\nslow"
    for each in sending_slowly(served, head, 50):
        with each:
            while each.recv(1000):
                pass


def test_slow_headers_block_no_other_request(served):
    """The proxy cuts them off, see tests/deploy/test_nginx.py."""
    for each in sending_slowly(served, b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ", 300):
        each.close()
