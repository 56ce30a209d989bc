"""Gives access to the library's database: the database to which the project's routers write
conversations.

All tables of the library are read and written in this database. No replica is read, because a
replica may lack the newest messages. Use this module, or a manager that uses it, for every
transaction and query of these tables.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from time import monotonic, sleep
from typing import Any, TypeVar

from django.apps import apps
from django.core.checks import Error
from django.core.checks import Warning as Caution
from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, connections, router, transaction
from django.db import Error as AnyDatabaseError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper
from django.db.models import BooleanField, F, Func, Q
from django.db.models.expressions import RawSQL

TABLE = "chatmemory_memory"  # of conversations
POOL_TRIES = 5
AT_A_STRETCH, PAUSE = 1.0, 0.11  # seconds after which a writer of SQLite lets others in

Part = TypeVar("Part")
Key = TypeVar("Key")


def alias() -> str:
    """Return the name of the library's database in the setting DATABASES."""
    if not router.routers:  # each change calls it about ten times
        return DEFAULT_DB_ALIAS
    return router.db_for_write(apps.get_model("chatmemory", "Memory"))


def connection() -> BaseDatabaseWrapper:
    """Return this thread's connection to the library's database."""
    return connections[alias()]


def cursor() -> CursorWrapper:
    """Return a new cursor of this thread's connection to the library's database."""
    return connection().cursor()


def described() -> str:
    """Return a description of the database for operators: its file, or its name and host. The
    password is left out.
    """
    settings = connection().settings_dict
    if connection().vendor == "sqlite":
        return str(settings["NAME"])
    return f"{settings['NAME']} on {settings['HOST'] or 'this machine'}"


def refusal() -> str | None:
    """Return the reason why a PostgreSQL database of the project refuses connections; None if all
    databases accept them.

    This function opens a connection of its own, because a connection pool hides the reason.
    """
    for each in connections.all():
        if each.vendor == "postgresql":
            try:
                each.Database.connect(**each.get_connection_params()).close()  # type: ignore[attr-defined]  # only a backend has it, not its base class
            except each.Database.Error as error:  # type: ignore[attr-defined]  # only a backend has it, not its base class
                return str(error).strip()
    return None


class _Transaction(transaction.Atomic):
    """A transaction that on SQLite takes the writers' lock at once, whatever the project's
    `transaction_mode`.

    If a transaction took the lock later, SQLite would refuse it after another process has written.
    """

    def __enter__(self) -> None:
        connection = transaction.get_connection(self.using)
        if connection.vendor != "sqlite" or connection.in_atomic_block:
            super().__enter__()
            return
        connection.ensure_connection()  # Django reads the project's mode here
        own, connection.transaction_mode = connection.transaction_mode, "IMMEDIATE"
        try:
            super().__enter__()
        finally:
            connection.transaction_mode = own


def atomic(using: str | None = None) -> transaction.Atomic:
    """Return a context manager that runs its block in one transaction. The transaction is in the
    database `using`, or in the library's database if `using` is None.
    """
    return _Transaction(using or alias(), savepoint=True, durable=False)


@contextmanager
def nowait() -> Iterator[None]:
    """Run the block in a transaction that never waits for locks. Raises OperationalError at once if
    another transaction holds a needed lock.
    """
    db = connection()
    if db.vendor == "postgresql":
        with atomic(), db.cursor() as cursor:
            cursor.execute("SHOW lock_timeout")
            (before,) = cursor.fetchone()
            cursor.execute("SET LOCAL lock_timeout = 1")  # milliseconds; 0 would wait forever
            yield
            # An outer transaction would keep it. After an error the savepoint restores it
            cursor.execute("SELECT set_config('lock_timeout', %s, true)", [before])
        return
    with db.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout")
        (before,) = cursor.fetchone()
        cursor.execute("PRAGMA busy_timeout = 0")
        try:
            with atomic():
                yield
        finally:
            cursor.execute(f"PRAGMA busy_timeout = {int(before)}")


def pausing_for_writers(parts: Iterable[Part]) -> Iterator[Part]:
    """Yield the parts of long work, with pauses on SQLite. Each part must have its own transaction.

    Without pauses, other writers might never get their turn: SQLite has no queue, and a waiting
    writer tries only every tenth of a second.
    """
    began, last = monotonic(), 0.0
    for part in parts:
        db = connection()
        is_shared = db.vendor == "sqlite" and not db.in_atomic_block
        if is_shared and monotonic() - began + last > AT_A_STRETCH:  # the next may be as long
            sleep(PAUSE)
            began = monotonic()
        start = monotonic()
        yield part
        last = monotonic() - start


def for_seconds(seconds: float, parts: Iterable[Part]) -> Iterator[Part]:
    """Yield the parts of long work until about this many seconds have passed, but at least one
    part.
    """
    end = monotonic() + seconds
    for part in parts:
        yield part
        if monotonic() >= end:
            return


def parts_of(sizes: Mapping[Key, int], most: int) -> Iterator[list[Key]]:
    """Yield the keys of `sizes` in lists, so that the sizes in a list add up to at most `most`. A
    key with a larger size gets its own list. If `sizes` is empty, yield one empty list.
    """
    part: list[Key] = []
    together = 0
    for key, size in sizes.items():
        if part and together + size > most:
            yield part
            part, together = [], 0
        part.append(key)
        together += size
    yield part


def on_commit(call: Callable[..., object], *arguments: object) -> None:
    """Call a function after the transaction commits. An error of the function is only logged,
    because the change is already stored.
    """
    # Django logs an error with the function's name, which a partial does not have
    transaction.on_commit(lambda: call(*arguments), using=alias(), robust=True)


class _IsAny(Func):
    """SQL expression: whether a value is in an array."""

    template = "(%(expressions)s)"
    arg_joiner = " = ANY "
    output_field = BooleanField()


def in_list(name: str, values: Iterable[int] | Iterable[str]) -> Q | Func:
    """Return the condition that the field `name` equals one of these numbers or texts.

    All values are one parameter of the query. With a parameter for each value, Django would be slow
    to build the query.
    """
    listed = list_parameter(values)
    if connection().vendor == "postgresql":
        return _IsAny(F(name), RawSQL("%s", [listed]))
    return Q((f"{name}__in", RawSQL("SELECT value FROM json_each(%s)", [listed])))


def list_parameter(values: Iterable[int] | Iterable[str]) -> list[int] | list[str] | str:
    """Return numbers or texts as one parameter of a query: a list for PostgreSQL, a JSON text for
    SQLite.
    """
    listed: list[Any] = list(values)  # all numbers or all texts: a list has one of both types
    return listed if connection().vendor == "postgresql" else json.dumps(listed)


def has_tables(using: str) -> bool:
    """Return whether the project's routers allow the library's tables in the database `using`. The
    tables need not exist yet.
    """
    return router.allow_migrate_model(using, apps.get_model("chatmemory", "Memory"))


def answers(using: str) -> bool:
    """Return whether a database accepts connections."""
    try:
        connections[using].ensure_connection()
    except (AnyDatabaseError, ImproperlyConfigured):
        return False
    return True


def check_transactions_are_short(**_: object) -> list[Caution]:
    """Check that ATOMIC_REQUESTS is off. With it, each request would be one long transaction.

    This is a system check of Django.
    """
    if not connection().settings_dict["ATOMIC_REQUESTS"]:
        return []
    return [
        Caution(
            f"DATABASES[{alias()!r}] has ATOMIC_REQUESTS: a long import or deletion "
            "blocks all other writers, and SQLite refuses a request that writes "
            "while another request writes",
            hint="Unset it. Each change of chatmemory is one transaction without it.",
            id="chatmemory.W001",
        )
    ]


def check_sessions_are_kept(**_: object) -> list[Error]:
    """Check that PostgreSQL connections do not share a session. Behind PgBouncer in transaction
    mode, they share one. This is a system check of Django.

    In a shared session, queries lose their server-side cursors, and live pages lose the
    notifications of changes (LISTEN). A database that is down passes the check.
    """
    if not _shares_sessions():
        return []
    hint = "Set pool_mode = session for this database in pgbouncer.ini."
    text = f"{described()} is behind PgBouncer in transaction mode: use session mode."
    return [Error(text, hint=hint, id="chatmemory.E012")]


def _shares_sessions() -> bool:
    """Return whether two open connections get the same session. False for a database that is down.

    A second connection is opened only behind a pooler.
    """
    db = connection()
    if db.vendor != "postgresql" or db.in_atomic_block:
        return False
    query = "SELECT pg_backend_pid()"
    try:
        with db.cursor() as cursor:
            cursor.execute(query)
            # A pooler gives its clients process ids of its own
            if cursor.fetchone() == (cursor.connection.info.backend_pid,):
                return False
            with closing(_another(db)) as other:
                for _ in range(POOL_TRIES):
                    cursor.execute(query)
                    if cursor.fetchone() == other.execute(query).fetchone():
                        return True
    except (AnyDatabaseError, db.Database.Error, ImproperlyConfigured):  # type: ignore[attr-defined]  # only a backend has it, not its base class
        pass
    return False


def _another(db: BaseDatabaseWrapper) -> Any:  # a psycopg connection: Django has no type for it
    """Return a new connection to the database, beside Django's own."""
    parameters = {**db.get_connection_params(), "autocommit": True}
    return db.Database.connect(**parameters)  # type: ignore[attr-defined]  # only a backend has it, not its base class


def check_tables_are_together(**_: object) -> list[Error]:
    """Check that all tables of the library are in one database, because one transaction writes
    several of them.

    This is a system check of Django.
    """
    db = alias()
    own = [each for each in apps.get_app_configs() if f"{each.label}_".startswith("chatmemory_")]
    problems = [
        (
            f"DATABASE_ROUTERS write the model {model.__name__} to {found!r}, but the "
            f"model Memory to {db!r}"
        )
        for each in own
        for model in each.get_models()
        if (found := router.db_for_write(model)) != db
    ]
    problems += [
        f"DATABASE_ROUTERS do not migrate {each.label!r} in {db!r}, which has the table of Memory"
        for each in own
        if not router.allow_migrate(db, each.label)
    ]
    hint = "Send all models of chatmemory and of its rooms (chatmemory_…) to one database."
    return [Error(each, hint=hint, id="chatmemory.E001") for each in problems]
