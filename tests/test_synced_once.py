"""The commits of a block survive a power failure together, from its end on."""

from __future__ import annotations

import os

import pytest
from django.db import connection

from chatmemory import services
from chatmemory.models import Memory
from chatmemory.sqlite_files import synced_once

FULL, NORMAL = 2, 1


@pytest.fixture
def synced(committing, monkeypatch) -> list[str]:
    """The files that are written through to the disk."""
    if connection.vendor != "sqlite":
        pytest.skip("the log is SQLite's")
    found: list[str] = []
    known = os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda file: found.append(os.readlink(f"/proc/self/fd/{file}")) or known(file)
    )
    return found


def synchronous() -> int:
    with connection.cursor() as cursor:
        return cursor.execute("PRAGMA synchronous").fetchone()[0]


def test_the_log_is_written_through_once_behind_all_commits(synced):
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA journal_mode = WAL")
        cursor.execute("PRAGMA synchronous = FULL")
    with synced_once():
        for n in range(3):
            services.create(f"m{n}", None)
        assert (synchronous(), synced) == (NORMAL, [])
    assert synchronous() == FULL
    assert [each.endswith("-wal") for each in synced] == [True]
    assert Memory.objects.count() == 3


def test_after_an_error_each_commit_is_written_through_again(synced):
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA synchronous = FULL")
    with pytest.raises(RuntimeError), synced_once():
        raise RuntimeError
    assert synchronous() == FULL
