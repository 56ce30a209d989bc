"""A migrated SQLite database for a benchmark."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def migrated() -> Iterator[str]:
    """Set up Django with a new database, and give the folder in which it is."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DATABASE_URL"] = f"sqlite:///{folder}/benchmark.sqlite3"
        set_up()
        yield folder


def set_up() -> None:
    """Set up Django with the database of DATABASE_URL, and make its tables."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "inspector.project.settings"
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)
