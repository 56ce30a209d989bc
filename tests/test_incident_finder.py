"""What a server does about incidents: conversations that change are looked at again, soon."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest
from django.db import OperationalError, connection

from chatmemory import MessageWindow, queries, services
from chatmemory.models import FoundIncidents, Memory, Message
from chatmemory.services import IncidentFinder
from chatmemory.services import findings as finding
from inspector.live.incidents import IncidentThread

from .conversations import create_and_add, users

SAID = users("My order is A-1182.", "well", "well", "A-1182!")
LONG = 60.0  # seconds, enough for all


def found() -> dict[str, int]:
    """The step up to which incidents are known, by conversation."""
    return dict(FoundIncidents.objects.values_list("memory_id", "step"))


def test_those_of_what_changes_are_found_and_only_of_that(db, django_assert_max_num_queries):
    finder = IncidentFinder()
    create_and_add("a", MessageWindow(2), SAID)
    create_and_add("b", MessageWindow(2), users("hi"))
    services.create("empty", MessageWindow(2))
    finder.find_some(LONG)
    assert found() == {"a": 4, "b": 1}
    assert [each.fact for each in queries.incidents("a").incidents] == ["A-1182"]
    services.add("b", users("hi again"))
    finder.find_some(LONG)
    assert found() == {"a": 4, "b": 2}
    with django_assert_max_num_queries(3):
        finder.find_some(LONG)


def test_what_had_changed_before_follows_what_changes_now(db):
    for n in range(3):
        create_and_add(f"old-{n}", MessageWindow(2), SAID)
        Memory.objects.filter(id=f"old-{n}").update(
            updated_at=queries.memory(f"old-{n}").updated_at - timedelta(days=3 - n)
        )
    finder = IncidentFinder()
    create_and_add("new", MessageWindow(2), SAID)
    finder.find_some(0)
    assert found() == {"new": 4}
    for _ in range(4):
        finder.find_some(0)
    assert len(found()) == 4


def test_a_conversation_that_cannot_be_read_is_told_once_and_stops_no_other(db, caplog):
    create_and_add("bad", MessageWindow(2), SAID)
    create_and_add("good", MessageWindow(2), SAID)
    Message.objects.filter(memory="bad", seq=1).update(frame="{")
    finder = IncidentFinder()
    with caplog.at_level(logging.ERROR):
        finder.find_some(LONG)
        finder.find_some(LONG)
    assert found() == {"good": 4}
    assert [record.args for record in caplog.records] == [("bad",)]


def test_one_that_changes_or_is_deleted_meanwhile_is_found_the_next_time(db, monkeypatch):
    create_and_add("a", MessageWindow(2), SAID)
    create_and_add("gone", MessageWindow(2), SAID)
    computed, is_first = finding.computed_incidents, iter([True])

    def found_then_changed(memory_id):
        if memory_id == "gone":
            services.delete("gone")
        result = computed(memory_id)
        if next(is_first, False):
            services.add(memory_id, users("A-1182"))
        return result

    monkeypatch.setattr(finding, "computed_incidents", found_then_changed)
    finder = IncidentFinder()
    finder.find_some(LONG)
    finder.find_some(LONG)
    assert found() == {"a": 5}


@pytest.mark.skipif(connection.vendor != "sqlite", reason="a role that may not write is another")
def test_nothing_is_looked_for_where_nothing_can_be_written(db):
    create_and_add("a", MessageWindow(2), SAID)
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA query_only = ON")
        IncidentFinder().find_some(LONG)
        cursor.execute("PRAGMA query_only = OFF")
    assert found() == {}


def test_a_failing_thread_tells_it_once_and_goes_on(monkeypatch, caplog):
    rounds, thread = [], IncidentThread()

    def fail(self, seconds):
        rounds.append(seconds)
        if len(rounds) == 3:
            thread.stop()
        raise OperationalError("down")

    monkeypatch.setattr(IncidentFinder, "find_some", fail)
    monkeypatch.setattr("inspector.live.incidents.PAUSE_SECONDS", 0)
    thread.run()
    assert len(rounds) == 3
    assert len(caplog.records) == 1


def test_a_server_finds_them_within_five_seconds(served):
    assert served.finds_incidents("again", within=5)
    metrics = served.api.get(f"{served.url}/metrics", headers={"Authorization": ""}).text
    assert 'chatmemory_incidents_total{kind="said_again"}' in metrics
