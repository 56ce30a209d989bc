"""A real recorder whose processes, site and database are killed or stopped: calls go on."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import threading
import time
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from ...serving import MANAGE, free_port, serving
from .upstream import ANSWER, CHAT

pytestmark = pytest.mark.long
CLIENTS = 4


class Recorder:
    """`manage.py record`, as a user starts it."""

    def __init__(self, environment: dict, upstream: str, spool: Path) -> None:
        self.port, self._environment = free_port(), environment
        options = ["--port", str(self.port), "--upstream", upstream, "--spool", str(spool)]
        self._command = [*MANAGE, "record", *options]
        self.url = f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self.process = subprocess.Popen(
            self._command, env=self._environment, stdout=subprocess.PIPE, text=True
        )

    def wait(self) -> None:
        assert "Recording on" in self.process.stdout.readline()

    def proxy(self) -> int:
        """The process that answers."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        tasks = Path(f"/proc/{self.process.pid}/task").iterdir()
        found = [child for task in tasks for child in (task / "children").read_text().split()]
        assert found, children
        return int(found[0])

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(30) == 0
        self.process.stdout.close()


class Clients:
    """Programs that make calls one after the other, each of a conversation of its own."""

    def __init__(self, url: str) -> None:
        self.url, self.ended, self.failed = url, [], []
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(number,)) for number in range(CLIENTS)
        ]

    def _run(self, number: int) -> None:
        with httpx.Client(base_url=self.url, timeout=20) as client:
            n = 0
            while not self._stopping.is_set():
                n += 1
                name = f"{number}-{n}"
                body = {"model": "m", "messages": [{"role": "user", "content": name}]}
                headers = {"X-Chatmemory-Conversation": name}
                try:
                    answer = client.post(CHAT, json=body, headers=headers)
                    ok = answer.json() == ANSWER
                except httpx.HTTPError:
                    ok = False
                (self.ended if ok else self.failed).append((time.monotonic(), name))
                self._stopping.wait(0.1)

    def __enter__(self) -> Clients:
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for each in self._threads:
            each.join()


@pytest.fixture
def site(template, tmp_path_factory):
    with serving(tmp_path_factory.mktemp("recorded"), template) as server:
        yield server


@pytest.fixture
def recorder(site, upstream, tmp_path):
    made = Recorder(site.environment, upstream.url, tmp_path / "spool")
    made.start()
    made.wait()
    yield made
    made.stop()


def are_stored(site, names: set[str]) -> bool:
    """Whether the conversation of each name is stored, within a minute."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        missing = {
            name
            for name in names
            if site.api.get(f"{site.url}/api/v1/memories/{name}/calls/").status_code != 200
        }
        if not missing:
            return True
        time.sleep(0.5)
    return False


def test_killed_site_and_a_locked_database_fail_no_call(site, recorder):
    with Clients(recorder.url) as clients:
        time.sleep(1)
        site.kill()
        file = site.environment["DATABASE_URL"].removeprefix("sqlite:///")
        with closing(sqlite3.connect(file, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            time.sleep(3)
    assert clients.failed == []
    assert len(clients.ended) > 50
    site.start()
    assert are_stored(site, {name for _, name in clients.ended})


def test_a_killed_proxy_cuts_only_calls_in_flight_and_is_back_within_a_second(site, recorder):
    with Clients(recorder.url) as clients:
        time.sleep(1)
        for _ in range(3):
            os.kill(recorder.proxy(), signal.SIGKILL)
            killed = time.monotonic()
            time.sleep(2)
            back = min(at for at, _ in clients.ended if at > killed + 0.05)
            assert back - killed < 1
    assert len(clients.failed) <= 3 * CLIENTS
    assert are_stored(site, {name for _, name in clients.ended})


def test_a_killed_recorder_loses_no_call_that_ended(site, recorder):
    with Clients(recorder.url) as clients:
        time.sleep(1)
        recorder.process.kill()
        recorder.process.wait()
        recorder.process.stdout.close()
        time.sleep(1)
        recorder.start()
        recorder.wait()
        time.sleep(1)
    assert clients.failed == []
    assert are_stored(site, {name for _, name in clients.ended})


def test_the_command_says_the_variables(recorder):
    told = [recorder.process.stdout.readline().strip() for _ in range(3)]
    assert told == [
        f"OPENAI_BASE_URL={recorder.url}/v1",
        f"ANTHROPIC_BASE_URL={recorder.url}",
        f"GOOGLE_GEMINI_BASE_URL={recorder.url}",
    ]
