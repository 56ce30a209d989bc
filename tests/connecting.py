"""Connections beside the one of a test."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from django.db import connections


@contextmanager
def connected(name: str) -> Iterator[None]:
    """Another connection, to the database of this name."""
    before = connections["default"]
    connections["default"] = other = connections.create_connection("default")
    other.settings_dict = {**other.settings_dict, "NAME": name}
    try:
        yield
    finally:
        other.close()
        connections["default"] = before


@contextmanager
def row_locked(url: str, memory_id: str) -> Iterator[None]:
    """Hold what a writer of a conversation waits for: on SQLite all writers do."""
    if url.startswith("sqlite"):
        other = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")
        other.close()
    else:
        with psycopg.connect(url) as other:
            other.execute("SELECT * FROM chatmemory_memory WHERE id = %s FOR UPDATE", [memory_id])
            yield
