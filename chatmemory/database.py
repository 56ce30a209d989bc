"""The database of our tables: the one to which the project's routers write conversations.

All our tables are in it, and it is read as well: a replica lags, and a window without the message
that was added a moment ago would be wrong. Every transaction, connection and query is made here, or
by a manager that asks here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.apps import apps
from django.core.checks import Error
from django.core.checks import Warning as Caution
from django.db import connections, router, transaction
from django.db.backends.base.base import BaseDatabaseWrapper


def alias() -> str:
    """Return the name of the database in the setting DATABASES."""
    return router.db_for_write(apps.get_model("chatmemory", "Memory"))


def connection() -> BaseDatabaseWrapper:
    """Return the connection of this thread."""
    return connections[alias()]


class _Transaction(transaction.Atomic):
    """On SQLite, takes the lock of writers when it begins, whatever `transaction_mode` the project
    has set: SQLite refuses a transaction that asks for it later if another has written meanwhile.
    """

    def __enter__(self) -> None:
        connection = transaction.get_connection(self.using)
        if connection.vendor != "sqlite" or connection.in_atomic_block:
            super().__enter__()
            return
        connection.ensure_connection()  # this reads the project's mode
        own, connection.transaction_mode = connection.transaction_mode, "IMMEDIATE"
        try:
            super().__enter__()
        finally:
            connection.transaction_mode = own


def atomic(using: str | None = None) -> transaction.Atomic:
    """Return a context manager that makes the changes of a block one transaction."""
    return _Transaction(using or alias(), savepoint=True, durable=False)


def on_commit(call: Callable[[], Any]) -> None:
    """Call something after the commit. Its errors are logged: the change is already committed."""
    transaction.on_commit(call, using=alias(), robust=True)


def has_tables(using: str) -> bool:
    """Return whether the routers allow our tables in a database."""
    return router.allow_migrate_model(using, apps.get_model("chatmemory", "Memory"))


def check_transactions_are_short(**_: object) -> list[Caution]:
    """A system check: with ATOMIC_REQUESTS, a request is one transaction."""
    if not connection().settings_dict["ATOMIC_REQUESTS"]:
        return []
    return [
        Caution(
            f"DATABASES[{alias()!r}] has ATOMIC_REQUESTS: a long import or deletion keeps all "
            "others from writing, and SQLite refuses requests that change while another does",
            hint="Unset it. Each change of chatmemory is one transaction without it.",
            id="chatmemory.W001",
        )
    ]


def check_tables_are_together(**_: object) -> list[Error]:
    """A system check: a change writes several tables in one transaction."""
    ours = alias()
    elsewhere = {
        model.__name__: found
        for model in apps.get_app_config("chatmemory").get_models()
        if (found := router.db_for_write(model)) != ours
    }
    return [
        Error(
            f"DATABASE_ROUTERS write {name} to {found!r}, but Memory to {ours!r}",
            hint="Send all models of the app chatmemory to one database.",
            id="chatmemory.E001",
        )
        for name, found in elsewhere.items()
    ]
