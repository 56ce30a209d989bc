"""The server closes connections on which no whole header arrives."""

from __future__ import annotations

import asyncio
import socket

import uvicorn

from inspector.project import server as server_module
from inspector.project.server import Server

SECONDS = 20
REQUEST = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


async def ok(scope, receive, send):
    headers = [(b"content-length", b"2")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"ok"})


async def connect(port: int, *, after_a_request: bool):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    if after_a_request:
        writer.write(REQUEST)
        await reader.readuntil(b"ok")
    return reader, writer


async def send_and_wait_for_the_end(port: int, start: bytes, after_a_request: bool) -> None:
    reader, writer = await connect(port, after_a_request=after_a_request)
    writer.write(start)
    await reader.read()
    writer.close()


async def half_requests(port: int) -> None:
    reader, writer = await connect(port, after_a_request=True)
    half = b"GET / HTTP/1.1\r\nX-Slow: "
    owing = [(b"", False), (half, False), (half, True)]
    await asyncio.gather(*(send_and_wait_for_the_end(port, *each) for each in owing))
    writer.write(REQUEST)  # who owes nothing is still connected
    await reader.readuntil(b"ok")
    writer.close()


def test_connections_that_owe_a_request_are_closed(monkeypatch):
    monkeypatch.setattr(server_module, "HEADER_SECONDS", 0)

    async def run():
        with socket.create_server(("127.0.0.1", 0)) as listener:
            server = Server(
                uvicorn.Config(
                    ok, log_level="warning", lifespan="off", ws="none", timeout_keep_alive=SECONDS
                )
            )
            serving = asyncio.create_task(server.serve(sockets=[listener]))
            try:
                await asyncio.wait_for(half_requests(listener.getsockname()[1]), SECONDS)
            finally:
                server.should_exit = True
                await serving

    asyncio.run(run())
