"""Connections in addition to the test's own."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

import dj_database_url
import psycopg
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.utils import load_backend


@contextmanager
def connected(name: str) -> Iterator[None]:
    """Yield another connection to the database of this name."""
    other = connections.create_connection("default")
    other.settings_dict = {**other.settings_dict, "NAME": name}
    with _instead(other):
        yield


@contextmanager
def connected_to(url: str) -> Iterator[None]:
    """Yield a connection to the database at a URL, which may be of another kind."""
    settings = {**connections["default"].settings_dict, "OPTIONS": {}}
    settings |= dj_database_url.parse(url)
    with _instead(load_backend(settings["ENGINE"]).DatabaseWrapper(settings, "default")):
        yield


@contextmanager
def _instead(other: BaseDatabaseWrapper) -> Iterator[None]:
    before = connections["default"]
    connections["default"] = other
    try:
        yield
    finally:
        other.close()
        connections["default"] = before


@contextmanager
def row_locked(url: str, memory_id: str) -> Iterator[None]:
    """Hold the lock that writers of a conversation need. On SQLite, all writers wait for it."""
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
