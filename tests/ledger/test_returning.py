"""Messages that return to a window are not said again."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager

import pytest
from django.db import connection

from chatmemory import MessageWindow, UserMessage, queries, services
from chatmemory.ledger import client_list
from chatmemory.ledger.verification import verify

pytestmark = pytest.mark.database


@contextmanager
def few_values():
    """Make SQLite take 40 values in a query."""
    if connection.vendor != "sqlite":
        yield
        return
    limit = sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER
    before = connection.connection.setlimit(limit, 40)
    try:
        yield
    finally:
        connection.connection.setlimit(limit, before)


def test_more_return_than_a_query_takes(db, monkeypatch):
    monkeypatch.setattr(client_list, "ASKED_AT_ONCE", 30)
    services.create("m", MessageWindow(100))
    said = [UserMessage(f"m{n}") for n in range(100)]
    services.set_messages("m", said)
    services.set_messages("m", [UserMessage("other")])
    with few_values():
        services.set_messages("m", said)
    window = queries.window("m")
    assert [row.seq for row in window.rows] == list(range(1, 101))
    assert queries.memory("m").said_count == 101
    assert verify("m") is None
