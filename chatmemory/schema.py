"""Refuses databases that this version cannot migrate. There are two cases:

- Another version, usually a newer version, has changed the database: the database recorded a
  migration that this version does not have.
- The database is too old: this version joined several migrations into one, and the database
  recorded only some of these migrations.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from django.core.checks import Error
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError
from django.db import Error as AnyDatabaseError
from django.db import connections
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from chatmemory import database
from chatmemory.rooms import rooms

APP = "chatmemory"
EXPORT = (
    "Export its conversations with the earlier checkout: manage.py export_conversations --all "
    "--output FILE. Then migrate an empty database with this one, and import them here: manage.py "
    "import_transcripts FILE. Default policies, tokens and accounts are not copied."
)
INSTALL = "Install the version that migrated it, or a newer one."
THROUGH = "dcf347be"  # the commit that has the replaced migrations, and none after them
PASS = (
    f"Check out the commit {THROUGH} of chatmemory, run manage.py migrate there, and then migrate "
    "with this version."
)


@dataclass(frozen=True)
class Difference:
    """Why this version cannot use a database, and what an operator can do about it.

    The function `difference` returns a `reason` without its subject, such as "was migrated only in
    part: …". People see it after the subject "The database 'default' (chat)".
    """

    reason: str
    what_to_do: str


def check_schema(databases: Sequence[str] | None = None, **_: object) -> list[Error]:
    """Return a Django system check error for each of `databases` whose schema this version cannot
    use. By default, only chatmemory's database is checked. A database that is down is skipped.
    """
    errors = []
    for using in databases or [database.alias()]:
        try:
            found = _difference_in(using)
        except (AnyDatabaseError, ImproperlyConfigured):
            continue
        if found:
            errors.append(Error(found.reason, hint=found.what_to_do, id="chatmemory.E003"))
    return errors


def refuse_other_schema(using: str, **_: object) -> None:
    """Raise CommandError before `migrate` changes a database that this version cannot use.

    Called by the signal `pre_migrate`, because `call_command("migrate")` skips system checks.
    """
    if found := _difference_in(using):
        raise CommandError(f"{found.reason} {found.what_to_do}")


def difference(recorded: Collection[tuple[str, str]]) -> Difference | None:
    """Return why a database cannot be migrated to this version; None if it can, or if it is up to
    date.

    `recorded` are the migrations that the database has recorded, as pairs of app and name.
    """
    loader = MigrationLoader(None, ignore_no_migrations=True)
    for own in (APP, *(room.label for room in rooms())):
        if own in loader.unmigrated_apps:
            continue
        names = sorted(name for app, name in recorded if app == own)
        replaced = _replaced(own, loader)
        if some := _some_only(replaced.values(), names):
            return Difference(f"was migrated only in part: it has {some}.", PASS)
        known = {name for each in replaced.values() for name in each}
        unknown = [n for n in names if n not in known and (own, n) not in loader.disk_migrations]
        if not unknown:
            continue
        if len(unknown) < len(names):
            why = f"was migrated by a newer version of chatmemory, to {unknown[-1]}."
            return Difference(why, INSTALL)
        ends = " to ".join(dict.fromkeys((unknown[0], unknown[-1])))
        why = (
            f"was made by another version of chatmemory: this version lacks its migrations {ends}."
        )
        return Difference(why, EXPORT)
    return None


def _replaced(own: str, loader: MigrationLoader) -> dict[str, list[str]]:
    """Return, for each migration of an application that replaces others, the names of those
    others.
    """
    return {
        name: [each for app, each in migration.replaces if app == own]
        for (app, name), migration in loader.disk_migrations.items()
        if app == own and migration.replaces
    }


def _some_only(replaced: Iterable[Sequence[str]], names: Collection[str]) -> str:
    """Return words if a database has recorded only some of the migrations that one migration
    replaces; "" if it has all or none.
    """
    for each in replaced:
        missing = [name for name in each if name not in names]
        if 0 < len(missing) < len(each):
            return f"{len(each) - len(missing)} of {len(each)} migrations that this version joined"
    return ""


def _difference_in(using: str) -> Difference | None:
    if not database.has_tables(using):
        return None
    connection = connections[using]
    found = difference(MigrationRecorder(connection).applied_migrations())
    name = connection.settings_dict["NAME"]
    return found and replace(found, reason=f"The database {using!r} ({name}) {found.reason}")
