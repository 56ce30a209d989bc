from __future__ import annotations

import sqlite3
from functools import partial

import pytest
from django.db import DatabaseError, IntegrityError, connection, connections
from django.db.transaction import TransactionManagementError

from chatmemory import MessageWindow, UserMessage, database, services
from chatmemory.conf import check_times_have_zones
from chatmemory.ledger import sql
from chatmemory.models import Memory, Step

from .connecting import connected


def test_a_transaction_takes_the_lock_of_writers_in_any_project(db, tmp_path):
    """A project need not know SQLite's `transaction_mode`, and keeps its own for its own."""
    if connection.vendor != "sqlite":
        pytest.skip("SQLite has one lock of writers")
    file = str(tmp_path / "plain.sqlite3")
    other = sqlite3.connect(file, isolation_level=None, timeout=0)
    with connected(file):
        connections["default"].settings_dict["OPTIONS"] = {}
        with database.atomic(), pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")
        assert connections["default"].transaction_mode is None
        with database.atomic(), database.atomic():
            pass
    other.execute("BEGIN IMMEDIATE")
    other.close()


def test_a_check_warns_of_requests_in_one_transaction(monkeypatch):
    assert database.check_transactions_are_short() == []
    monkeypatch.setitem(connections["default"].settings_dict, "ATOMIC_REQUESTS", True)
    (found,) = database.check_transactions_are_short()
    assert "DATABASES['default'] has ATOMIC_REQUESTS" in found.msg


def test_a_check_asks_for_time_zones(settings):
    assert check_times_have_zones() == []
    settings.USE_TZ = False
    (found,) = check_times_have_zones()
    assert "USE_TZ = True" in found.msg


def inserted_step(memory_id):
    """Return a step that is stored already."""
    services.add(memory_id, [UserMessage("hello")])
    row = Step.objects.filter(memory=memory_id).first()
    return sql.InsertedStep(*(getattr(row, name) for name in sql.InsertedStep.__slots__))


def test_what_fails_in_a_pipeline_is_raised_and_nothing_of_it_is_written(memory_id):
    row = Memory.objects.get(pk=memory_id)
    before, step = sql.values_of(row), inserted_step(memory_id)
    row.policy = None
    with pytest.raises(IntegrityError), database.atomic():
        sql.write(row, before, {}, steps=[step])
    row.refresh_from_db()
    assert row.policy == MessageWindow(3)


def test_what_replaces_the_cursors_of_django_sees_all_statements(memory_id, monkeypatch):
    """As toolbars do, which show the queries of a page."""
    ours, seen = connections["default"], []
    django_cursor = ours.cursor

    def watched():
        cursor = django_cursor()
        monkeypatch.setattr(cursor, "execute", partial(noted, cursor.execute))
        return cursor

    def noted(execute, sql, values=None):
        seen.append(sql)
        return execute(sql, values)

    monkeypatch.setattr(ours, "cursor", watched)
    services.add(memory_id, [UserMessage("hello")])
    assert any("INSERT INTO chatmemory_message" in sql for sql in seen)
    assert any("UPDATE chatmemory_memory" in sql for sql in seen)


def test_errors_of_statements_are_those_of_django(memory_id):
    step, row = inserted_step(memory_id), Memory.objects.get(pk=memory_id)
    write = partial(sql.write, row, sql.values_of(row), {}, steps=[step])
    with pytest.raises(IntegrityError), database.atomic():
        write()
    with database.atomic():
        connections["default"].set_rollback(True)
        with pytest.raises(TransactionManagementError):
            write()


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite sets it on the connection")
def test_a_write_that_does_not_wait_lets_later_ones_wait(db):
    """Its outer transaction may be that of a request."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL lock_timeout = '7s'")
        with database.nowait():
            pass
        with pytest.raises(DatabaseError), database.nowait():
            cursor.execute("SELECT 1 / 0")
        cursor.execute("SHOW lock_timeout")
        assert cursor.fetchone() == ("7s",)
