"""Keepers: rows that are derived from ledgers, made after commits and kept until they change."""

from __future__ import annotations

import logging
import sys
from datetime import timedelta

import pytest
from django.core.management import call_command
from django.db import OperationalError, connection
from django.db.models import F
from django.utils import timezone

from chatmemory import MessageWindow, services
from chatmemory.keeper import QUICK_MESSAGES
from chatmemory.keeping import STALE_AT_ONCE, current
from chatmemory.models import Memory, Message
from chatmemory.reading import conversations
from chatmemory.reading.history import shared_histories
from chatmemory.reading.recall import recall_history
from chatmemory.recall.history import history_from
from chatmemory.recall.incidents import incidents_of
from chatmemory.services import Rounds, keepers
from inspector.rooms.evidence.incidents import IncidentKeeper, incidents
from inspector.rooms.evidence.models import KeptIncidents
from inspector.shell.keeping import KeeperThread

from .conversations import create_and_add, users

pytestmark = pytest.mark.django_db
SAID = users("My order is A-1182.", "well", "well", "A-1182!")
LONG = 60.0  # seconds, enough for all
MODELS = [keeper.model for keeper in keepers()]


@pytest.fixture(autouse=True)
def _nothing_rests(monkeypatch):
    """On a busy machine any row may take so long that its conversation would rest."""
    monkeypatch.setattr("chatmemory.keeping.SLOW", LONG)


def known_steps(model=KeptIncidents) -> dict[str, int]:
    """The step up to which conversations are known."""
    return dict(model.objects.values_list("memory_id", "step"))


class Interrupted(IncidentKeeper):
    """A keeper that is interrupted once at work by a function."""

    def __init__(self, happens):
        self._happens = iter([happens])

    def make(self, memory, before):
        made = super().make(memory, before)
        for happens in self._happens:
            happens(memory.pk)
        return made


# One conversation


@pytest.mark.needs("lab", "hours", "calls")
def test_a_row_is_known_up_to_the_newest_step_and_is_made_once(django_assert_num_queries):
    create_and_add("a", MessageWindow(2), SAID)
    services.keep("a")
    for model in MODELS:
        assert known_steps(model) == {"a": 4}
    of_prices = 2  # which provider is in use, for costs and for hours
    of_calls = 1  # the newest recorded call, by which hours are stale, too
    of_conversation = 1
    with django_assert_num_queries(of_conversation + len(keepers()) + of_prices + of_calls):
        services.keep("a")


@pytest.mark.parametrize("keep", [lambda: services.keep("a"), lambda: Rounds().keep_some(0)])
def test_all_keepers_read_the_history_of_a_conversation_and_find_its_incidents_once(keep):
    create_and_add("a", MessageWindow(2), SAID)
    called: list[str] = []
    sys.setprofile(lambda frame, event, _: event == "call" and called.append(frame.f_code.co_name))
    keep()
    sys.setprofile(None)
    assert called.count(history_from.__name__) == 1
    assert called.count(incidents_of.__name__) == 1
    assert all(known_steps(model) == {"a": 4} for model in MODELS)


def test_a_shared_history_is_of_one_step():
    create_and_add("a", MessageWindow(6), SAID)
    with shared_histories():
        first = recall_history("a")
        assert recall_history("a") is first
        services.add("a", users("once more"))
        assert len(recall_history("a")) == len(first) + 1
    assert recall_history("a") is not recall_history("a")


def test_a_request_makes_no_row_for_which_it_would_read_much():
    create_and_add("a", MessageWindow(2), SAID)
    assert current(IncidentKeeper(), "a", most=3) is None
    assert current(IncidentKeeper(), "a", most=4).step == 4
    services.add("a", users("more"))
    assert current(IncidentKeeper(), "a", most=4).step == 4


def test_the_api_tells_up_to_which_step_it_knows(operator_client):
    create_and_add("a", MessageWindow(2), SAID)
    create_and_add("long", MessageWindow(2), users(*map(str, range(QUICK_MESSAGES + 1))))
    first, second = (
        operator_client.get(f"/api/v1/memories/{memory_id}/incidents/").json()
        for memory_id in ("a", "long")
    )
    assert (first["known_until"], first["is_current"], len(first["incidents"])) == (4, True, 1)
    assert (second["known_until"], second["is_current"], second["incidents"]) == (0, False, [])


def test_other_rules_make_all_rows_stale(settings):
    create_and_add("a", MessageWindow(2), SAID)
    services.keep("a")
    settings.CHATMEMORY = {**getattr(settings, "CHATMEMORY", {}), "FACT_TERMS": ["Fjord"]}
    assert not incidents("a").is_current
    Rounds().keep_some(LONG)
    assert incidents("a").is_current


def test_a_conversation_that_went_on_meanwhile_is_known_up_to_an_earlier_step():
    create_and_add("a", MessageWindow(2), SAID)
    current(Interrupted(lambda memory_id: services.add(memory_id, users("well"))), "a")
    assert known_steps() == {"a": 4}
    assert not incidents("a").is_current


@pytest.mark.parametrize(
    "happens",
    [
        lambda memory_id: services.redact(memory_id, 1),
        lambda memory_id: services.delete(memory_id),
        lambda memory_id: (
            services.delete(memory_id),
            create_and_add(memory_id, MessageWindow(2), [*SAID, *SAID]),
        ),
    ],
    ids=["redacted", "deleted", "made anew"],
)
def test_no_row_is_kept_of_a_conversation_that_was_erased_meanwhile(happens):
    create_and_add("a", MessageWindow(2), SAID)
    current(Interrupted(happens), "a")
    assert known_steps() == {}


def test_an_older_row_takes_no_place_of_a_newer_one():
    create_and_add("a", MessageWindow(2), SAID)

    def goes_on(memory_id):
        services.add(memory_id, users("well"))
        services.keep(memory_id)

    current(Interrupted(goes_on), "a")
    assert known_steps() == {"a": 5}


@pytest.mark.parametrize(
    "erase", [services.delete, lambda memory_id: services.redact(memory_id, 1)]
)
def test_an_erasure_takes_all_rows_along(erase):
    create_and_add("a", MessageWindow(2), SAID)
    services.keep("a")
    erase("a")
    assert [model.objects.count() for model in MODELS] == [0] * len(MODELS)


@pytest.mark.skipif(connection.vendor != "sqlite", reason="a role that may not write is another")
def test_where_nothing_can_be_written_a_row_is_made_and_not_kept():
    create_and_add("a", MessageWindow(2), SAID)
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA query_only = ON")
        found = services.current_incidents("a").incidents
        Rounds().keep_some(LONG)
        cursor.execute("PRAGMA query_only = OFF")
    assert [each.fact for each in found] == ["A-1182"]
    assert known_steps() == {}


# All conversations


def test_rows_follow_what_changes_and_only_that(django_assert_max_num_queries):
    rounds = Rounds()
    create_and_add("a", MessageWindow(2), SAID)
    create_and_add("b", MessageWindow(2), users("hi"))
    services.create("empty", MessageWindow(2))
    rounds.keep_some(LONG)
    assert known_steps() == {"a": 4, "b": 1}
    assert [each.fact for each in incidents("a").incidents] == ["A-1182"]
    services.add("b", users("hi again"))
    rounds.keep_some(LONG)
    assert known_steps() == {"a": 4, "b": 2}
    of_prices = 2  # which provider is in use, for costs and for hours
    with django_assert_max_num_queries(2 + 1 + of_prices):
        assert not rounds.keep_some(LONG)
    Memory.objects.update(updated_at=F("updated_at") - timedelta(hours=1))
    with django_assert_max_num_queries(2 + 1):
        assert not rounds.keep_some(LONG)


def test_what_changes_now_comes_before_what_had_changed():
    for n in range(3):
        create_and_add(f"old-{n}", MessageWindow(2), SAID)
        Memory.objects.filter(id=f"old-{n}").update(
            updated_at=conversations.memory(f"old-{n}").updated_at - timedelta(days=3 - n)
        )
    rounds = Rounds()
    create_and_add("new", MessageWindow(2), SAID)
    assert rounds.keep_some(0)
    assert known_steps() == {"new": 4}
    while rounds.keep_some(0):
        pass
    assert len(known_steps()) == 4


def test_each_conversation_has_its_turn_while_all_go_on_changing():
    names = [f"c{n:02}" for n in range(STALE_AT_ONCE + 5)]
    rounds = Rounds([IncidentKeeper()])
    for name in names:
        services.create(name, MessageWindow(2))
    for _ in range(2):
        for name in names:
            services.add(name, users("hi"))
        assert rounds.keep_some(LONG)
    assert known_steps().keys() == set(names)


def test_a_conversation_that_cannot_be_read_is_logged_once_and_stops_no_other(caplog):
    create_and_add("bad", MessageWindow(2), SAID)
    create_and_add("good", MessageWindow(2), SAID)
    Message.objects.filter(memory="bad", seq=1).update(frame="{")
    rounds = Rounds([IncidentKeeper()])
    with caplog.at_level(logging.ERROR):
        rounds.keep_some(LONG)
        rounds.keep_some(LONG)
    assert known_steps() == {"good": 4}
    assert [record.args for record in caplog.records] == [("incidents", "bad")]


@pytest.mark.parametrize("time", ["no time", "2026-13-45 00:00:00", "0000"])
def test_a_conversation_whose_time_was_altered_stops_no_other(time):
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL takes nothing but times")
    create_and_add("bad", MessageWindow(2), SAID)
    create_and_add("good", MessageWindow(2), SAID)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE chatmemory_memory SET updated_at = %s WHERE id = 'bad'", [time])
    rounds = Rounds([IncidentKeeper()])
    rounds.keep_some(LONG)
    assert not rounds.keep_some(LONG)
    assert known_steps()["good"] == 4


def test_what_had_changed_is_kept_though_the_last_of_a_round_was_deleted():
    names = [f"c{n:02}" for n in range(STALE_AT_ONCE + 5)]
    for n, name in enumerate(names):
        create_and_add(name, MessageWindow(2), SAID[:1])
        Memory.objects.filter(id=name).update(updated_at=timezone.now() - timedelta(days=n + 1))
    rounds = Rounds([IncidentKeeper()])
    assert rounds.keep_some(LONG)
    services.delete(names.pop(STALE_AT_ONCE - 1))
    while rounds.keep_some(LONG):
        pass
    assert known_steps() == dict.fromkeys(names, 1)


def test_a_conversation_that_went_on_or_is_deleted_meanwhile_is_found_the_next_time():
    create_and_add("a", MessageWindow(2), SAID)
    create_and_add("gone", MessageWindow(2), SAID)

    def happens(memory_id):
        services.delete("gone")
        services.add("a", users("A-1182"))

    rounds = Rounds([Interrupted(happens)])
    rounds.keep_some(LONG)
    rounds.keep_some(LONG)
    assert known_steps() == {"a": 5}


@pytest.mark.parametrize(("rest", "step"), [(10**6, 4), (0, 5)])
def test_a_conversation_whose_row_took_long_rests_before_the_next(monkeypatch, rest, step):
    monkeypatch.setattr("chatmemory.keeping.SLOW", 0)
    monkeypatch.setattr("chatmemory.keeping.REST", rest)
    rounds = Rounds([IncidentKeeper()])
    create_and_add("a", MessageWindow(2), SAID)
    rounds.keep_some(LONG)
    services.add("a", users("more"))
    create_and_add("b", MessageWindow(2), SAID)
    rounds.keep_some(LONG)
    assert known_steps() == {"a": step, "b": 4}


class Failing(Rounds):
    """Rounds over a database that does not answer. The third one stops the thread."""

    def __init__(self):
        self.count, self.thread = 0, KeeperThread(self)

    def keep_some(self, seconds):
        self.count += 1
        if self.count == 3:
            self.thread.stop()
        raise OperationalError("down")


def test_a_failing_thread_logs_it_once_and_goes_on(monkeypatch, caplog):
    for name in ("SOON", "PAUSE", "LEAST"):
        monkeypatch.setattr(f"inspector.shell.keeping.{name}", 0)
    rounds = Failing()
    rounds.thread.run()
    assert rounds.count == 3
    assert len(caplog.records) == 1


def test_what_is_left_are_the_conversations_with_a_row_that_is_not_current():
    for name in ("a", "b", "c"):
        create_and_add(name, MessageWindow(2), SAID[:1])
    rounds = Rounds()
    assert rounds.left() == 3
    services.keep("a")
    assert rounds.left() == 2
    services.keep("b")
    MODELS[0].objects.filter(memory="b").delete()
    assert rounds.left() == 2
    while rounds.keep_some(1):
        pass
    assert not rounds.left()


@pytest.mark.parametrize("days", [0, 3])
def test_the_command_keeps_all_that_has_changed(days):
    names = [f"c{n}" for n in range(STALE_AT_ONCE + 5)]
    for name in names:
        create_and_add(name, MessageWindow(2), SAID[:1])
    Memory.objects.update(updated_at=timezone.now() - timedelta(days=days))
    call_command("keep", "--once")
    for model in MODELS:
        assert known_steps(model) == dict.fromkeys(names, 1)
