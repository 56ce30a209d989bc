"""The schema of this version, and the refusal of databases that have another one.

Until the first release each app has one migration, and a change of the schema replaces it under a
new name. So a database of another version has recorded a name that is not here: its tables are not
ours, and no migration leads from them to ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.core.checks import Error
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError
from django.db import Error as AnyDatabaseError
from django.db import connections
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from chatmemory import database

APP = "chatmemory"
WHAT_TO_DO = (
    "Export its conversations with the earlier checkout: manage.py export_conversations --all "
    "--output FILE. Then migrate an empty database with this one, and import them here: manage.py "
    "import_transcripts FILE. Default policies, tokens and accounts are not carried."
)


def check_schema(databases: Sequence[str] | None = None, **_: object) -> list[Error]:
    """A system check: the database has no other schema. Nothing is said of one that is down."""
    errors = []
    for using in databases or [database.alias()]:
        try:
            found = _difference_in(using)
        except (AnyDatabaseError, ImproperlyConfigured):
            continue
        if found:
            errors.append(Error(found, hint=WHAT_TO_DO, id="chatmemory.E003"))
    return errors


def refuse_other_schema(using: str, **_: object) -> None:
    """Raise CommandError before `migrate` changes a database that has another schema.

    `call_command("migrate")` skips system checks, but sends the signal `pre_migrate`.
    """
    if found := _difference_in(using):
        raise CommandError(f"{found} {WHAT_TO_DO}")


def difference(recorded: Iterable[str]) -> str | None:
    """Return what tells the database with these migrations of ours from this version, or None."""
    loader = MigrationLoader(None, ignore_no_migrations=True)
    unknown = sorted(name for name in recorded if (APP, name) not in loader.disk_migrations)
    if not unknown or APP in loader.unmigrated_apps:
        return None
    names = " to ".join(dict.fromkeys((unknown[0], unknown[-1])))
    return f"was made by another version of chatmemory: its schema is {names}, which is not ours."


def _difference_in(using: str) -> str | None:
    if not database.has_tables(using):
        return None
    connection = connections[using]
    applied = MigrationRecorder(connection).applied_migrations()
    found = difference(name for app, name in applied if app == APP)
    return f"The database {using!r} ({connection.settings_dict['NAME']}) {found}" if found else None
