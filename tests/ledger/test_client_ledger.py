"""The ledger of conversations whose client decides the memory, against what the client knows."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from chatmemory import MessageWindowChatMemory, UserMessage, queries
from chatmemory.ledger.verification import verify

from .langchain4j_client import HeldStore, Service

pytestmark = pytest.mark.django_db

WRITERS, ADDS = 4, 60


def test_the_ledger_tells_what_services_did():
    """Every add that is the only one to explain its list is told exactly; the others are few."""
    services = [Service(seed) for seed in range(8)]
    for service in services:
        service.run(changes=25)
    tally: Counter[str] = sum((service.tally for service in services), start=Counter())
    untold = [each for service in services for each in service.untold]
    assert tally["told adds"] > 100
    assert tally["adds"] == tally["told adds"] + tally["an equal list"] + tally["several adds"]
    assert tally["an equal list"] < tally["adds"] / 8, untold
    assert tally["several adds"] < 2, untold
    assert tally["a set like an add"] < tally["sets"] / 2, untold


@pytest.mark.parametrize("limit", [2, 5, 20])
@pytest.mark.parametrize("rereads", [True, False], ids=["fresh copies", "own copies"])
def test_what_several_writers_said_is_in_the_history_once(limit, rereads):
    """The last writer wins. What another one displaced returns, and is not said again."""
    random = Random(limit)
    stores = [HeldStore() for _ in range(WRITERS)]
    memories = [MessageWindowChatMemory("shared", limit, store) for store in stores]
    has_read = [False] * WRITERS
    said = 0
    while said < ADDS:
        writer = random.randrange(WRITERS)
        if rereads and not has_read[writer]:
            stores[writer].read("shared")
            has_read[writer] = True
            continue
        memories[writer].add(UserMessage(f"message {said}"))
        has_read[writer] = False
        said += 1
    assert queries.said("shared") == [UserMessage(f"message {n}") for n in range(ADDS)]
    assert queries.memory("shared").said_count == ADDS
    assert verify("shared") is None
