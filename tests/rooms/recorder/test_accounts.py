"""Every call is accounted for: stored, or counted with its reason, and counted no more once it is
stored after all.
"""

from __future__ import annotations

import json
import socket
import threading
import time

import httpx
import pytest

from inspector.rooms.calls.call import REMEDIES, DropReason
from inspector.rooms.calls.models import DroppedCalls
from inspector.rooms.recorder import storing as of_calls
from inspector.rooms.recorder.storing import Storing

from .upstream import ANSWER, CHAT, ended, store_all

REQUEST = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}


def counts() -> dict[str, int]:
    return dict(DroppedCalls.objects.values_list("why", "count"))


def test_a_call_that_raises_is_put_aside_and_counted_until_it_is_stored(
    db, client, folder, monkeypatch
):
    def broken(*_):
        raise RecursionError("too deep")

    client.post(CHAT, json=REQUEST)
    (path,) = ended(folder)
    with monkeypatch.context() as faulty:
        faulty.setattr(of_calls, "store", broken)
        assert Storing(folder).store_waiting()
    (row,) = DroppedCalls.objects.all()
    assert (row.why, row.sender, row.count) == (DropReason.REFUSED, "RecursionError", 1)
    aside = folder / "refused" / path.name
    aside.rename(path)  # after an update
    assert len(store_all(folder)) == 1
    assert counts() == {}


def test_calls_that_cannot_be_read_or_are_too_large_are_counted(db, client, folder, monkeypatch):
    client.post(CHAT, json={"model": "m"})
    client.post(CHAT, content=b"[1]", headers={"Content-Type": "application/json"})
    monkeypatch.setattr("inspector.rooms.recorder.proxy.recording.COPIED", 100)
    client.post(CHAT, json=REQUEST | {"user": "x" * 100})
    assert store_all(folder) == []
    assert counts() == {DropReason.UNREADABLE: 2, DropReason.TOO_LARGE: 1}


def test_calls_that_could_not_be_written_are_counted_once_there_is_room(db, client, folder):
    away = folder.with_name("away")
    folder.rename(away)
    for _ in range(3):
        assert client.post(CHAT, json=REQUEST).json() == ANSWER
    away.rename(folder)
    client.post(CHAT, json=REQUEST)
    client.post(CHAT, json=REQUEST)
    stored = len(store_all(folder))
    assert counts() == {DropReason.UNWRITTEN: 5 - stored}
    assert stored > 0


def test_every_reason_has_a_remedy_on_the_page(db, operator_client):
    now = "2026-11-28T10:00:00Z"
    for why in DropReason:
        DroppedCalls.objects.create(why=why, sender=f"sender-{why}", count=2, last_at=now)
    page = operator_client.get("/calls/").text
    for why in DropReason:
        assert REMEDIES[why].what in page
        assert f"sender-{why}" in page


def test_a_client_with_many_cookies_keeps_no_other_waiting(db, upstream, site, client, folder):
    """Its secrets are looked for in its own thread."""
    cookies = [f"c{n}={n:032x}" for n in range(5_000)]
    lines = [("Cookie", "; ".join(cookies[n : n + 1_000])) for n in range(0, 5_000, 1_000)]
    body = json.dumps(REQUEST | {"user": "words " * 3_000_000})
    answers = []

    def call() -> None:
        answers.append(httpx.post(f"{site}{CHAT}", content=body, headers=lines, timeout=60))

    slow = threading.Thread(target=call)
    slow.start()
    took = []
    while slow.is_alive():
        start = time.monotonic()
        client.post(CHAT, json=REQUEST)
        took.append(time.monotonic() - start)
    assert len(took) > 3
    assert max(took) < 2  # seconds, on a busy machine
    assert [each.status_code for each in answers] == [200]
    calls = store_all(folder)
    assert counts() == {}
    assert len(calls) == len(took) + 1
    assert all(call.is_exact for call in calls)


@pytest.mark.parametrize("size", [2**18 + 2**16, 2**22])
def test_a_head_without_end_is_refused(site, size):
    host, _, port = site.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(b"POST /v1/responses HTTP/1.1\r\nHost: localhost\r\n")
        sent = 0
        try:
            while sent < size:
                sent += connection.send(b"X-Much: " + b"x" * 60_000 + b"\r\n")
        except ConnectionError:
            pass
        assert connection.recv(100).startswith(b"HTTP/1.1 431 ")
