"""How commands are typed here: manage.py in a checkout, `python -m inspector` where installed."""

from __future__ import annotations

from django.core.management import CommandError
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.migrations.executor import MigrationExecutor

from inspector.project.settings import IS_CHECKOUT


def typed(command: str) -> str:
    """Return a command as it is typed."""
    return f"manage.py {command}" if IS_CHECKOUT else f"python -m inspector {command}"


def check_migrated() -> None:
    """Raise CommandError if the database lacks tables, and say how to make them."""
    executor = MigrationExecutor(connections[DEFAULT_DB_ALIAS])
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        raise CommandError(f"the database is not up to date: run {typed('migrate')} first")
