"""The lab reads the conversations that it chose by their keys, whatever else is stored."""

from __future__ import annotations

from functools import partial

import pytest
from django.db import connection

from chatmemory.reading.finding import MemoryFilter
from chatmemory.windows.policies import TokenWindow
from inspector.rooms.lab.figures import kept_figures
from inspector.rooms.lab.reads import FleetQuery, chosen_of
from inspector.rooms.lab.stored import budget_of_all
from tests.long_conversations import fleet, long_conversation
from tests.plans.plans import plans_of

pytestmark = pytest.mark.django_db
CHOSEN = [f"fleet-{n}" for n in range(40)]


@pytest.fixture(autouse=True)
def many(db):
    fleet(200)
    long_conversation("long", 5_000)
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE chatmemory_stay; ANALYZE chatmemory_memory")


def test_the_windows_of_chosen_conversations_are_summed_up_by_an_index():
    (plan,) = plans_of(partial(budget_of_all, CHOSEN))
    assert "stay_open" in plan.indexes
    assert not plan.faults
    assert budget_of_all(CHOSEN).used == sum(budget_of_all([each]).used for each in CHOSEN) > 0


def test_a_sample_is_read_by_key():
    query = FleetQuery(MemoryFilter(id_prefix="fleet-"), TokenWindow(1), sample=20)
    _, sampled = plans_of(partial(chosen_of, query))
    if connection.vendor == "sqlite":  # PostgreSQL reads so small a table whole
        assert "chatmemory_memory by key" in sampled.indexes
    matching, chosen = chosen_of(query)
    assert (matching, len(chosen)) == (200, 20)
    assert [each.id for each in chosen] == sorted(each.id for each in chosen)


def test_who_decides_is_asked_only_of_policies_that_measure():
    """PostgreSQL read the steps of all conversations for it."""
    plans = plans_of(lambda: list(kept_figures(CHOSEN)))
    assert [each.sql for each in plans if "chatmemory_step" in each.sql] == []
