"""A real recorder whose processes, site and database are killed or stopped: calls go on."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import threading
import time
from contextlib import closing, suppress
from pathlib import Path

import httpx
import pytest

from ...serving import MANAGE, free_port, serving
from ...waiting import until
from .test_secrets import KINDS
from .upstream import ANSWER, CHAT, answer_text, chunk

pytestmark = pytest.mark.long
CLIENTS = 4
LONGEST = 5.0  # seconds of a call, also on a busy machine: clients wait 20


class Recorder:
    """`manage.py record`, as a user starts it."""

    def __init__(self, environment: dict, upstream: str, spool: Path) -> None:
        self.port, self._environment, self.spool = free_port(), environment, spool
        options = ["--port", str(self.port), "--upstream", upstream, "--spool", str(spool)]
        self._command = [*MANAGE, "record", *options]
        self.log = spool.parent / "recorder.log"
        self.url = f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                self._command, env=self._environment, stdout=subprocess.PIPE, stderr=log, text=True
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

    def stop(self) -> float:
        """Stop it, and return the seconds until it has ended."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(30) == 0
        self.process.stdout.close()
        return time.monotonic() - began


class Clients:
    """Programs that make calls one after the other, each of a conversation of its own."""

    def __init__(self, url: str, pause: float = 0.1) -> None:
        self._pause = pause
        self.url, self.ended, self.failed, self.seconds = url, [], [], []
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
                began = time.monotonic()
                try:
                    answer = client.post(CHAT, json=body, headers=headers)
                    why = "" if answer.json() == ANSWER else answer.text
                except httpx.HTTPError as error:
                    why = repr(error)
                now = time.monotonic()
                self.failed.append((name, why)) if why else self.ended.append((now, name))
                self.seconds.append(now - began)
                self._stopping.wait(self._pause)

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


def let_be_stored(site, clients: Clients) -> None:
    """Wait until all calls that ended are stored. Fails after a minute in which none is."""
    names = {name for _, name in clients.ended}
    while missing := names.difference(stored_in(site)):
        until(lambda known=missing: not known.isdisjoint(stored_in(site)))
    for name in sorted(names)[::100]:  # thousands of requests would take minutes
        url = f"{site.url}/api/v1/memories/{name}/calls/"
        site.api.get(url).raise_for_status()


def stored_in(site) -> list[str]:
    """The names of the conversations of stored calls, one for each call."""
    file = site.environment["DATABASE_URL"].removeprefix("sqlite:///")
    with closing(sqlite3.connect(file)) as db:
        found = db.execute("SELECT memory_id FROM chatmemory_calls_modelcall")
        return [name for (name,) in found]


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
    let_be_stored(site, clients)


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
    let_be_stored(site, clients)


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
    let_be_stored(site, clients)


def test_twenty_kills_of_the_recorder_under_load_let_nobody_wait(site, recorder):
    """Four clients call without a pause. The proxy answers until the next one does."""
    with Clients(recorder.url, pause=0.01) as clients:
        for _ in range(20):
            time.sleep(0.2)
            recorder.process.kill()
            recorder.process.wait()
            recorder.process.stdout.close()
            recorder.start()
            recorder.wait()
    assert clients.failed == []
    assert max(clients.seconds) < LONGEST
    let_be_stored(site, clients)
    assert sorted(stored_in(site)) == sorted(name for _, name in clients.ended)


def wait_in(spool: Path, calls: int) -> None:
    """Let calls wait in a spool."""
    spool.mkdir(exist_ok=True)
    for n in range(calls):
        head = {"path": CHAT, "at": 1.8e9 + n, "headers": {}, "provider": "h"}
        messages = [{"role": "user", "content": f"call {n} " * 50}]
        body = {"model": "m", "messages": messages}
        answer = {"status": 200, "headers": {}}
        parts = (
            ("H", head | {"conversation": f"w-{n}"}),
            ("Q", body),
            ("A", answer),
            ("B", ANSWER),
        )
        end = {"how": "ended", "error": "", "duration": 1.0}
        frames = [(kind, json.dumps(each).encode()) for kind, each in (*parts, ("E", end))]
        data = b"".join(
            kind.encode() + len(each).to_bytes(4, "big") + each for kind, each in frames
        )
        (spool / f"{n:08}-1-1.call").write_bytes(data)


def test_a_stop_takes_five_seconds_at_most_whatever_waits(site, recorder):
    """The rest is stored at the next start, each call once."""
    wait_in(recorder.spool, 200)
    until(lambda: len(stored_in(site)) > 5)
    assert recorder.stop() < 5
    waiting = {f"w-{int(each.name.partition('-')[0])}" for each in recorder.spool.glob("*.call")}
    assert waiting
    assert waiting.union(stored_in(site)) == {f"w-{n}" for n in range(200)}
    recorder.start()
    recorder.wait()
    until(lambda: not list(recorder.spool.glob("*.call")))
    assert sorted(stored_in(site)) == sorted(f"w-{n}" for n in range(200))


def test_a_stop_does_not_wait_for_the_database(site, recorder):
    site.kill()
    file = site.environment["DATABASE_URL"].removeprefix("sqlite:///")
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        wait_in(recorder.spool, 3)
        time.sleep(1)
        assert recorder.stop() < 5
    assert len(list(recorder.spool.glob("*.call"))) == 3
    recorder.start()
    recorder.wait()


def test_an_answer_in_flight_ends_after_the_recorder_has_stopped(site, recorder, upstream):
    stopped = threading.Event()
    pieces = [{"choices": [{"index": 0, "delta": {"content": text}}]} for text in ("one", " two")]

    def answer(handler, got):
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        chunk(handler, f"data: {json.dumps(pieces[0])}\n\n".encode())
        assert stopped.wait(20)
        chunk(handler, f"data: {json.dumps(pieces[1])}\n\ndata: [DONE]\n\n".encode())
        chunk(handler, b"")

    upstream.answer = answer
    body = {"model": "m", "messages": [{"role": "user", "content": "count"}], "stream": True}
    headers = {"X-Chatmemory-Conversation": "in-flight"}
    with httpx.stream("POST", f"{recorder.url}{CHAT}", json=body, headers=headers) as found:
        got = found.iter_raw()
        first = next(got)
        assert recorder.stop() < 5
        stopped.set()
        rest = b"".join(got)
    assert b"one" in first
    assert b"[DONE]" in rest
    recorder.start()
    recorder.wait()
    until(lambda: stored_in(site) == ["in-flight"])
    call = site.api.get(f"{site.url}/api/v1/memories/in-flight/calls/1/").json()
    assert call["response"]["choices"][0]["message"]["content"] == "one two"


def test_the_command_says_the_variables(recorder):
    told = [recorder.process.stdout.readline().strip() for _ in range(3)]
    assert told == [
        f"OPENAI_BASE_URL={recorder.url}/v1",
        f"ANTHROPIC_BASE_URL={recorder.url}",
        f"GOOGLE_GEMINI_BASE_URL={recorder.url}",
    ]


def test_no_byte_of_a_file_has_a_secret(site, recorder, upstream):
    """Not of the database, its log of writes, the spool, and the logs of the recorder."""
    said = {"role": "assistant", "content": "no such key: "}

    def answer(handler, got):
        text = json.loads(got.body)["messages"][0]["content"]
        body = ANSWER | {"choices": [{"message": said | {"content": f"no such key: {text}"}}]}
        answer_text(handler, json.dumps(body), X_Request_Id=f"req-{text}")

    upstream.answer = answer
    found: set[bytes] = set()

    def look() -> None:
        for each in recorder.spool.glob("*.call"):
            with suppress(FileNotFoundError):  # it has just been stored
                found.add(each.read_bytes())

    with httpx.Client(base_url=recorder.url, timeout=20) as client:
        for headers, target, secret in KINDS.values():
            body = {"model": "m", "messages": [{"role": "user", "content": secret}]}
            named = {"User-Agent": f"app/1 ({secret})", "X-Client-Request-Id": secret}
            assert client.post(f"{CHAT}{target}", json=body, headers={**named, **headers})
            look()
    until(lambda: len(stored_in(site)) == len(KINDS))
    until(lambda: not list(recorder.spool.glob("*.call")))  # they are removed after that
    file = Path(site.environment["DATABASE_URL"].removeprefix("sqlite:///"))
    kept = [*file.parent.glob(f"{file.name}*"), recorder.log]
    kept += [each for each in recorder.spool.rglob("*") if each.is_file()]
    assert any(each.name.endswith("-wal") for each in kept)
    found |= {each.read_bytes() for each in kept}
    assert b"[removed]" in b"".join(found)
    for name, (_, _, secret) in KINDS.items():
        for spelled in {secret, json.dumps(secret)[1:-1], secret.replace("/", "\\/")}:
            assert not any(spelled.encode() in each for each in found), name
