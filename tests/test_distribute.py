"""What `manage.py distribute` says of a database that is no cluster; tests/citus has one."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from chatmemory.distribution import distributed_tables

from .connecting import connected

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
        pytest.raises(CommandError, match="another distribute is at work in this database"),
    ):
        call_command("distribute")
