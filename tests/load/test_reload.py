"""Gunicorn as deploy/ configures it: a new version takes over without a refused request, and what
is open when it stops is ended properly. `make load` reloads ten times under load.
"""

from __future__ import annotations

import os
import re
import select
import signal
import socket
from collections.abc import Iterator
from statistics import median

import pytest
import requests
from django.db import connection

from ..deploy.test_nginx import MISSING, proxying
from ..deployed import SECONDS, deploying
from ..serving import Served
from ..waiting import until
from .clients import IDS, Load, check

SLOWEST = 40  # times the median: what waits for a reload took 40 to 84 times
RELOADS = int(os.environ.get("LOAD_RELOADS", "1"))


@pytest.fixture(scope="module")
def deployed(template, tmp_path_factory):
    """A server for all tests that do not stop it; each uses conversations of its own."""
    with deploying(tmp_path_factory.mktemp("deployed"), template) as deployed:
        yield deployed


@pytest.fixture
def own_deployed(template, tmp_path):
    with deploying(tmp_path, template) as deployed:
        yield deployed


@pytest.mark.long
@pytest.mark.skipif(bool(MISSING), reason=f"{', '.join(MISSING)} is not installed")
def test_a_reload_under_load_refuses_no_request_and_nobody_waits_for_it(deployed, tmp_path):
    """Through deploy/nginx.conf, with clients that keep their connections."""
    served = deployed.served
    for memory_id in IDS:
        served.create(memory_id, limit=10)
    with (
        proxying(served, tmp_path) as proxy,
        Load(served, proxy.url, str(proxy.certificate)) as load,
    ):
        for _ in range(RELOADS):
            load.wait_for(10)
            deployed.reload()
        load.wait_for(10)
    assert not load.sent_again, load.sent_again[:3]
    check(served, load.acknowledged, IDS)
    slowest, usual = max(load.seconds), median(load.seconds)
    assert slowest < SLOWEST * usual, (len(load.seconds), slowest / usual)


def test_old_workers_answer_until_a_new_one_has_started(deployed):
    served = deployed.served
    served.create("meanwhile", limit=10)
    old = deployed.workers()
    deployed.process.send_signal(signal.SIGHUP)
    until(lambda: len(deployed.workers()) >= 2 * len(old))
    new = set(deployed.workers()) - {*old}
    for worker in new:
        os.kill(worker, signal.SIGSTOP)  # it imports, which takes long
    try:
        for n in range(10):
            served.say("meanwhile", str(n))
        assert {*old} <= set(deployed.workers())
        ends = [os.pidfd_open(worker) for worker in old]
    finally:
        for worker in new:
            os.kill(worker, signal.SIGCONT)
    for end in ends:
        assert select.select([end], [], [], SECONDS)[0], "an old worker does not end"
        os.close(end)
    served.say("meanwhile", "after")


@pytest.mark.own_server
def test_the_last_accepted_request_is_answered(served):
    with socket.create_connection(("127.0.0.1", served.port)) as late:
        served.create("after")  # accepted after the other
        served.process.terminate()
        until(lambda: is_closed(served.port))
        late.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        assert late.recv(100).startswith(b"HTTP/1.1 200 ")


def is_closed(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except ConnectionError:
        return True
    return False


def test_streams_end_cleanly_and_resume_with_the_new_version(deployed):
    served = deployed.served
    served.create("watched")
    stream = deployed.stream("watched")
    assert next(stream) == "retry: 1000"
    served.say("watched", "one")
    assert next_step(stream) == 1
    deployed.reload()
    # Ended, not cut off. What was derived of the step may have been kept before.
    assert not set(stream) - {"", ": heartbeat", "event: kept", "id: 1", "data: 1"}
    served.say("watched", "two", "three")
    assert next_step(deployed.stream("watched", after=1)) == 3


def next_step(stream: Iterator[str]) -> int:
    """The next step of a stream."""
    data = next(line for line in stream if line.startswith("data: "))
    return int(data.removeprefix("data: "))


def test_it_stops_quickly_with_open_streams(own_deployed):
    own_deployed.served.create("watched")
    stream = own_deployed.stream("watched")
    assert next(stream) == "retry: 1000"
    assert own_deployed.stop() == 0
    assert not "".join(stream)


def test_processes_share_their_metrics(deployed):
    served = deployed.served
    served.create("counted")
    before = added_messages(served)
    for n in range(20):
        served.say("counted", str(n))
    for _ in range(5):  # any of the workers
        assert added_messages(served) == before + 20
    deployed.reload()
    served.say("counted", "by the workers of now")
    assert added_messages(served) == before + 21  # those of before are still counted
    if connection.vendor == "postgresql":
        text = served.api.get(f"{served.url}/metrics").text
        assert re.search(r'^chatmemory_connections\{state="open"\} [1-9]', text, re.M)


def added_messages(served: Served) -> float:
    """The messages added since the start, as one of the workers tells it."""
    text = served.api.get(f"{served.url}/metrics").text
    return sum(map(float, re.findall(r"^chatmemory_messages_added_total (\S+)", text, re.M)))


def test_a_local_proxy_cannot_read_the_metrics(deployed):
    headers = {"X-Forwarded-For": "127.0.0.1"}
    answer = requests.get(
        f"{deployed.served.url}/metrics", headers=headers | {"X-Forwarded-Proto": "https"}
    )
    assert answer.status_code == 401
