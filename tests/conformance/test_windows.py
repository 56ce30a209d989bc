"""The 413 sequences without null messages, on every store.

A store that can lock a memory replays them twice: through its three plain methods and through
`transact`. `make conformance` replays everything. In `make test`, the Django store replays every
fourth sequence through its plain methods, which take longer, and the others through `transact`.
Over HTTP, where an operation takes three requests, and on PostgreSQL, a sample is replayed. That
over HTTP has no long sequences: each takes a thousand requests.
"""

from __future__ import annotations

import os
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

from ..any_operations import refused_archive
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
    if not IS_WHOLE:
        is_plain = way == "plain methods"
        chosen = [each for n, each in enumerate(chosen) if (n % 4 == 0) == is_plain]
    chosen = chosen[part::PARTS]
    for sequence in chosen:
        replay_and_verify(sequence, way)
    name = f"conformance: sequences, Django store, {way}"
    record_property(name if IS_WHOLE else f"{name}, a sample", len(chosen))


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("way", WAYS)
def test_the_django_store_recovers_as_in_every_sequence(way, part, db, record_property):
    on_sqlite = connection.vendor == "sqlite"
    chosen = recoveries() if IS_WHOLE or on_sqlite else sample(EVERY, recoveries)
    chosen = chosen[part::PARTS]
    for n, sequence in enumerate(chosen):
        is_imported = way == "transact" and (IS_WHOLE or n % 4 == 0)
        replay_and_verify(sequence, way, is_imported=is_imported)
    record_property(f"conformance: sequences with recovery, Django store, {way}", len(chosen))


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


@pytest.mark.skipif(
    connection.vendor != "sqlite" and not IS_WHOLE, reason="the Django store is replayed there"
)
@pytest.mark.parametrize("part", range(PARTS))
def test_the_http_store_replays_every_sequence(part, served, record_property):
    """A server keeps the messages; the memory, its policy and its estimator are here. The ledgers
    of the server are verified by its command.
    """
    some = [*over_http(), *sample(EVERY // 2, recoveries)]
    chosen = ([*sequences(), *recoveries()] if IS_WHOLE else some)[part::PARTS]
    ids = [uuid4().hex for _ in chosen]
    with HttpChatMemoryStore(served.url, served.token) as store:
        for sequence, memory_id in zip(chosen, ids, strict=True):
            Replay(sequence, RecordingStore(store), memory_id).run()
    if IS_WHOLE or part == 0:
        memories = f"{served.url}/api/v1/memories"
        known = [id for id in ids if served.api.get(f"{memories}/{id}/").status_code == 200]
        assert f"{len(known)} conversations verified" in served.manage("verify_memories", *known)
    name = "conformance: sequences, HTTP store, plain methods"
    record_property(name if IS_WHOLE else f"{name}, a sample", len(chosen))
