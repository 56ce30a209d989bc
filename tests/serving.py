"""A real server process on a database of its own, as `make run` starts it."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from uuid import uuid4

import psycopg
import requests

ROOT = Path(__file__).parents[1]


class Served:
    """A server, its address, and a client of its API."""

    def __init__(self, database_url: str, folder: Path) -> None:
        self.environment = os.environ | {
            "DATABASE_URL": database_url,
            "CHATMEMORY_VAR": str(folder),
        }
        self.port = _free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[str] | None = None
        self.log: IO[str] | None = None
        self.manage("migrate", "--verbosity", "0")
        self.api = requests.Session()
        self.token = self.manage("create_token", "tests", "--role", "admin").strip()
        self.api.headers["Authorization"] = f"Bearer {self.token}"

    def manage(self, *arguments: str) -> str:
        command = [sys.executable, str(ROOT / "manage.py"), *arguments]
        return subprocess.run(
            command, env=self.environment, check=True, capture_output=True, text=True
        ).stdout

    def start(self, *prefix: str) -> None:
        """Returns once the server said that it can be reached; `prefix` goes before its command."""
        manage = [sys.executable, str(ROOT / "manage.py")]
        command = [*prefix, *manage, "serve", "--port", str(self.port)]
        self.process = subprocess.Popen(
            command, env=self.environment, stdout=subprocess.PIPE, stderr=self.log, text=True
        )
        assert self.process.stdout
        for line in self.process.stdout:
            if "Memory inspector" in line:
                return
        raise AssertionError("the server did not start")

    @contextmanager
    def logging(self) -> Iterator[Callable[[], str]]:
        """What the server writes to stderr goes to a file; a call reads it so far."""
        path = Path(self.environment["CHATMEMORY_VAR"]) / "log"
        with path.open("w") as self.log:
            yield path.read_text
        self.log = None

    def stop(self) -> None:
        if self.process:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(10)
            self.process.stdout.close()
            self.process = None

    def kill(self) -> None:
        """SIGKILL: no goodbye to anyone."""
        assert self.process
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process = None

    def sign_in_link(self) -> str:
        return re.search(r"http\S+", self.manage("sign_in_link", "--port", str(self.port)))[0]

    def session(self) -> requests.Session:
        """A signed-in browser's cookies."""
        session = requests.Session()
        session.get(self.sign_in_link()).raise_for_status()
        return session

    def create(self, memory_id: str, limit: int = 3) -> None:
        policy = {"kind": "message_window", "max_messages": limit}
        body = {"id": memory_id, "policy": policy}
        self.api.post(f"{self.url}/api/v1/memories/", json=body).raise_for_status()

    def say(self, memory_id: str, *words: str) -> None:
        body = {
            "messages": [{"role": "user", "content": word} for word in words],
            "format": "openai_chat",
        }
        url = f"{self.url}/api/v1/memories/{memory_id}/messages/"
        self.api.post(url, json=body).raise_for_status()

    def history(self, memory_id: str) -> list[tuple[int, str]]:
        """Seq and text of all that was said."""
        url: str | None = f"{self.url}/api/v1/memories/{memory_id}/history/?after=0&size=200"
        said: list[tuple[int, str]] = []
        while url:
            answer = self.api.get(url)
            answer.raise_for_status()
            said += [(row["seq"], row["text"]) for row in answer.json()["messages"]]
            url = answer.json()["later"]
        return said


@contextmanager
def serving(folder: Path) -> Iterator[Served]:
    """On SQLite in `folder`, or on a new database of the PostgreSQL that DATABASE_URL names."""
    given = os.environ.get("DATABASE_URL", "")
    if not given.startswith("postgres"):
        with served_by(f"sqlite:///{folder}/served.sqlite3", folder) as served:
            yield served
        return
    name = f"served_{uuid4().hex[:12]}"
    _run(given, f"CREATE DATABASE {name}")
    try:
        with served_by(f"{given.rpartition('/')[0]}/{name}", folder) as served:
            yield served
    finally:
        _run(given, f"DROP DATABASE {name} WITH (FORCE)")


def _run(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(statement)


@contextmanager
def served_by(database_url: str, folder: Path) -> Iterator[Served]:
    """On this very database."""
    served = Served(database_url, folder)
    served.start()
    try:
        yield served
    finally:
        served.stop()
        served.api.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
