from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connection


class Command(BaseCommand):
    help = (
        "Copy the SQLite database to FILE while others read and write. To restore, stop the server "
        "and put the copy in its place; manage.py verify_memories says whether it is whole. "
        "PostgreSQL: pg_dump, see docs/operations.md."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--force", action="store_true", help="replace FILE where it exists")

    def handle(self, *args: Any, **options: Any) -> None:
        if connection.vendor != "sqlite":
            raise CommandError("this copies SQLite files: use pg_dump --format=custom instead")
        target: Path = options["file"]
        if target.exists() and not options["force"]:
            raise CommandError(f"{target} exists already: choose another name, or --force")
        if target.exists() and target.samefile(connection.settings_dict["NAME"]):
            raise CommandError(f"{target} is the database itself: choose another name")
        partial = target.with_name(f"{target.name}.partial")
        try:
            self.copy(partial)
            partial.replace(target)
        except (OSError, sqlite3.Error) as error:
            raise CommandError(f"{target} could not be written: {error}") from error
        finally:
            partial.unlink(missing_ok=True)
        self.stdout.write(f"{target}: {target.stat().st_size:,} bytes")

    def copy(self, target: Path) -> None:
        """All or nothing: on the disk before it gets its name, readable by its owner only.

        In one go, as it was at one moment: in steps, each write of another would start it again.
        """
        target.unlink(missing_ok=True)
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
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
