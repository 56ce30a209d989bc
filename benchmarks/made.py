"""Large databases, made once and kept until the schema or the code that makes them changes.

For SQLite they are files in var/benchmarks/, for PostgreSQL databases on its server with names that
begin with "bench-". Django's setting NAME identifies a database.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import process_time
from typing import Any

from benchmarks.database import ON_POSTGRESQL, SERVER

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "var/benchmarks"
MAKERS = (Path(__file__).with_name("fleets.py"), ROOT / "tests/long_conversations.py")


class _Files:
    """The databases of SQLite."""

    tables = (
        "SELECT sql FROM sqlite_master WHERE tbl_name IN ('chatmemory_memory', "
        "'chatmemory_message', 'chatmemory_stay', 'chatmemory_step', 'chatmemory_search') "
        "ORDER BY name"
    )

    def named(self, name: str) -> str:
        return str(FOLDER / f"{name}.sqlite3")

    def like(self, name: str) -> list[str]:
        return [str(file) for file in FOLDER.glob(f"{name}-*.sqlite3")]

    def create(self, name: str) -> None:
        FOLDER.mkdir(parents=True, exist_ok=True)
        Path(name).unlink(missing_ok=True)

    def copy(self, name: str, folder: str) -> str:
        return shutil.copyfile(name, f"{folder}/copy.sqlite3")

    def read_once(self, name: str) -> None:
        """Make the system cache a file in memory, where the newest pages are anyway."""
        with Path(name).open("rb") as file:
            while file.read(2**24):
                pass

    def rename(self, old: str, new: str) -> None:
        Path(old).rename(new)

    def drop(self, name: str) -> None:
        Path(name).unlink()

    @contextmanager
    def filling(self, cursor: Any, index: Any) -> Iterator[None]:
        """Write without durability, and index texts at the end."""
        for pragma in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -200000"):
            cursor.execute(f"PRAGMA {pragma}")
        yield
        index.rebuild()
        cursor.execute("PRAGMA journal_mode = WAL")


class _Databases:
    """The databases of a PostgreSQL server."""

    tables = (
        "SELECT table_name, column_name, data_type FROM information_schema.columns "
        "WHERE table_name LIKE 'chatmemory\\_%%' UNION ALL "
        "SELECT tablename, indexname, indexdef FROM pg_indexes "
        "WHERE tablename LIKE 'chatmemory\\_%%' ORDER BY 1, 2"
    )

    def named(self, name: str) -> str:
        return f"bench-{name}"

    def like(self, name: str) -> list[str]:
        rows = self._execute("SELECT datname FROM pg_database").fetchall()
        return [found for (found,) in rows if found.startswith(f"bench-{name}-")]

    def create(self, name: str) -> None:
        self._execute(f'DROP DATABASE IF EXISTS "{name}"')
        self._execute(f'CREATE DATABASE "{name}"')

    def copy(self, name: str, folder: str) -> str:
        copy = f"{name}-copy"
        self._execute(f'CREATE DATABASE "{copy}" TEMPLATE "{name}"')
        return copy

    def read_once(self, name: str) -> None:
        """Do nothing: the server keeps the pages in memory."""

    def rename(self, old: str, new: str) -> None:
        self._execute(f'ALTER DATABASE "{old}" RENAME TO "{new}"')

    def drop(self, name: str) -> None:
        self._execute(f'DROP DATABASE "{name}" WITH (FORCE)')

    @contextmanager
    def filling(self, cursor: Any, index: Any) -> Iterator[None]:
        """Index texts at the end, and update the planner's statistics."""
        index.remove()
        yield
        index.install()
        cursor.execute("VACUUM ANALYZE")

    def _execute(self, statement: str) -> Any:
        import psycopg

        with psycopg.connect(SERVER, autocommit=True) as admin:
            return admin.execute(statement)


DATABASES = _Databases() if ON_POSTGRESQL else _Files()


def made(name: str, make: Callable[[], None]) -> str:
    """Return the database that `make` has filled, now or in an earlier run."""
    from django.core.management import call_command

    kept = DATABASES.named(f"{name}-{_made_of()}")
    if kept not in DATABASES.like(name):
        for old in DATABASES.like(name):
            DATABASES.drop(old)
        started, unfinished = process_time(), DATABASES.named(f"{name}-unfinished")
        DATABASES.create(unfinished)
        with opened(unfinished):
            _fill(make)
        DATABASES.rename(unfinished, kept)
        print(f"made {kept} in {process_time() - started:.0f} s of processor time", flush=True)
    with opened(kept):
        call_command("migrate", verbosity=0)  # tables that the digest leaves out
    return kept


@contextmanager
def copied(name: str, folder: str) -> Iterator[str]:
    """Yield a temporary copy of a database."""
    copy = DATABASES.copy(name, folder)
    yield copy
    DATABASES.drop(copy)


def connected(name: str) -> Any:
    """Return a new connection to a database."""
    from django.db import connections

    connection = connections.create_connection("default")
    settings = connection.settings_dict
    options = {key: each for key, each in settings["OPTIONS"].items() if key != "pool"}
    connection.settings_dict = {**settings, "NAME": name, "OPTIONS": options}
    return connection


@contextmanager
def opened(name: str) -> Iterator[None]:
    """Use a database for all queries of a block."""
    from django.db import connections

    before = connections["default"]
    connections["default"] = connected(name)
    try:
        yield
    finally:
        connections["default"].close()
        connections["default"] = before


def use(connection: Any, name: object) -> None:
    """Use a connection for all queries, and separate its cached values from other databases'."""
    from django.core.cache import cache
    from django.db import connections

    connections["default"] = connection
    cache.key_prefix = str(name)


def _fill(make: Callable[[], None]) -> None:
    from django.core.management import call_command
    from django.db import connection

    from chatmemory import search

    call_command("migrate", verbosity=0)
    with connection.cursor() as cursor, DATABASES.filling(cursor, search.index_of(connection)):
        make()


def _made_of() -> str:
    """Return a digest of the schema, its name, and the code that makes the rows."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(DATABASES.tables, [])
        tables = cursor.fetchall()
        cursor.execute("SELECT name FROM django_migrations WHERE app = 'chatmemory'")
        facts = json.dumps([tables, cursor.fetchall(), *(file.read_text() for file in MAKERS)])
    return hashlib.sha256(facts.encode()).hexdigest()[:12]
