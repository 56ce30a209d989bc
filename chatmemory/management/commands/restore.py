from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from django.core.checks import Tags
from django.core.management.base import CommandError, CommandParser

from chatmemory import database, schema
from chatmemory.management.base import DatabaseCommand, confirmed
from chatmemory.printing import OptionValue
from chatmemory.sqlite_files import damage_of, is_damage


class Command(DatabaseCommand):
    help = (
        "Replace the SQLite database by FILE, a copy that manage.py backup has made. Stop the "
        "server first. An interrupted restore changes nothing. For PostgreSQL use pg_restore."
    )
    requires_system_checks = (Tags.models,)  # do not open the database that is replaced

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE")
        parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")

    def handle(self, *args: object, **options: OptionValue) -> None:
        connection = database.connection()
        if connection.vendor != "sqlite":
            raise CommandError(
                "restore replaces only SQLite databases: for PostgreSQL use pg_restore"
            )
        file, replaced = options["file"], Path(connection.settings_dict["NAME"])
        if not file.is_file():
            raise CommandError(f"the file {file} does not exist")
        if replaced.exists() and file.samefile(replaced):
            raise CommandError(f"{file} is the database in use: name a copy")
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=rw", uri=True)) as copy:
            check_copy(file, copy)
            question = f"Replace all conversations of {replaced} by those of {file}?"
            if not options["yes"] and not confirmed(question):
                raise CommandError(
                    "nothing was restored, because you did not confirm: type yes, or use --yes"
                )
            replace(replaced, copy)
        self.stdout.write(f"{replaced} is restored: run manage.py migrate, then verify_memories")


def check_copy(file: Path, copy: sqlite3.Connection) -> None:
    """Raise CommandError if a copy of the database cannot be restored: it is damaged, lacks
    chatmemory's tables, or cannot be migrated to this version.

    `copy` is the connection to the copy. `file` is the copy's file, which the error names.
    """
    try:
        if found := damage_of(copy):
            raise CommandError(f"{file} is damaged: {found}")
        named = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
        if not copy.execute(named, [database.TABLE]).fetchone():
            raise CommandError(f"{file} has no tables of chatmemory: is it the right file?")
        recorded = copy.execute("SELECT app, name FROM django_migrations")
        if other := schema.difference(recorded.fetchall()):
            raise CommandError(f"{file} {other.reason} {other.what_to_do}")
    except sqlite3.Error as error:
        raise CommandError(f"{file} cannot be read: {error}") from error


def replace(replaced: Path, copy: sqlite3.Connection) -> None:
    """Replace the content of the database by a copy, in one transaction. `replaced` is the file of
    the database, and `copy` the connection to the copy.

    Raises CommandError if the database is in use, is damaged, or cannot be written.

    The content is written into the existing file. With a new file, SQLite would apply the log of an
    earlier crash to the new content.
    """
    with closing(sqlite3.connect(replaced, timeout=0, isolation_level=None)) as opened:
        try:
            opened.execute("PRAGMA locking_mode = EXCLUSIVE")
            opened.execute("BEGIN EXCLUSIVE")
            opened.execute("ROLLBACK")  # the lock is kept
            copy.backup(opened)
        except sqlite3.Error as error:
            raise CommandError(f"{replaced} {_why(error)}") from error


def _why(error: sqlite3.Error) -> str:
    if is_damage(error):
        return f"is damaged ({error}): move it and its -wal and -shm files away, then restore again"
    if error.sqlite_errorname.startswith("SQLITE_BUSY"):
        return "is in use: stop the server and all commands first"
    return f"cannot be written: {error}"
