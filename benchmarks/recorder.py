"""Measure a call through the recorder against a bare proxy, by the times that 99 of 100 calls and
half of the calls take at most, and the storing of calls.

The calls that are stored are those of a coding agent: 201 messages, which the next call repeats,
with the answer to them and one message more.

The provider, the recorder and the bare proxy are processes of their own on this machine. The
provider answers at once, so that only the proxies are measured. A bare proxy passes bytes on in
both directions and reads none of them.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx

from benchmarks.measuring import QUICK, Figure
from inspector.rooms.recorder import record

RECORDER = Path(__file__).parents[1] / "inspector/rooms/recorder"
CALLS = 300 if QUICK else 2_000
LIMIT = 1.2  # on a quiet machine
IN_PROCESS_LIMIT = 2.0
STORED = 30 if QUICK else 150
STORED_LIMIT = 1000 / 150  # milliseconds: 150 calls a second
MESSAGES = 201
REQUEST = json.dumps(
    {"model": "m", "messages": [{"role": "user", "content": f"line {n} " * 20} for n in range(60)]}
).encode()
ANSWER = json.dumps(
    {"choices": [{"message": {"role": "assistant", "content": "word " * 400}}]}
).encode()
READ = 2**16


def figures(folder: str) -> Iterator[Figure]:
    with (
        _process("provider") as provider,
        _process("bare", str(provider)) as bare,
        _recorder(folder, provider) as recorder,
    ):
        times = _times({"recorder": recorder, "bare proxy": bare})
        own = _times_in_process(provider, Path(folder) / "own")
    for name, share in (("99 of 100 calls", 0.99), ("half of the calls", 0.5)):
        first, second = (_within(each, share) for each in times.values())
        detail = f"recorder {first:.2f} ms, bare proxy {second:.2f} ms"
        yield Figure(f"{name} through the recorder", first / second, LIMIT, detail)
        first, second = (_within(each, share) for each in own.values())
        detail = f"with record(client) {first:.2f} ms, without {second:.2f} ms"
        yield Figure(f"{name} recorded in the process", first / second, IN_PROCESS_LIMIT, detail)
    yield _storing(Path(folder))


def _storing(folder: Path) -> Figure:
    """Measure how long an agent's call takes to be stored, at a steady state."""
    from inspector.rooms.recorder.storing import Storing

    spool = folder / "agent"
    spool.mkdir()
    storing = Storing(spool)
    _write_calls(spool, range(5))
    storing.store_waiting()
    _write_calls(spool, range(5, 5 + STORED))
    start = time.perf_counter()
    storing.store_waiting()
    seconds = time.perf_counter() - start
    assert storing.stored == 5 + STORED
    detail = f"{STORED / seconds:.0f} calls a second; 150 are the aim"
    return Figure("storing a call of an agent", 1000 * seconds / STORED, STORED_LIMIT, detail)


def _write_calls(spool: Path, numbers: range) -> None:
    """Write files of calls as the proxy does."""
    for n in numbers:
        head = {"at": time.time(), "path": "/v1/chat/completions", "provider": "h", "headers": {}}
        body = {"model": "m", "messages": [_message(each) for each in range(MESSAGES + 2 * n)]}
        answer = {"choices": [{"message": _message(MESSAGES + 2 * n), "finish_reason": "stop"}]}
        frames = {
            "H": {**head, "conversation": "agent"},
            "Q": body,
            "A": {"status": 200, "headers": {}},
            "B": answer,
            "E": {"how": "ended", "error": "", "duration": 1.0},
        }
        data = [(kind.encode(), json.dumps(each).encode()) for kind, each in frames.items()]
        whole = b"".join(kind + len(each).to_bytes(4, "big") + each for kind, each in data)
        (spool / f"{n:09}-1-1.call").write_bytes(whole)


def _message(n: int) -> dict[str, str]:
    words = f"line {n} of the file inspector/rooms/recorder/session.py is read by the agent. " * 6
    return {"role": "user" if n % 2 == 0 else "assistant", "content": words}


def _times(ports: dict[str, int]) -> dict[str, list[float]]:
    """Return the milliseconds of calls that take turns, through each proxy on its own
    connection.
    """
    ways = {name: http.client.HTTPConnection("127.0.0.1", port) for name, port in ports.items()}
    times: dict[str, list[float]] = {name: [] for name in ways}
    headers = {"Content-Type": "application/json"}
    for _ in range(CALLS):
        for name, way in ways.items():
            start = time.perf_counter()
            way.request("POST", "/v1/chat/completions", REQUEST, headers)
            assert way.getresponse().read() == ANSWER
            times[name].append(1000 * (time.perf_counter() - start))
    for way in ways.values():
        way.close()
    return times


def _times_in_process(port: int, spool: Path) -> dict[str, list[float]]:
    """Return the milliseconds of calls that take turns, of a client of httpx that is recorded, and
    of one that is not.
    """
    clients = {"recorded": record(httpx.Client(), spool, is_storing=False), "plain": httpx.Client()}
    times: dict[str, list[float]] = {name: [] for name in clients}
    headers = {"Content-Type": "application/json"}
    for _ in range(CALLS):
        for name, client in clients.items():
            start = time.perf_counter()
            url = f"http://127.0.0.1:{port}/v1/chat/completions"
            assert client.post(url, content=REQUEST, headers=headers).content == ANSWER
            times[name].append(1000 * (time.perf_counter() - start))
    for client in clients.values():
        client.close()
    return times


def _within(times: list[float], share: float) -> float:
    """Return the time that this share of the calls takes at most."""
    return sorted(times)[int(share * len(times))]


@contextmanager
def _process(*arguments: str) -> Iterator[int]:
    """Yield the port of a process of this module."""
    command = [sys.executable, "-m", "benchmarks.recorder", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


@contextmanager
def _recorder(folder: str, provider: int) -> Iterator[int]:
    """Yield the port of the recorder's proxy. Nothing stores its output."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        number = listening.fileno()
        command = [sys.executable, "-m", "proxy", "--fd", str(number), "--spool", folder]
        command += ["--heir", f"{folder}/heir", "--upstream", f"http://127.0.0.1:{provider}"]
        with subprocess.Popen(
            command,
            env={**os.environ, "PYTHONPATH": str(RECORDER)},
            pass_fds=[number],
            stdin=subprocess.PIPE,
        ) as process:
            assert process.stdin
            process.stdin.write(b"\n")  # it waits until it is needed
            process.stdin.flush()
            try:
                yield listening.getsockname()[1]
            finally:
                process.kill()


async def _provide(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    with suppress(asyncio.IncompleteReadError):
        while await reader.readuntil(b"\r\n\r\n"):
            await reader.readexactly(len(REQUEST))
            writer.write(head % len(ANSWER) + ANSWER)
            await writer.drain()


async def _relay(port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    theirs, upstream = await asyncio.open_connection("127.0.0.1", port)

    async def pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while data := await source.read(READ):
            target.write(data)
            await target.drain()
        target.close()

    await asyncio.gather(pass_on(reader, upstream), pass_on(theirs, writer))


async def _serve(kind: str, port: int) -> None:
    serve = _provide if kind == "provider" else lambda *streams: _relay(port, *streams)
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0))
