"""A real server process on a database of its own, as `make run` starts it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import IO
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import requests
from requests.cookies import RequestsCookieJar

from . import processes

ROOT = Path(__file__).parents[1]
ROOM = 2**29  # bytes for the files of a server; it reports less than 100 MB as a full disk
MANAGE = [sys.executable, str(ROOT / "manage.py")]


@dataclass(frozen=True)
class Template:
    """A migrated database, and the secret of an admin's token in it."""

    url: str
    token: str


class Served:
    """A server with its URL and a client of its API. `token` is the secret of an admin's token.

    `manage_py` is the command line of its manage.py.
    """

    def __init__(
        self, database_url: str, folder: Path, token: str, manage_py: Sequence[str] = MANAGE
    ) -> None:
        self.manage_py = manage_py
        self.environment = _environment(database_url, folder)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[str] | processes.Forked | None = None
        self.log: IO[str] | None = None
        self.cookies = RequestsCookieJar()
        self.token = token
        self.api = requests.Session()
        self.api.headers["Authorization"] = f"Bearer {token}"

    def __enter__(self) -> Served:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self.api.close()

    def manage(self, *arguments: str) -> str:
        return _run([*self.manage_py, *arguments], self.environment)

    @property
    def pid(self) -> int:
        assert self.process
        return self.process.pid

    def start(self, *prefix: str) -> None:
        """Start the server and wait until it accepts requests; `prefix` goes before its command."""
        command = [*prefix, *self.manage_py, "serve", "--port", str(self.port)]
        self.process = processes.start(
            command, self.environment, stdout=subprocess.PIPE, stderr=self.log
        )
        assert self.process.stdout
        for line in self.process.stdout:
            if "Memory inspector" in line:
                self.announced_link = re.search(r"http\S+", line)[0]
                self.announced_more = self.process.stdout.readline()
                return
        raise AssertionError("the server did not start")

    def stop(self) -> None:
        if self.process:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(10)
            self.process.stdout.close()
            self.process = None

    def kill(self) -> None:
        """Kill the server with SIGKILL."""
        assert self.process
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process = None

    def sign_in_link(self) -> str:
        return re.search(r"http\S+", self.manage("sign_in_link", "--port", str(self.port)))[0]

    def session(self) -> requests.Session:
        """The cookies of a browser that signed in once, by the link that the server printed."""
        session = requests.Session()
        if not self.cookies:
            session.get(self.announced_link).raise_for_status()
            self.cookies = session.cookies.copy()
        session.cookies.update(self.cookies)
        return session

    def create(self, memory_id: str, *words: str, limit: int = 3) -> None:
        """Create a conversation in which the user has said these words."""
        policy = {"kind": "message_window", "max_messages": limit}
        body = {"id": memory_id, "policy": policy}
        self.api.post(f"{self.url}/api/v1/memories/", json=body).raise_for_status()
        if words:
            self.say(memory_id, *words)

    def say(self, memory_id: str, *words: str) -> None:
        body = {
            "messages": [{"role": "user", "content": word} for word in words],
            "format": "openai_chat",
        }
        url = f"{self.url}/api/v1/memories/{memory_id}/messages/"
        self.api.post(url, json=body).raise_for_status()

    def finds_incidents(self, memory_id: str, within: float) -> bool:
        """Make a conversation with an incident. Return whether the server finds it within some
        seconds, after the incidents of conversations that changed before.
        """
        self.create(memory_id, "My order is A-1182.", "well", "well", limit=2)
        self.say(memory_id, "As I said, A-1182!")
        end, url = monotonic() + within, f"{self.url}/api/v1/memories/?flag=said_again"
        while memory_id not in [row["id"] for row in self.api.get(url).json()["results"]]:
            if monotonic() >= end:
                return False
        return True

    def origin(self, memory_id: str, seq: int) -> str:
        answer = self.api.get(f"{self.url}/api/v1/memories/{memory_id}/messages/{seq}/")
        answer.raise_for_status()
        return answer.json()["origin"]

    def history(self, memory_id: str) -> list[tuple[int, str]]:
        """The seq and text of all messages of the history."""
        url: str | None = f"{self.url}/api/v1/memories/{memory_id}/history/?after=0&size=200"
        said: list[tuple[int, str]] = []
        while url:
            answer = self.api.get(url)
            answer.raise_for_status()
            said += [(row["seq"], row["text"]) for row in answer.json()["messages"]]
            # Behind a proxy the server names the address of the proxy
            later = answer.json()["later"]
            url = later and self.url + urlsplit(later)._replace(scheme="", netloc="").geturl()
        return said


def prepare(database_url: str, folder: Path) -> Template:
    """Migrate the database and make a token."""
    environment = _environment(database_url, folder)
    _run([*MANAGE, "migrate", "--verbosity", "0"], environment)
    token = _run([*MANAGE, "create_token", "tests", "--role", "admin"], environment).strip()
    return Template(database_url, token)


@contextmanager
def database(folder: Path, copy_of: str | None = None) -> Iterator[str]:
    """The URL of a new database: SQLite in `folder`, or in the PostgreSQL of DATABASE_URL."""
    given = os.environ.get("DATABASE_URL", "")
    if not given.startswith("postgres"):
        file = folder / "served.sqlite3"
        if copy_of:
            shutil.copy(copy_of.removeprefix("sqlite:///"), file)
        yield f"sqlite:///{file}"
        return
    name = f"served_{uuid4().hex[:12]}"
    origin = copy_of.rpartition("/")[2] if copy_of else "template1"
    _execute(given, f"CREATE DATABASE {name} TEMPLATE {origin}")
    try:
        yield f"{given.rpartition('/')[0]}/{name}"
    finally:
        _execute(given, f"DROP DATABASE {name} WITH (FORCE)")


def _execute(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(statement)


@contextmanager
def unstarted(
    folder: Path, template: Template, manage_py: Sequence[str] = MANAGE
) -> Iterator[Served]:
    """A server on a copy of the template, which is not started yet."""
    with (
        database(folder, copy_of=template.url) as url,
        Served(url, folder, template.token, manage_py) as served,
    ):
        yield served


@contextmanager
def serving(folder: Path, template: Template, **environment: str) -> Iterator[Served]:
    """A server on a copy of the template."""
    with unstarted(folder, template) as served:
        served.environment |= environment
        served.start()
        yield served


def in_memory() -> str | None:
    """A folder in memory, where no commit waits for a disk; None if there is none with room."""
    folder = "/dev/shm"
    return folder if Path(folder).is_dir() and shutil.disk_usage(folder).free > ROOM else None


@contextmanager
def served_by(database_url: str, folder: Path) -> Iterator[Served]:
    """A server on this database, which is migrated first."""
    with Served(database_url, folder, prepare(database_url, folder).token) as served:
        served.start()
        yield served


def _environment(database_url: str, folder: Path) -> dict[str, str]:
    return os.environ | {"DATABASE_URL": database_url, "CHATMEMORY_VAR": str(folder)}


def _run(command: Sequence[str], environment: dict[str, str]) -> str:
    """Run a command and return its output. Raises CalledProcessError with its output."""
    ran = processes.run(command, environment)
    try:
        ran.check_returncode()
    except subprocess.CalledProcessError as error:
        error.add_note(ran.stderr)
        raise
    return ran.stdout


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
