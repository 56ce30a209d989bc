"""The 413 sequences without null messages, and the 202 of interrupted tool calls, on every store.

A store that can lock a memory replays them twice: through its three plain methods and through
`transact`. `make conformance` replays everything, verifies the ledger of each sequence, and imports
the archives of those of interrupted calls. In `make test`, the Django store replays every
fourth sequence through its plain methods, which take longer, and the others through `transact`.
Over HTTP, where an operation takes three requests, and on PostgreSQL, a sample is replayed. That
over HTTP has no long sequences: each takes a thousand requests.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection, transaction

from chatmemory.ledger.verification import verify
from chatmemory.models import Memory
from chatmemory.stores.database import DjangoChatMemoryStore
from chatmemory.stores.http import HttpChatMemoryStore
from chatmemory.stores.memory import InMemoryChatMemoryStore
from inspector.rooms.transfer.archives import import_archive
from inspector.rooms.transfer.exports import archive_lines

from ..any_operations import refused_archive
from ..serving import Served
from .vectors import (
    FailingTransactStore,
    RecordingStore,
    Replay,
    Sequences,
    group_of,
    has_no_twin,
    recoveries,
    sample,
    sequences,
    vectors,
)

WAYS = {"plain methods": RecordingStore, "transact": FailingTransactStore}
PARTS = 16
IS_WHOLE = os.environ.get("CONFORMANCE") == "all"
EVERY = 48  # the sample has every so many sequences of a group
EVERY_OVER_HTTP = 96


def test_the_vectors_are_complete():
    assert len(vectors()["sequences"]) == 416
    assert len(sequences()) == 413
    assert sum(has_no_twin(each) for sequence in sequences() for each in sequence["ops"]) == 12


def test_the_vectors_of_interrupted_calls_are_complete():
    assert len(recoveries()) == 202
    assert sum(len(each["ops"]) for each in recoveries()) == 3_038


def over_http() -> Sequences:
    return [each for each in sample(EVERY_OVER_HTTP) if "long" not in group_of(each)]


def test_the_sample_has_some_of_each_kind_and_tag():
    everything, sampled = (Counter(map(group_of, each)) for each in (sequences(), sample(EVERY)))
    assert sampled.keys() == everything.keys()
    assert all(sampled[group] >= n // EVERY for group, n in everything.items())
    assert {tag for _, *tags in sampled for tag in tags} == {"edge", "long"}


@pytest.mark.parametrize("way", WAYS)
def test_the_in_memory_store_replays_every_sequence(way, record_property):
    replayed = [Replay(each, WAYS[way](InMemoryChatMemoryStore())).run() for each in sequences()]
    record_property(f"conformance: sequences, in-memory store, {way}", len(replayed))
    record_property(f"conformance: operations, in-memory store, {way}", sum(replayed))


@pytest.mark.parametrize("way", WAYS)
def test_the_in_memory_store_recovers_as_in_every_sequence(way, record_property):
    replayed = [Replay(each, WAYS[way](InMemoryChatMemoryStore())).run() for each in recoveries()]
    record_property(f"conformance: operations with recovery, in-memory store, {way}", sum(replayed))


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("way", WAYS)
def test_the_django_store_replays_every_sequence(way, part, db, record_property):
    """Also check that the ledger matches a replay of the stored rows."""
    on_sqlite = connection.vendor == "sqlite"
    chosen = sequences() if IS_WHOLE or on_sqlite else sample(EVERY)
    chosen = in_one_way(chosen, way)[part::PARTS]
    for sequence in chosen:
        replay_and_verify(sequence, way)
    name = f"conformance: sequences, Django store, {way}"
    record_property(name if IS_WHOLE else f"{name}, a sample", len(chosen))


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("way", WAYS)
def test_the_django_store_recovers_as_in_every_sequence(way, part, db, record_property):
    on_sqlite = connection.vendor == "sqlite"
    chosen = recoveries() if IS_WHOLE or on_sqlite else sample(EVERY, recoveries)
    chosen = in_one_way(chosen, way)[part::PARTS]
    archives = 0
    for n, sequence in enumerate(chosen):
        is_imported = way == "transact" and (IS_WHOLE or n % 4 == 0)
        replay_and_verify(sequence, way, is_imported=is_imported)
        archives += is_imported
    name = f"conformance: sequences with recovery, Django store, {way}"
    record_property(name if IS_WHOLE else f"{name}, a sample", len(chosen))
    record_property("conformance: archives with recovery, Django store, imported", archives)


def in_one_way(chosen: Sequences, way: str) -> Sequences:
    """Return the sequences that are replayed in this way: of four, one through plain methods."""
    if IS_WHOLE:
        return chosen
    is_plain = way == "plain methods"
    return [each for n, each in enumerate(chosen) if (n % 4 == 0) == is_plain]


def replay_and_verify(sequence: dict[str, Any], way: str, is_imported: bool = False) -> None:
    """Replay a sequence on the Django store. The ledger equals a replay of the stored rows, and an
    archive of it is imported.
    """
    with transaction.atomic():
        Replay(sequence, WAYS[way](DjangoChatMemoryStore())).run()
        if Memory.objects.exists():
            assert verify("default") is None, sequence["id"]
        if is_imported:
            assert refused_archive() == "", sequence["id"]
        transaction.set_rollback(True)


on_one_database = pytest.mark.skipif(
    connection.vendor != "sqlite" and not IS_WHOLE, reason="the Django store is replayed there"
)


@on_one_database
@pytest.mark.parametrize("part", range(PARTS))
def test_the_http_store_replays_every_sequence(part, served, record_property):
    """A server keeps the messages; the memory, its policy and its estimator are here. The ledgers
    of the server are verified by its command.
    """
    chosen = (sequences() if IS_WHOLE else over_http())[part::PARTS]
    known = replay_over_http(chosen, served)
    if IS_WHOLE or part == 0:
        verify_over_http(known, served)
    name = "conformance: sequences, HTTP store, plain methods"
    record_property(name if IS_WHOLE else f"{name}, a sample", len(chosen))


@on_one_database
@pytest.mark.parametrize("part", range(PARTS))
def test_the_http_store_recovers_as_in_every_sequence(part, served, db, tmp_path, record_property):
    """The archive that the server exports is imported here."""
    chosen = (recoveries() if IS_WHOLE else sample(EVERY, recoveries))[part::PARTS]
    known = replay_over_http(chosen, served)
    if known and (IS_WHOLE or part == 0):
        verify_over_http(known, served)
        file = tmp_path / "archive.jsonl"
        served.manage("export_conversations", *known, "--output", str(file))
        with file.open("rb") as lines:
            assert [each.refused for each in import_archive(lines)] == [""] * len(known)
        assert [*archive_lines(known)] == file.read_text().splitlines()
        record_property("conformance: archives with recovery, HTTP store, imported", len(known))
    name = "conformance: sequences with recovery, HTTP store"
    record_property(name if IS_WHOLE else f"{name}, a sample", len(chosen))


def replay_over_http(chosen: Sequences, served: Served) -> list[str]:
    """Replay sequences, each in a conversation of its own. Return the ids of those that the server
    has at the end.
    """
    ids = [uuid4().hex for _ in chosen]
    with HttpChatMemoryStore(served.url, served.token) as store:
        for sequence, memory_id in zip(chosen, ids, strict=True):
            Replay(sequence, RecordingStore(store), memory_id).run()
    memories = f"{served.url}/api/v1/memories"
    return [id for id in ids if served.api.get(f"{memories}/{id}/").status_code == 200]


def verify_over_http(known: list[str], served: Served) -> None:
    told = served.manage("verify_memories", *known)
    assert re.match(rf"{len(known)} conversations? verified: all match their replay", told)
