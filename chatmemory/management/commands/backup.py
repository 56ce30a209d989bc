from __future__ import annotations

import os
import signal
import sqlite3
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.core.management.base import CommandError, CommandParser

from chatmemory import database
from chatmemory.management.base import DatabaseCommand
from chatmemory.printing import OptionValue


@contextmanager
def terminated_by_exit() -> Iterator[None]:
    """Raise SystemExit in the `with` block when SIGTERM arrives, so that the block can clean up. A
    running call of C code, such as SQLite's, returns first.

    Does nothing outside the main thread, or if the program has its own handler of SIGTERM.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


class Command(DatabaseCommand):
    help = (
        "Copy the SQLite database to FILE while it is in use; manage.py restore FILE puts the copy "
        "back. Do not copy it over the database by hand: SQLite would apply the rest of the "
        "database's -wal file to it. For PostgreSQL use pg_dump, see docs/operations.md."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE")
        parser.add_argument("--force", action="store_true", help="replace FILE if it exists")

    def handle(self, *args: object, **options: OptionValue) -> None:
        connection = database.connection()
        if connection.vendor != "sqlite":
            raise CommandError(
                "backup copies only SQLite databases: for PostgreSQL use pg_dump --format=custom"
            )
        target: Path = options["file"]
        name = connection.settings_dict["NAME"]
        if target.exists() and not options["force"]:
            raise CommandError(
                f"the file {target} already exists: choose a different name, or use --force to "
                "replace the file"
            )
        if target.exists() and Path(name).exists() and target.samefile(name):
            raise CommandError(
                f"{target} is the database in use: choose a different name for the copy"
            )
        if database.TABLE not in connection.introspection.table_names():
            raise CommandError(f"{name} has no tables of chatmemory: is it the right database?")
        partial = target.with_name(f"{target.name}.partial")
        try:
            with terminated_by_exit():
                try:
                    self.copy(partial)
                    partial.replace(target)
                finally:
                    partial.unlink(missing_ok=True)
        except (OSError, sqlite3.Error) as error:
            raise CommandError(f"{target} cannot be written: {error}") from error
        self.stdout.write(f"{target}: {target.stat().st_size:,} bytes")

    def copy(self, target: Path) -> None:
        """Copy the database to a new file that only its owner can read, and flush the file to the
        disk.

        The whole database is copied in one call. If it were copied in parts, SQLite would start
        again after each write of another connection.
        """
        target.unlink(missing_ok=True)
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        connection = database.connection()
        connection.ensure_connection()
        copy = sqlite3.connect(target)
        try:
            connection.connection.backup(copy)
        finally:
            copy.close()
        descriptor = os.open(target, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
