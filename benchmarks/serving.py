"""Measure a server by its clients: adds over REST against a bare view, and live streams.

Adds are measured on PostgreSQL: a new database on the server at BENCH_DATABASE_URL. Live streams
are measured on SQLite. Each server is one process, as `manage.py serve` starts it. A full run
watches the idle streams for a minute, in which all readers are checked once.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from statistics import quantiles
from typing import Any

import psycopg

from benchmarks.clients import Load, asking, following, in_own_process, request
from benchmarks.database import SERVER, on_server
from benchmarks.measuring import QUICK, Figure
from benchmarks.texts import texts
from tests.serving import Served, prepare

CLIENTS, WINDOW_TOKENS, BODIES = 8, 4_000, 50
TURNS, TURN_SECONDS = (4, 0.6) if QUICK else (20, 1)
STREAMS, STREAMS_OF_A_TOKEN = 1_000, 50
IDLE_SECONDS, CHANGES = (4, 5) if QUICK else (62, 20)
ADDS = f"REST adds of {CLIENTS} clients on PostgreSQL"
SITE = [sys.executable, "-m", "benchmarks.site"]


def figures(folder: str) -> Iterator[Figure]:
    yield from adds(Path(folder))
    yield from streams(Path(folder))


def adds(folder: Path) -> Iterator[Figure]:
    """Compare adds of eight clients with requests to a view that inserts a row."""
    try:
        psycopg.connect(SERVER, connect_timeout=2).close()
    except psycopg.OperationalError:
        yield Figure(ADDS, math.inf, 2, "no PostgreSQL answers at BENCH_DATABASE_URL")
        return
    with on_server(folder) as url:
        template = prepare(url, folder)
        with Served(url, folder, template.token, SITE) as served:
            served.start()
            loads = in_own_process(
                asking, served.port, served.pid, _requests(served), TURNS, TURN_SECONDS
            )
    add, bare = loads["add"], loads["bare"]
    detail = f"{_rate_words(add)}; a bare view that inserts a row {_rate_words(bare)}"
    yield Figure(ADDS, bare.rate / add.rate, 2, detail)


def _requests(served: Served) -> dict[str, list[list[bytes]]]:
    """Return requests for each client. Each has a conversation of its own."""
    messages = texts()
    requests: dict[str, list[list[bytes]]] = {"add": [], "bare": []}
    for n in range(CLIENTS):
        policy = {"kind": "token_window", "max_tokens": WINDOW_TOKENS}
        created: dict[str, Any] = {"id": f"c{n}", "policy": policy}
        served.api.post(f"{served.url}/api/v1/memories/", json=created).raise_for_status()
        bodies = [_body(text) for text in islice(messages, BODIES)]
        for kind, path in (("add", f"/api/v1/memories/c{n}/messages/"), ("bare", "/bare/")):
            requests[kind].append([request("POST", path, served.token, body) for body in bodies])
    return requests


def _body(text: str) -> bytes:
    message = {"role": "user", "content": text}
    return json.dumps({"messages": [message], "format": "openai_chat"}).encode()


def _rate_words(load: Load) -> str:
    return f"{load.rate:.0f}/s with {load.milliseconds:.2f} ms of CPU each"


def streams(folder: Path) -> Iterator[Figure]:
    """Measure a thousand streams of one conversation: while it is idle, and at each change."""
    from chatmemory import MessageWindow, services
    from chatmemory.access.tokens import create_token

    services.create("followed", MessageWindow(20))
    tokens = [create_token(f"reader {n}") for n in range(STREAMS // STREAMS_OF_A_TOKEN)]
    opened = [request("GET", "/c/followed/live/", token) for token in tokens] * STREAMS_OF_A_TOKEN
    lines = texts()
    path = "/api/v1/memories/followed/messages/"
    changes = [request("POST", path, tokens[0], _body(next(lines))) for _ in range(1 + CHANGES)]
    with Served(os.environ["DATABASE_URL"], folder, tokens[0], SITE) as served:
        served.start()
        followed = in_own_process(following, served.port, served.pid, opened, changes, IDLE_SECONDS)
    name = f"{STREAMS:,} idle streams"
    percent = 100 * (followed.share - followed.idle_share)
    beside = (
        f"an idle server {100 * followed.idle_share:.2f} %, with them {100 * followed.share:.2f} %"
    )
    yield Figure(f"{name}, % of a core", percent, 3, beside)
    yield Figure(f"{name}, MB", followed.megabytes, 100, "more than without them")
    late = quantiles([*followed.milliseconds, *[math.inf] * followed.untold], n=100)
    cpu = 1000 * followed.cpu / CHANGES
    detail = f"{CHANGES} changes: median {late[49]:.0f}, CPU {cpu:.0f}; {followed.untold} untold"
    yield Figure("a change told to all of them, p99 in ms", late[98], 250, detail)
