"""The server of `make run` and of gunicorn: it closes connections that owe a request, and believes
of a unix socket what the proxy tells about the client.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
import uvicorn
from packaging.requirements import Requirement
from packaging.version import Version
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from inspector.project import server as server_module
from inspector.project.management.commands.serve import _listen
from inspector.project.server import Server
from inspector.project.worker import behind_unix_socket

ROOT = Path(__file__).parents[2]
SECONDS = 20
REQUEST = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


async def ok(scope, receive, send):
    headers = [(b"content-length", b"2")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"ok"})


async def after_a_request(port: int):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(REQUEST)
    await reader.readuntil(b"ok")
    return reader, writer


async def half_requests(port: int) -> None:
    reader, writer = await after_a_request(port)
    opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
    opened.append(await after_a_request(port))
    for (_, sending), start in zip(opened, (b"", REQUEST[:20], REQUEST[:20]), strict=True):
        sending.write(start)
    for receiving, sending in opened:
        await receiving.read()  # until it is closed
        sending.close()
    writer.write(REQUEST)  # who owes nothing is still connected
    await reader.readuntil(b"ok")
    writer.close()


def test_connections_that_owe_a_request_are_closed(monkeypatch):
    monkeypatch.setattr(server_module, "HEADER_SECONDS", 0)
    options = {"lifespan": "off", "ws": "none", "timeout_keep_alive": SECONDS}

    async def run():
        with socket.create_server(("127.0.0.1", 0)) as listener:
            server = Server(uvicorn.Config(ok, log_level="warning", **options))
            serving = asyncio.create_task(server.serve(sockets=[listener]))
            try:
                await asyncio.wait_for(half_requests(listener.getsockname()[1]), SECONDS)
            finally:
                server.should_exit = True
                await serving

    asyncio.run(run())


def test_a_new_minor_version_of_uvicorn_is_not_installed_unseen():
    """The server reads names of it without a promise that they stay. If this fails, run these tests
    and tests/live, then move the bound.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extra = map(Requirement, project["optional-dependencies"]["inspector"])
    (asked,) = (each.specifier for each in extra if each.name == "uvicorn")
    installed = Version(version("uvicorn"))
    assert installed in asked
    assert f"{installed.major}.{installed.minor + 1}.0" not in asked

    async def new_connection() -> H11Protocol:
        config = uvicorn.Config(lambda: None)
        config.load()
        return H11Protocol(config, ServerState(), {})

    connection = asyncio.run(new_connection())
    assert connection.cycle is connection.timeout_keep_alive_task is None


def test_responses_do_not_wait_for_acknowledgements():
    with _listen(0) as listener:
        listener.listen()
        with socket.create_connection(listener.getsockname()):
            accepted, _ = listener.accept()
            with accepted:
                assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.own_server
def test_another_link_is_printed_for_the_same_port(served):
    announced = served.process.stdout.readline()
    assert f"sign_in_link --port {served.port} prints another" in announced


@pytest.mark.parametrize("command", ["serve", "sign_in_link"])
def test_an_empty_database_is_told_before_the_server_starts(tmp_path, command):
    ran = subprocess.run(
        [sys.executable, ROOT / "manage.py", command],
        env=os.environ | {"DATABASE_URL": f"sqlite:///{tmp_path}/empty.sqlite3"},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 1
    assert "not up to date: run python manage.py migrate first" in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize(
    ("forwarded", "client"),
    [
        (["203.0.113.7"], "203.0.113.7"),
        (["5.5.5.5, 203.0.113.7"], "203.0.113.7"),
        (["5.5.5.5", "203.0.113.7"], "203.0.113.7"),
        (["5.5.5.5, 203.0.113.7, 10.1.2.3"], "203.0.113.7"),
        (["unix:, 203.0.113.7"], "203.0.113.7"),
        ([], None),
    ],
)
def test_behind_a_unix_socket_the_client_is_the_last_that_no_proxy_of_ours_is(forwarded, client):
    seen = []

    async def application(scope, receive, send):
        seen.append((scope["client"] and scope["client"][0], scope["scheme"]))

    headers = [(b"x-forwarded-for", value.encode()) for value in forwarded]
    headers.append((b"x-forwarded-proto", b"https"))
    scope = {"type": "http", "client": None, "scheme": "http", "headers": headers}
    behind = behind_unix_socket(application, ["127.0.0.1", "10.0.0.0/8"])
    asyncio.run(behind(scope, None, None))
    assert seen == [(client, "https")]
