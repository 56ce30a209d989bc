"""The server of `make run` and of gunicorn.

On a unix socket it trusts what the proxy sends about the client.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from inspector.project.management.commands.serve import _listen
from inspector.project.worker import behind_unix_socket

ROOT = Path(__file__).parents[2]
SECONDS = 20
REQUEST = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


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
def test_an_empty_database_is_reported_before_the_server_starts(tmp_path, command):
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
