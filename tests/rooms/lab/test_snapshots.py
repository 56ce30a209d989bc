"""What a page, which reads one state, does with figures that are not kept yet."""

from __future__ import annotations

import pytest

from benchmarks.advised import fleet
from chatmemory.snapshots import one_snapshot
from inspector.rooms.lab.figures import figures_now
from tests.conversations import create_and_add
from tests.counting_calls import CountedLines


@pytest.mark.django_db(transaction=True)
def test_a_page_does_not_make_figures_that_it_could_not_keep():
    """Each reading of a live page made them again: it took four times as long."""
    short = next(iter(fleet()))
    create_and_add(short.id, short.policy, short.messages)
    with one_snapshot(), CountedLines() as reading:
        assert [each.figures for each in figures_now([short.id], {})] == [None]
    with CountedLines() as making:
        assert all(each.figures for each in figures_now([short.id], {}))
    assert reading.count < making.count / 10
    with one_snapshot():
        assert all(each.figures for each in figures_now([short.id], {}))
