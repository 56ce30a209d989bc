"""Python processes that start with their packages already imported.

Imports take a second at each start, and the tests start a hundred processes. So one process
imports, once, all modules that depend on no setting, and the others are forked from it. Each then
runs its command line in its own environment. A second process has set up Django, and loaded all
views: processes are forked from it whose environment names another SQLite file and another folder,
but is otherwise that of the tests. They read the settings again. Without `warm_up` they start as
cold as users' processes.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, Any

ROOT = Path(__file__).parents[1]
# The site's packages, except modules that read Django's settings or the environment when imported.
PACKAGES = """
    asgiref.server asyncio concurrent.futures dj_database_url environs imagesize inflection
    ipaddress jinja2 jsonschema marshmallow platformdirs psycopg psycopg_pool pygments.lexers
    requests rich.console servestatic sqlparse tiktoken tiktoken_ext.openai_public tomllib
    uritemplate yaml uvicorn uvicorn.lifespan.off uvicorn.loops.auto
    uvicorn.protocols.http.h11_impl django.contrib.postgres.fields django.core.handlers.asgi
    django.core.management django.core.serializers django.db.backends.sqlite3.base
    django.db.migrations.executor django.db.migrations.autodetector django.db.models
    django.forms django.template.loader_tags django.template.defaulttags django.test
    django.utils.translation django.views.generic django.views.i18n django.core.asgi
    django.contrib.admin.exceptions django.contrib.auth.hashers
    django.contrib.auth.password_validation django.contrib.messages.middleware
    django.contrib.sessions.backends.base django.contrib.staticfiles.finders
    django.middleware.cache django.middleware.common django.middleware.csrf django.middleware.gzip
    django_htmx.http django_htmx.middleware pygments.formatters.html pygments.lexers.special
    django.contrib.admindocs.views drf_spectacular.drainage drf_spectacular.utils markdown_it
    rest_framework.authentication rest_framework.exceptions rest_framework.metadata
    rest_framework.negotiation rest_framework.serializers servestatic.middleware servestatic.storage
    chatmemory.messages.estimators chatmemory.recall chatmemory.formats
"""
PLACES = {"DATABASE_URL", "CHATMEMORY_VAR", "PYTEST_CURRENT_TEST"}
SETTINGS = "inspector.project.settings"
FORKED = [[sys.executable, each] for each in ("-m", "-c", str(ROOT / "manage.py"))]
_LONGEST = 200_000  # bytes of a command line with its environment
_channels: list[socket.socket] = []  # to the process without settings, and to that with them
_usual: dict[str, str] = {}  # the environment of both


def warm_up() -> None:
    """Start the two processes from which `start` forks from now on."""
    _usual.update(os.environ)
    pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(2)]
    theirs = [their.fileno() for _, their in pairs]
    command = [sys.executable, "-m", "tests.processes", *map(str, theirs)]
    forking = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, pass_fds=theirs)
    atexit.register(forking.wait)
    for ours, their in pairs:
        their.close()
        _channels.append(ours)
        atexit.register(ours.close)  # before the wait: the processes end then


def start(command: Sequence[str], environment: dict[str, str], cwd: Path = ROOT, **outputs):
    """Start a command, with the arguments `stdout` and `stderr` of Popen."""
    # The module path and the options of Python are fixed when Python itself starts.
    settled = environment.get("PYTHONPATH") != os.environ.get("PYTHONPATH")
    if not _channels or settled or list(command[:2]) not in FORKED:
        return subprocess.Popen(command, env=environment, cwd=cwd, text=True, **outputs)
    channel = _channels[_has_usual_settings(environment)]
    return Forked(channel, command[1:], environment, cwd, **outputs)


def run(
    command: Sequence[str], environment: dict[str, str], cwd: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end. Files take its output, which nobody reads meanwhile."""
    with TemporaryFile("w+") as output, TemporaryFile("w+") as errors:
        code = start(command, environment, cwd, stdout=output, stderr=errors).wait()
        told, said = (file.seek(0) or file.read() for file in (output, errors))
    return subprocess.CompletedProcess(command, code, told, said)


def _has_usual_settings(environment: dict[str, str]) -> bool:
    others = {name for name, _ in environment.items() ^ _usual.items()} - PLACES
    return not others and environment.get("DATABASE_URL", "").startswith("sqlite")


class Forked:
    """The part of Popen's interface that tests need."""

    def __init__(
        self,
        channel: socket.socket,
        arguments: Sequence[str],
        environment: dict[str, str],
        cwd: Path,
        stdout: int | IO[str] | None = None,
        stderr: int | IO[str] | None = None,
    ) -> None:
        self.returncode: int | None = None
        self.stdout, out = _opened(stdout, 1)
        self.stderr, error = _opened(stderr, 2)
        self._told, tells = os.pipe()
        request = {"arguments": list(arguments), "environment": environment, "cwd": str(cwd)}
        sent = [out, error, tells]
        socket.send_fds(channel, [json.dumps(request).encode()], sent)
        number, (self._process,), *_ = socket.recv_fds(channel, 100, 1)
        self.pid = int(number)
        for each in sent:
            os.close(each)

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            signal.pidfd_send_signal(self._process, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def poll(self) -> int | None:
        with_end = self.returncode is None and select.select([self._told], [], [], 0)[0]
        return self.wait() if with_end else self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._told], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
            self.returncode = int(os.read(self._told, 100))
            os.close(self._told)
            os.close(self._process)
        return self.returncode


def _opened(output: int | IO[str] | None, inherited: int) -> tuple[IO[str] | None, int]:
    """Return our end of an output for reading, and the file descriptor for writing."""
    if output == subprocess.PIPE:
        reads, writes = os.pipe()
        return open(reads), writes
    if output is None:
        return None, os.dup(inherited)
    return None, os.dup(output if isinstance(output, int) else output.fileno())


def fork_for(channel: socket.socket) -> dict[str, Any]:
    """Fork for each request. In the new process, return its work; nothing after the last one."""
    # By the file descriptor that announces its end: the process id, and the caller's descriptor.
    running: dict[int, tuple[int, int]] = {}
    while True:
        ready, *_ = select.select([channel, *running], [], [])
        for ended in ready:
            if ended is not channel:
                process, asks = running.pop(ended)
                _, status = os.waitpid(process, 0)
                os.write(asks, str(os.waitstatus_to_exitcode(status)).encode())
                os.close(asks)
                os.close(ended)
        if channel in ready:
            data, files, *_ = socket.recv_fds(channel, _LONGEST, 3)
            if not data:
                return {}
            out, error, asks = files
            if not (process := os.fork()):
                os.dup2(out, 1)
                os.dup2(error, 2)
                for each in (channel.detach(), *files, *running, *(a for _, a in running.values())):
                    os.close(each)
                return json.loads(data)
            os.close(out)
            os.close(error)
            end = os.pidfd_open(process)
            running[end] = (process, asks)
            socket.send_fds(channel, [str(process).encode()], [end])


def main() -> None:
    without_settings, with_settings = (socket.socket(fileno=int(each)) for each in sys.argv[1:])
    for name in PACKAGES.split():
        if find_spec(name.partition(".")[0]):  # REST framework uses jinja2 if it is installed
            importlib.import_module(name)
    from chatmemory.messages.estimators.encodings import encoding

    encoding("o200k_base")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.freeze()
    is_set_up = not (second := os.fork())
    (without_settings if is_set_up else with_settings).close()
    if is_set_up:
        _set_up()
    wanted = fork_for(with_settings if is_set_up else without_settings)
    if not wanted:
        if not is_set_up:
            os.waitpid(second, 0)
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(wanted["environment"])
    os.chdir(wanted["cwd"])
    if is_set_up:
        _read_settings_again()
    first, *others = wanted["arguments"]
    if first == "-m":
        sys.argv = others
        runpy.run_module(others[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.argv = ["-c", *others[1:]]
        exec(others[0], {"__name__": "__main__"})
    else:
        sys.argv = [first, *others]
        sys.path[0] = str(Path(first).parent)
        runpy.run_path(first, run_name="__main__")


def _set_up() -> None:
    """Set up Django, and load all views as a server does before its first request."""
    import django

    from inspector.project.server import load_what_requests_need

    with TemporaryDirectory() as folder:
        places = {"DATABASE_URL": "sqlite:///:memory:", "CHATMEMORY_VAR": folder}
        os.environ.update(places, DJANGO_SETTINGS_MODULE=SETTINGS)
        django.setup()
        load_what_requests_need()
    gc.freeze()


def _read_settings_again() -> None:
    """Give this process the settings and the databases that its own environment names."""
    from django.conf import settings
    from django.db import connections

    read = importlib.reload(sys.modules[SETTINGS])
    for name in filter(str.isupper, dir(read)):  # packages have added defaults of their own
        setattr(settings, name, getattr(read, name))
    vars(connections).pop("settings", None)
    connections.__init__()


if __name__ == "__main__":
    main()
