"""Migrations, databases of other versions, and databases that are not a cluster."""

from __future__ import annotations

import subprocess
from io import StringIO

import pytest
from django.contrib.auth.models import Group
from django.core.management import CommandError, call_command
from django.core.management.base import SystemCheckError
from django.db import connection, models
from django.db.migrations import AddField, AlterField, CreateModel, Migration, RunPython
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from chatmemory import MessageWindow, UserMessage, rebuilds
from chatmemory.distribution import distributed_tables
from chatmemory.models import Memory
from chatmemory.rebuilds import announce_rebuilds, copied_tables
from chatmemory.roles import GROUPS
from chatmemory.rooms import rooms
from chatmemory.schema import THROUGH, check_schema

from .connecting import connected, connected_to
from .conversations import create_and_add
from .serving import database, free_port, unstarted

APP = "chatmemory"
READS = ("SELECT", "PRAGMA")


def migrations() -> list[str]:
    return [name for app, name in MigrationLoader(None).disk_migrations if app == APP]


@pytest.fixture
def earlier(db) -> None:
    """The database has recorded the migrations of an earlier version instead of ours."""
    recorder = MigrationRecorder(connection)
    for app, name in recorder.applied_migrations():
        if app.startswith(APP):
            recorder.record_unapplied(app, name)
    for name in ("0001_initial", "0002_flags_and_search", "0026_frames"):
        recorder.record_applied(APP, name)


def ours() -> list[str]:
    return [name for name in connection.introspection.table_names() if name.startswith(APP)]


def test_routers_are_told_of_which_model_the_rows_are():
    """Those that decide by model would otherwise change rows of a database without our tables."""
    operations = [
        operation
        for (app, _), migration in MigrationLoader(None).disk_migrations.items()
        for operation in migration.operations
        if app == APP
    ]
    models = {each.name_lower for each in operations if isinstance(each, CreateModel)}
    told = {each.hints.get("model_name") for each in operations if isinstance(each, RunPython)}
    assert told
    assert told <= models


def test_it_can_be_undone_and_applied_again(transactional_db):
    try:
        call_command("migrate", APP, "zero", verbosity=0)
        assert not ours()
    finally:
        call_command("migrate", verbosity=0)
    create_and_add("m", MessageWindow(3), [UserMessage("a needle")])
    assert [row.pk for row in Memory.objects.containing("needle")] == ["m"]


ALTERS = Migration("0099_alters", "chatmemory")
ALTERS.operations = [
    AlterField("Message", "text", models.TextField()),
    AddField("Memory", "note", models.TextField(null=True)),
    AlterField("Stay", "reason", models.TextField()),
    AlterField("Message", "frame", models.TextField()),
]


def test_large_tables_that_are_copied_are_named_before_a_migration_begins(db, monkeypatch):
    """SQLite copies a table to change a column; a new column that may be empty copies none."""
    assert dict(copied_tables([ALTERS])) == {"chatmemory_message": 2, "chatmemory_stay": 1}
    create_and_add("m", MessageWindow(3), [UserMessage("a"), UserMessage("b")])
    told = StringIO()
    announce_rebuilds(connection.alias, [(ALTERS, False)], told)
    assert told.getvalue() == ""  # two rows take no time
    monkeypatch.setattr(rebuilds, "MANY", 2)
    announce_rebuilds(connection.alias, [(ALTERS, False)], told)
    if connection.vendor != "sqlite":
        assert told.getvalue() == ""
        return
    first, *others = told.getvalue().splitlines()
    assert first.startswith("This migration copies the table chatmemory_message (2 rows) 2 times.")
    assert len(others) == 1


def test_our_tables_may_be_created_before_those_of_accounts(tmp_path, django_db_blocker):
    with django_db_blocker.unblock(), database(tmp_path) as url, connected_to(url):
        call_command("migrate", APP, verbosity=0)
        assert not Memory.objects.exists()
        call_command("migrate", verbosity=0)
        assert set(GROUPS.values()) == set(Group.objects.values_list("name", flat=True))


@pytest.mark.parametrize("arguments", [[], [APP], [APP, "zero"], ["auth"]])
def test_migrate_changes_nothing_in_a_database_of_another_version(earlier, arguments):
    with (
        CaptureQueriesContext(connection) as queries,
        pytest.raises(CommandError) as refused,
    ):
        call_command("migrate", *arguments, verbosity=0)
    assert {query["sql"].split()[0] for query in queries} <= {*READS}
    assert str(refused.value) == (
        f"The database 'default' ({connection.settings_dict['NAME']}) was made by another version "
        "of chatmemory: this version lacks its migrations 0001_initial to 0026_frames. Export "
        "its conversations with the earlier checkout: manage.py export_conversations --all "
        "--output FILE. Then migrate an empty database with this one, and import them here: "
        "manage.py import_transcripts FILE. Default policies, tokens and accounts are not copied."
    )


@pytest.mark.parametrize("options", [{}, {"databases": ["default"]}, {"tags": ["database"]}])
def test_check_tells_of_another_version(earlier, options):
    with pytest.raises(SystemCheckError, match=r"\(chatmemory\.E003\) The database 'default' \("):
        call_command("check", **options)


def test_other_databases_are_let_alone(db, tmp_path):
    """This version's, an empty one, and one that is down."""
    assert not check_schema()
    with connected_to(f"sqlite:///{tmp_path}/empty.sqlite3"):
        assert not check_schema()
    with connected_to(f"postgresql://ada:lovelace@127.0.0.1:{free_port()}/chats"):
        call_command("check")


def test_a_database_of_a_newer_version_is_refused(db):
    MigrationRecorder(connection).record_applied(APP, "0099_a_later_change")
    (error,) = check_schema()
    assert "was migrated by a newer version of chatmemory, to 0099_a_later_change." in error.msg
    assert error.hint == "Install the version that migrated it, or a newer one."
    with pytest.raises(CommandError, match="by a newer version of chatmemory, to 0099"):
        call_command("migrate", verbosity=0)
    with override_settings(MIGRATION_MODULES={APP: None} | {room.label: None for room in rooms()}):
        assert not check_schema()


def test_a_database_that_lacks_migrations_is_not_refused(db):
    for name in sorted(migrations())[1:]:
        MigrationRecorder(connection).record_unapplied(APP, name)
    assert not check_schema()


REPLACING = [
    (key, each) for key, each in MigrationLoader(None).disk_migrations.items() if each.replaces
]


@pytest.mark.parametrize(("key", "migration"), REPLACING, ids=str)
def test_a_database_with_some_of_the_migrations_that_one_replaces_is_refused(db, key, migration):
    """It passes through the commit that has them; with all of them, or none, it is migrated."""
    recorder = MigrationRecorder(connection)
    recorder.record_unapplied(*key)
    assert not check_schema()
    *some, last = migration.replaces
    recorder.record_unapplied(*last)
    (error,) = check_schema()
    told = f"it has {len(some)} of {len(some) + 1} migrations that this version joined."
    assert error.msg.endswith(f"was migrated only in part: {told}")
    assert error.hint.startswith(
        f"Check out the commit {THROUGH} of chatmemory, run manage.py migrate"
    )
    with CaptureQueriesContext(connection) as queries, pytest.raises(SystemCheckError, match=told):
        call_command("migrate", verbosity=0, skip_checks=False)  # as on the command line
    assert {query["sql"].split()[0] for query in queries} <= {*READS, "SAVEPOINT", "RELEASE"}
    for each in some:
        recorder.record_unapplied(*each)
    assert not check_schema()


def test_commands_end_before_they_begin(template, tmp_path, django_db_blocker):
    """On the command line, system checks come first."""
    with django_db_blocker.unblock(), unstarted(tmp_path, template) as site:
        url = site.environment["DATABASE_URL"]
        with connected_to(url):
            MigrationRecorder.Migration.objects.filter(app=APP).delete()
            MigrationRecorder(connection).record_applied(APP, "0001_initial")
        for command in ("migrate", "check", "serve", "create_token app"):
            with pytest.raises(subprocess.CalledProcessError) as ended:
                site.manage(*command.split())
            assert "this version lacks its migrations 0001_initial" in ended.value.stderr
            assert "manage.py export_conversations --all" in ended.value.stderr
        with connected_to(url):
            recorded = MigrationRecorder.Migration.objects.filter(app=APP)
            assert {row.name for row in recorded} == {"0001_initial"}


# manage.py distribute, where there is no cluster; tests/citus has one.


REFUSALS = {
    "sqlite": "SQLite cannot be distributed: set DATABASE_URL to a PostgreSQL with the extension",
    "postgresql": "this PostgreSQL has no extension citus: install it on each node",
}


def test_a_database_that_is_no_cluster_is_refused(db):
    with pytest.raises(CommandError, match=REFUSALS[connection.vendor]):
        call_command("distribute")
    assert distributed_tables() == []


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite is no cluster")
def test_a_second_one_at_the_same_time_is_refused(db):
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('chatmemory distribute'))")
    with (
        connected(connection.settings_dict["NAME"]),
        pytest.raises(
            CommandError, match="a different distribute command is running in this database"
        ),
    ):
        call_command("distribute")
