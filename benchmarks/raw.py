"""Connections to the database of a benchmark without Django, for comparisons."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks.database import ON_POSTGRESQL

Rows = Iterable[Sequence[Any]]


class Sqlite:
    """A connection to SQLite that begins no transaction by itself. Placeholders are question
    marks.
    """

    begin, locked = "BEGIN IMMEDIATE", ""

    def __init__(self, path: str) -> None:
        from chatmemory.search.conditions import define_functions

        connection = sqlite3.connect(path, isolation_level=None)
        for pragma in ("journal_mode = WAL", "secure_delete = ON"):
            connection.execute(f"PRAGMA {pragma}")
        define_functions(connection)  # triggers of the tables call them
        self.execute, self.executemany = connection.execute, connection.executemany


class Postgresql:
    """Such a connection to PostgreSQL."""

    begin, locked = "BEGIN", " FOR UPDATE"

    def __init__(self, url: str) -> None:
        import psycopg
        from psycopg.types.json import JsonbDumper

        connection = psycopg.connect(url, autocommit=True)
        connection.adapters.register_dumper(dict, JsonbDumper)
        self._cursor = connection.cursor()

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Any:
        return self._cursor.execute(statement.replace("?", "%s"), values)

    def executemany(self, statement: str, rows: Rows) -> None:
        self._cursor.executemany(statement.replace("?", "%s"), rows)


Connection = Sqlite | Postgresql


def connect() -> Connection:
    """Return a new connection to the database of DATABASE_URL."""
    url = os.environ["DATABASE_URL"]
    return Postgresql(url) if ON_POSTGRESQL else Sqlite(url.removeprefix("sqlite:///"))


def index(connection: Connection, memory_id: str, first: int, last: int) -> None:
    """Put messages into SQLite's search index, as the room `search` does."""
    if not ON_POSTGRESQL:
        from inspector.rooms.search.sqlite import PUT_MESSAGES

        for statement in PUT_MESSAGES:
            connection.execute(statement.replace("%s", "?"), (memory_id, first, last))
