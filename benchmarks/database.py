"""A migrated database for a benchmark: SQLite, or with POSTGRESQL=1 on a PostgreSQL server."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from unittest.mock import patch

ON_POSTGRESQL = os.environ.get("POSTGRESQL") == "1"
SERVER = os.environ.get("BENCH_DATABASE_URL", "postgresql://postgres@127.0.0.1:5432/postgres")


@contextmanager
def migrated() -> Iterator[str]:
    """Set up Django with a new database, and yield a folder for files."""
    with tempfile.TemporaryDirectory() as folder:
        file = nullcontext(f"sqlite:///{folder}/benchmark.sqlite3")
        with on_server(Path(folder)) if ON_POSTGRESQL else file as url:
            os.environ["DATABASE_URL"] = url
            os.environ["DJANGO_SETTINGS_MODULE"] = "inspector.project.settings"
            import django
            from django.core.management import call_command

            django.setup()
            call_command("migrate", verbosity=0)
            yield folder


def prepare_empty() -> None:
    """Set up Django with the database of DATABASE_URL, and migrate it. The command ends if it has
    conversations.
    """
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "inspector.project.settings")
    import django
    from django.core.management import call_command

    django.setup()
    from chatmemory.models import Memory

    call_command("migrate", verbosity=0)
    if Memory.objects.exists():
        sys.exit("the database has conversations: give DATABASE_URL of an empty one")


@contextmanager
def on_server(folder: Path) -> Iterator[str]:
    """Yield the URL of a new database on the PostgreSQL server."""
    from tests.serving import database

    with patch.dict(os.environ, DATABASE_URL=SERVER), database(folder) as url:
        yield url


def analyse() -> None:
    """Update the statistics of PostgreSQL's planner, as autovacuum does within a minute."""
    from django.db import connection

    if ON_POSTGRESQL:
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
