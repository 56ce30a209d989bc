"""All 413 sequences, on every store, through its plain methods and through `transact`.

On the Django store, `make test` replays a sample through the plain methods, and all of them through
`transact`; on PostgreSQL, a sample of both. `make conformance` replays everything.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest
from django.db import connection, transaction

from chatmemory.ledger.verification import verify
from chatmemory.models import Memory
from chatmemory.stores.database import DjangoChatMemoryStore
from chatmemory.stores.memory import InMemoryChatMemoryStore

from .vectors import (
    EVERY,
    LEAST,
    FailingTransactStore,
    RecordingStore,
    Replay,
    group_of,
    sample,
    sequences,
    vectors,
)

WAYS = {"plain methods": RecordingStore, "transact": FailingTransactStore}
PARTS = 16
IS_WHOLE = os.environ.get("CONFORMANCE") == "all"


def test_the_vectors_are_complete():
    assert len(vectors()["sequences"]) == 416
    assert len(sequences()) == 413


def test_the_sample_has_some_of_each_kind_and_tag():
    everything, sampled = (Counter(map(group_of, each)) for each in (sequences(), sample()))
    assert sampled.keys() == everything.keys()
    assert all(sampled[group] >= max(LEAST, n // EVERY) for group, n in everything.items())
    assert {tag for _, *tags in sampled for tag in tags} == {"edge", "long"}


@pytest.mark.parametrize("way", WAYS)
def test_the_in_memory_store_replays_every_sequence(way, record_property):
    replayed = [Replay(each, WAYS[way](InMemoryChatMemoryStore())).run() for each in sequences()]
    record_property(f"conformance: sequences, in-memory store, {way}", len(replayed))
    record_property(f"conformance: operations, in-memory store, {way}", sum(replayed))


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("way", WAYS)
def test_the_django_store_replays_every_sequence(way, part, db, record_property):
    """Also check that the ledger matches a replay of the stored rows."""
    is_sampled = not IS_WHOLE and (way == "plain methods" or connection.vendor != "sqlite")
    chosen = (sample() if is_sampled else sequences())[part::PARTS]
    for sequence in chosen:
        with transaction.atomic():
            Replay(sequence, WAYS[way](DjangoChatMemoryStore())).run()
            if Memory.objects.exists():
                assert verify("default") is None, sequence["id"]
            transaction.set_rollback(True)
    name = f"conformance: sequences, Django store, {way}"
    record_property(f"{name}, a sample" if is_sampled else name, len(chosen))
