"""Clients of a server, in a process of their own: many that send requests, and many that follow a
stream.

They write prepared bytes and read no more of an answer than its status and its length, so that
they cost little beside the server. This module imports no Django.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from multiprocessing import get_context
from pathlib import Path
from typing import Any

HOST = "127.0.0.1"
OPENING, PATIENCE = 50, 60
TOLD_SECONDS, PAUSE = 5, 0.4
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_EVENT = b"event: step"


def in_own_process(call: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a coroutine function of this module, run in a new process."""
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        return process.submit(_run, call, arguments).result()


def _run(call: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    return asyncio.run(call(*arguments))


def request(method: str, path: str, token: str, body: bytes = b"") -> bytes:
    """The bytes of a request."""
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


@dataclass(frozen=True)
class Usage:
    """The usage of a process so far: seconds of CPU, and megabytes of memory."""

    cpu: float
    megabytes: float

    @classmethod
    def of(cls, pid: int) -> Usage:
        ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        cpu = sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
        return cls(cpu, pages * os.sysconf("SC_PAGE_SIZE") / 2**20)


# Clients that send requests


@dataclass
class Load:
    """The number of answered requests, the seconds that they took, and the server's seconds of
    CPU.
    """

    requests: int = 0
    seconds: float = 0
    cpu: float = 0

    @property
    def rate(self) -> float:
        return self.requests / self.seconds

    @property
    def milliseconds(self) -> float:
        """The server's CPU for a request."""
        return 1000 * self.cpu / self.requests


async def asking(
    port: int, pid: int, kinds: dict[str, list[list[bytes]]], turns: int, seconds: float
) -> dict[str, Load]:
    """Return the load of each kind of request. The kinds take turns. In each turn, every client
    sends its own requests of the kind repeatedly, each as soon as the one before is answered.
    """
    clients = max(map(len, kinds.values()))
    connections = [await asyncio.open_connection(HOST, port) for _ in range(clients)]
    sent = {kind: [cycle(each) for each in requests] for kind, requests in kinds.items()}
    loads = {kind: Load() for kind in kinds}
    for turn in range(turns + 1):
        for kind, requests in sent.items():
            before, started = Usage.of(pid), time.perf_counter()
            until = started + seconds
            counts = await asyncio.gather(
                *(
                    _ask(*connection, each, until)
                    for connection, each in zip(connections, requests, strict=True)
                )
            )
            if turn:  # the first one warms up
                load = loads[kind]
                load.requests += sum(counts)
                load.seconds += time.perf_counter() - started
                load.cpu += Usage.of(pid).cpu - before.cpu
    return loads


async def _ask(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    requests: Iterator[bytes],
    until: float,
) -> int:
    count = 0
    while time.perf_counter() < until:
        writer.write(next(requests))
        await _answered(reader)
        count += 1
    return count


async def _answered(reader: asyncio.StreamReader) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    length = _LENGTH.search(head)
    assert length, head
    body = await reader.readexactly(int(length[1]))
    assert head.startswith(b"HTTP/1.1 20"), head + body


# Clients that follow a stream


@dataclass
class Followed:
    """The cost of open streams for an idle server, and the delay of their events.

    Shares refer to one core. `cpu` is the server's CPU for all changes, in seconds. `untold` counts
    events that did not arrive within 5 seconds.
    """

    idle_share: float = 0
    share: float = 0
    megabytes: float = 0
    cpu: float = 0
    milliseconds: list[float] = field(default_factory=list)
    untold: int = 0


async def following(
    port: int,
    pid: int,
    streams: Sequence[bytes],
    changes: Iterable[bytes],
    seconds: float,
) -> Followed:
    """Measure the server without streams, then open all and measure it again, then make changes
    that every stream must announce. One change warms up before.
    """
    result, coming = Followed(), iter(changes)
    await _change(port, next(coming))
    result.idle_share = await _cpu_share(pid, seconds / 4)
    before = Usage.of(pid).megabytes
    followers = await _open(port, streams)
    result.share = await _cpu_share(pid, seconds)
    result.megabytes = Usage.of(pid).megabytes - before
    cpu = Usage.of(pid).cpu
    for change in coming:
        for follower in followers:
            follower.received_at = None
        started = time.perf_counter()
        await _change(port, change)
        received = await _received(followers)
        result.milliseconds += [1000 * (at - started) for at in received]
        result.untold += len(followers) - len(received)
        await asyncio.sleep(PAUSE)
    result.cpu = Usage.of(pid).cpu - cpu
    return result


async def _change(port: int, change: bytes) -> None:
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(change)
    await _answered(reader)
    writer.close()


async def _received(followers: Sequence[_Follower]) -> list[float]:
    """Return when each follower received a step, once all have. Late ones are left out."""
    until = time.perf_counter() + TOLD_SECONDS
    while time.perf_counter() < until and any(each.received_at is None for each in followers):
        await asyncio.sleep(0.02)
    return [each.received_at for each in followers if each.received_at is not None]


async def _cpu_share(pid: int, seconds: float) -> float:
    """Return the share of one core that the server uses during some seconds."""
    before, started = Usage.of(pid), time.perf_counter()
    await asyncio.sleep(seconds)
    return (Usage.of(pid).cpu - before.cpu) / (time.perf_counter() - started)


class _Follower(asyncio.Protocol):
    """A client of a stream that notes when it received each step."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self.opened = asyncio.get_running_loop().create_future()
        self.received_at: float | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        if _EVENT in data:
            self.received_at = time.perf_counter()
        if not self.opened.done():
            assert data.startswith(b"HTTP/1.1 200"), data
            self.opened.set_result(None)

    def connection_lost(self, _: Exception | None) -> None:
        self.received_at = None
        if not self.opened.done():
            self.opened.set_exception(ConnectionError("the server closed a stream"))


async def _open(port: int, streams: Sequence[bytes]) -> list[_Follower]:
    """Open streams, 50 at a time."""
    loop, followers = asyncio.get_running_loop(), []
    for first in range(0, len(streams), OPENING):
        some = [
            (await loop.create_connection(partial(_Follower, request), HOST, port))[1]
            for request in streams[first : first + OPENING]
        ]
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*(each.opened for each in some))
        followers += some
    return followers
