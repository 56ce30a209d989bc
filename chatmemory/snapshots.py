"""Snapshots of the database: several reads see the same state, while others write."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakSet

from django.db.backends.base.base import BaseDatabaseWrapper

from chatmemory import database

_READING: WeakSet[BaseDatabaseWrapper] = WeakSet()  # the connections that are within a snapshot


@contextmanager
def one_snapshot() -> Iterator[None]:
    """Let all reads in a block see the same state of the database. Others can write meanwhile, but
    the block does not see their changes. The block itself must not write.

    Within a transaction or another snapshot, the block sees what that transaction or snapshot sees.
    """
    connection = database.connection()
    connection.ensure_connection()
    if connection.in_atomic_block or _is_within_snapshot(connection):
        yield
    elif connection.vendor == "postgresql":
        with database.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            with _marked(connection):
                yield
    else:
        with connection.cursor() as cursor:
            cursor.execute("BEGIN DEFERRED")  # atomic() would take the writers' lock
            try:
                with _marked(connection):
                    yield
            finally:
                cursor.execute("ROLLBACK")


@contextmanager
def _marked(connection: BaseDatabaseWrapper) -> Iterator[None]:
    _READING.add(connection)
    try:
        yield
    finally:
        _READING.discard(connection)


def is_within_snapshot() -> bool:
    """Return whether this thread is in a block of `one_snapshot`, which must not write. False if
    `one_snapshot` itself was called within a transaction.
    """
    return database.connection() in _READING


def _is_within_snapshot(connection: BaseDatabaseWrapper) -> bool:
    return connection.vendor == "sqlite" and connection.connection.in_transaction
