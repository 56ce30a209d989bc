"""Large databases, made once and kept in var/benchmarks/ until schema or makers change."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import process_time
from typing import Any

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "var/benchmarks"
MAKERS = (Path(__file__).with_name("fleets.py"), ROOT / "tests/long_conversations.py")


def made(name: str, make: Callable[[], None]) -> Path:
    """Return the file of a database that `make` has filled, now or in an earlier run."""
    from django.core.management import call_command

    file = FOLDER / f"{name}-{_made_of()}.sqlite3"
    if not file.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        for old in FOLDER.glob(f"{name}-*"):
            old.unlink()
        started, unfinished = process_time(), file.with_suffix(".unfinished")
        with opened(unfinished):
            _fill(make)
        unfinished.rename(file)
        print(f"made {file.name} in {process_time() - started:.0f} s of processor time", flush=True)
    with opened(file):
        call_command("migrate", verbosity=0)  # the tables that the digest leaves out
    return file


def connected(file: Path) -> Any:
    """Return a new connection to a file."""
    from django.db import connections

    connection = connections.create_connection("default")
    connection.settings_dict = {**connection.settings_dict, "NAME": str(file)}
    return connection


@contextmanager
def opened(file: Path) -> Iterator[None]:
    """Make all queries of a block those of a file."""
    from django.db import connections

    before = connections["default"]
    connections["default"] = connected(file)
    try:
        yield
    finally:
        connections["default"].close()
        connections["default"] = before


def use(connection: Any, name: object) -> None:
    """Make all queries those of a connection, and keep apart what a cache has of it."""
    from django.core.cache import cache
    from django.db import connections

    connections["default"] = connection
    cache.key_prefix = str(name)


def _fill(make: Callable[[], None]) -> None:
    from django.core.management import call_command
    from django.db import connection

    from chatmemory import search

    with connection.cursor() as cursor:
        for pragma in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -200000"):
            cursor.execute(f"PRAGMA {pragma}")
        call_command("migrate", verbosity=0)
        index = search.index_of(connection)
        index.drop_triggers()
        make()
        index.rebuild()
        index.install_triggers()
        cursor.execute("PRAGMA journal_mode = WAL")


def _made_of() -> str:
    """Return a digest of the tables of conversations, and of how rows are made."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT sql FROM sqlite_master WHERE tbl_name IN ('chatmemory_memory', "
            "'chatmemory_message', 'chatmemory_stay', 'chatmemory_step', 'chatmemory_search') "
            "ORDER BY name"
        )
        facts = json.dumps([cursor.fetchall(), *(file.read_text() for file in MAKERS)])
    return hashlib.sha256(facts.encode()).hexdigest()[:12]
