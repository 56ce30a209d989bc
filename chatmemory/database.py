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
from django.db import connections, router, transaction
from django.db.backends.base.base import BaseDatabaseWrapper


def alias() -> str:
    """Return the name of the database in the setting DATABASES."""
    return router.db_for_write(apps.get_model("chatmemory", "Memory"))


def connection() -> BaseDatabaseWrapper:
    """Return the connection of this thread."""
    return connections[alias()]


def atomic(using: str | None = None) -> transaction.Atomic:
    """Return a context manager that makes the changes of a block one transaction."""
    return transaction.atomic(using=using or alias())


def on_commit(call: Callable[[], Any]) -> None:
    """Call something after the commit. Its errors are logged: the change is already committed."""
    transaction.on_commit(call, using=alias(), robust=True)


def has_tables(using: str) -> bool:
    """Return whether the routers allow our tables in a database."""
    return router.allow_migrate_model(using, apps.get_model("chatmemory", "Memory"))


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
