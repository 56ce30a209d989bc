"""What is left of redacted words in a PostgreSQL: in its catalogues and its files."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connections

from chatmemory import AiMessage, MessageWindow, UserMessage, services
from chatmemory.ledger import protocol
from chatmemory.ledger.verification import verify
from chatmemory.messages.message import with_attributes
from chatmemory.models import Stay

from .connecting import connected_to
from .load.cluster import Cluster, binaries

NEEDLE = "card 4711-0815"
CATALOGUES = """SELECT oid::regclass::text FROM pg_class
    WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind IN ('r', 'v')"""


@pytest.fixture
def cluster(django_db_blocker):
    found = binaries()
    if found is None:
        pytest.skip("no initdb: PostgreSQL is not installed here")
    cluster = Cluster(found)
    cluster.start()
    try:
        with django_db_blocker.unblock(), connected_to(cluster.url):
            yield cluster
    finally:
        cluster.stop()


def run(statement: str) -> list[tuple]:
    with connections["default"].cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall() if cursor.description else []


def catalogues_with(word: str) -> set[str]:
    """Return the catalogues that contain a word. The query itself must not contain it."""
    pattern = " || ".join(f"'{letter}'" for letter in word.upper())
    found = set()
    for (name,) in run(CATALOGUES):
        like = f"SELECT 1 FROM {name} c WHERE UPPER(c::text) LIKE '%' || {pattern} || '%' LIMIT 1"
        if run(like.replace("%", "%%")):
            found.add(name)
    return found


def files_with(data: Path, word: bytes) -> set[str]:
    """Return the files that have a word, without the write-ahead log, which a cluster recycles."""
    files = [each for each in data.rglob("*") if each.is_file() and each.name != "log"]
    return {
        str(each.relative_to(data))
        for each in files
        if "pg_wal" not in each.parts and word.lower() in each.read_bytes().lower()
    }


def test_redacted_words_are_in_no_catalogue_and_after_a_full_vacuum_in_no_file(cluster):
    call_command("migrate", verbosity=0)
    migration = import_module("chatmemory.migrations.0002_schema_of_2026_11_28")
    for table, names in migration.WORDS.items():  # as they were before it
        for name in names:
            run(f"ALTER TABLE IF EXISTS {table} ALTER COLUMN {name} SET STATISTICS -1")
    services.create("m", MessageWindow(9), {"card": NEEDLE})
    said = AiMessage(f"Your {NEEDLE}.", attributes={"cited": NEEDLE})
    for n in range(20):
        services.add("m", [UserMessage(f"My {NEEDLE}, {n}."), said, said])
    window = protocol.get_messages("m")
    protocol.update_messages("m", [*window[:8], with_attributes(said, {"cited": f"the {NEEDLE}"})])
    assert Stay.objects.filter(overrides__contains=NEEDLE).count() == 1
    run("ANALYZE")
    assert catalogues_with(NEEDLE) >= {"pg_statistic", "pg_stats"}
    with connections["default"].schema_editor() as editor:
        migration.keep_no_statistics(None, editor)
    run("ANALYZE")
    assert catalogues_with(NEEDLE) == set()
    for seq in range(1, 61):
        services.redact("m", seq)
    services.change("m", labels={})
    assert verify("m") is None
    run("ANALYZE")
    assert catalogues_with(NEEDLE) == set()
    run("VACUUM FULL")
    run("CHECKPOINT")
    assert files_with(cluster.data, NEEDLE.encode()) == set()
