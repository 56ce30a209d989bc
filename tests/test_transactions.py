from __future__ import annotations

import sqlite3

import pytest
from django.db import connection, connections

from chatmemory import database

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
