"""All 413 sequences, on every store, through its plain methods and through `transact`."""

from __future__ import annotations

import pytest
from django.db import transaction

from chatmemory.ledger.verification import verify
from chatmemory.models import Memory
from chatmemory.stores.database import DjangoChatMemoryStore
from chatmemory.stores.memory import InMemoryChatMemoryStore

from .vectors import FailingTransactStore, RecordingStore, Replay, sequences, vectors

WAYS = {"plain methods": RecordingStore, "transact": FailingTransactStore}
PARTS = 16


def test_the_law_is_whole():
    assert len(vectors()["sequences"]) == 416
    assert len(sequences()) == 413


@pytest.mark.parametrize("way", WAYS)
def test_the_in_memory_store_replays_every_sequence(way, record_property):
    replayed = [Replay(each, WAYS[way](InMemoryChatMemoryStore())).run() for each in sequences()]
    record_property(f"conformance: sequences, in-memory store, {way}", len(replayed))
    record_property(f"conformance: operations, in-memory store, {way}", sum(replayed))


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("way", WAYS)
def test_the_django_store_replays_every_sequence(way, part, db, record_property):
    """And leaves a ledger that a replay of the stored rows does not contradict."""
    chosen = sequences()[part::PARTS]
    for sequence in chosen:
        with transaction.atomic():
            Replay(sequence, WAYS[way](DjangoChatMemoryStore())).run()
            if Memory.objects.exists():
                assert verify("default") is None, sequence["id"]
            transaction.set_rollback(True)
    record_property(f"conformance: sequences, Django store, {way}", len(chosen))
