"""Prepares the data folder at the first command on a machine, while the folder has no database.

Nobody who types `chatmemory import` on a new machine should need to know about migrations. A
command that writes creates the tables. A command that only reads creates no file, and answers from
an empty database in RAM. This applies only to the SQLite file in the data folder: a database in
DATABASE_URL is migrated by its owner.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from django.apps import apps
from django.conf import settings
from django.core.management import call_command
from django.db import DatabaseError, connections

from chatmemory import search

# Commands that write into an empty database. `run` migrates by itself
WRITING = {
    *(
        "import_transcripts",
        "mcp",
        "create_token",
        "load_demo",
        "createsuperuser",
        "sign_in_link",
        "record",
    ),
}
READING = {
    *("list_memories", "show_memory", "export_conversations", "verify_memories", "purge_memories"),
    *("recall", "incidents", "doctor", "calls"),
}


def prepare_database(command: str) -> None:
    """Create the tables that a command of manage.py needs, if the data folder has no database yet.
    A command that only reads gets tables in RAM.
    """
    connection = connections["default"]
    if connection.settings_dict["NAME"] != str(settings.DATABASE_FILE):
        return
    if command in WRITING:
        with _alone():
            if _is_empty():
                _migrate()
    elif command in READING and _is_empty():
        connection.close()
        connection.settings_dict["NAME"] = ":memory:"
        _make_tables()


def _is_empty() -> bool:
    """Return whether the database has no table of conversations. False if the database cannot be
    read: then the command itself explains why.
    """
    table = apps.get_model("chatmemory", "Memory")._meta.db_table
    try:
        return table not in connections["default"].introspection.table_names()
    except DatabaseError:
        return False


def _migrate() -> None:
    call_command("migrate", verbosity=0, interactive=False)


def _make_tables() -> None:
    """Make the tables of a database in RAM, which ends with this process.

    The tables are made from the models, because all migrations would take nine times as long.
    """
    settings.MIGRATION_MODULES = {each.label: None for each in apps.get_app_configs()}
    call_command("migrate", run_syncdb=True, verbosity=0, interactive=False)
    search.index_of(connections["default"]).install()


@contextmanager
def _alone() -> Iterator[None]:
    """Within this context, no other process makes the tables. Agents start several commands at
    once.
    """
    file = settings.DATABASE_FILE.with_name("making_schema.lock")
    lock = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
