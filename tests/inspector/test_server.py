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
from asgiref.sync import SyncToAsync, async_to_sync
from asgiref.testing import ApplicationCommunicator

from inspector.project import settings as site
from inspector.project.handler import Handler
from inspector.project.management.commands.serve import listening_socket
from inspector.project.worker import behind_unix_socket

from .. import processes
from ..serving import MANAGE, free_port, unstarted

ROOT = Path(__file__).parents[2]
SECONDS = 20
REQUEST = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


def test_responses_do_not_wait_for_acknowledgements():
    with listening_socket(0) as listener:
        listener.listen()
        with socket.create_connection(listener.getsockname()):
            accepted, _ = listener.accept()
            with accepted:
                assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.parametrize(
    ("path", "status", "calls"),
    [("/healthz", 200, 5), ("/sign-in/", 200, 5), ("/static/inspector/sprite.svg", 200, 4)],
)
def test_most_middleware_and_the_view_are_one_call_of_a_thread(
    path, status, calls, transactional_db, settings, monkeypatch
):
    """The others are two of Django's signals and two of the middleware before the static files."""
    settings.MIDDLEWARE = site.MIDDLEWARE
    assert calls_for(path, status, monkeypatch) == calls


def test_middleware_without_static_files_is_one_call_of_a_thread(transactional_db, monkeypatch):
    """Beside two of Django's signals."""
    assert calls_for("/healthz", 200, monkeypatch) == 3


def calls_for(path: str, status: int, monkeypatch) -> int:
    """Ask for a path, and return the number of calls in threads."""
    handle, handled = SyncToAsync.thread_handler, []

    def counted(*args):
        handled.append(args)
        return handle(*args)

    monkeypatch.setattr(SyncToAsync, "thread_handler", counted)
    scope = {"type": "http", "method": "GET", "path": path, "query_string": b""}
    assert async_to_sync(status_of)(Handler(), scope) == status
    return len(handled)


async def status_of(application, scope) -> int:
    asked = ApplicationCommunicator(application, scope | {"headers": [(b"host", b"localhost")]})
    await asked.send_input({"type": "http.request"})
    start = await asked.receive_output()
    while (await asked.receive_output()).get("more_body"):
        pass
    await asked.wait()
    return start["status"]


def test_another_link_is_printed_for_the_same_port(served):
    assert f"sign_in_link --port {served.port} prints another" in served.announced_more


# It waits longer for requests of its connections than a test waits for its end.
PATIENT = """
from functools import partial
import uvicorn
from inspector.__main__ import main
from inspector.project import server

server.ACCEPTED_SECONDS = 60
uvicorn.Config = partial(uvicorn.Config, timeout_keep_alive=60)
main()
"""


def test_a_connection_that_is_kept_open_does_not_delay_the_end(template, tmp_path):
    with unstarted(tmp_path, template, [sys.executable, "-c", PATIENT]) as served:
        served.start()
        served.create("m")
        served.stop()


@pytest.mark.parametrize("command", ["serve", "sign_in_link"])
def test_an_empty_database_is_reported_before_the_server_starts(warm_processes, tmp_path, command):
    empty = {"DATABASE_URL": f"sqlite:///{tmp_path}/empty.sqlite3"}
    ran = processes.run([*MANAGE, command], os.environ | empty)
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


# Says what is loaded when uvicorn begins to listen, and ends the server.
LOADED = """
import sys
import uvicorn
from django.core.management import execute_from_command_line

async def startup(server, sockets=None):
    from chatmemory.messages.estimators import must_load
    from chatmemory.windows.policies import DEFAULT_ESTIMATOR
    has_views = {"inspector.views.conversation", "chatmemory.api.views.messages"} <= {*sys.modules}
    print("views:", has_views, "encoding:", not must_load(DEFAULT_ESTIMATOR), file=sys.stderr)
    server.should_exit = True

uvicorn.Server.startup = startup
execute_from_command_line(["manage.py", "serve", "--skip-checks", "--port", sys.argv[1]])
"""


def test_views_and_the_usual_encoding_are_loaded_before_the_first_request(template):
    settings = {"DJANGO_SETTINGS_MODULE": "inspector.project.settings"}
    ran = subprocess.run(
        [sys.executable, "-c", LOADED, str(free_port())],
        env=os.environ | settings | {"DATABASE_URL": template.url},
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert ran.stderr == "views: True encoding: True\n"
