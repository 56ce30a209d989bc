"""Conversations are examined beside their storing, and the rest afterwards."""

from __future__ import annotations

import pytest

from chatmemory import MessageWindow, examination
from chatmemory.keeping import Rounds
from chatmemory.models import Memory
from chatmemory.reading.finding import MemoryFilter
from chatmemory.reading.overview import Examined, examined
from chatmemory.services import Examination, keepers

from .conversations import create_and_add, users

pytestmark = [pytest.mark.django_db, pytest.mark.needs("evidence")]
SAID = users("My order is A-1182.", "well", "well", "A-1182!")
MODELS = [keeper.model for keeper in keepers()]


def stored(*names: str) -> Examination:
    """Return the examination of new conversations, of which none is examined."""
    found = Examination()
    for name in names:
        create_and_add(name, MessageWindow(2), SAID)
        found.add(name)
    return found


def known() -> list[str]:
    """The conversations of which all rows are kept, first kept first."""
    rows = MODELS[0].objects.order_by("kept_at").values_list("memory", flat=True)
    return [each for each in rows if all(model.objects.filter(pk=each) for model in MODELS)]


def test_beside_storing_the_newest_conversation_is_examined():
    found = stored("a", "b")
    found.go_on()
    assert known() == ["b"]
    assert (found.examined, found.left, found.total) == (1, 1, 2)


def test_examining_takes_no_more_than_its_share_of_the_time(monkeypatch):
    monkeypatch.setattr(examination, "SHARE", 10**9)
    found = stored("a", "b", "c")
    found.go_on()
    found.go_on()
    assert known() == ["c"]
    monkeypatch.setattr(examination, "SHARE", 0)
    found.go_on()
    assert known() == ["c", "b"]


def test_the_rest_is_examined_newest_first_a_few_at_a_time(monkeypatch):
    monkeypatch.setattr(examination, "AT_ONCE", 2)
    found = stored("a", "b", "c")
    assert list(found.rest()) == [2, 1]
    assert known() == ["c", "b", "a"]
    assert (found.examined, found.left) == (3, 0)


def test_of_known_conversations_those_are_examined_that_are_not_yet(django_assert_max_num_queries):
    stored("a", "b").go_on()
    again = Examination()
    again.add("a", is_known=True)
    again.add("b", is_known=True)
    again.go_on()  # the rest has time for them
    assert known() == ["b"]
    assert list(again.rest()) == [2]
    assert known() == ["b", "a"]
    for name in ("a", "b"):
        again.add(name, is_known=True)
    at = MODELS[0].objects.values_list("kept_at")
    before = list(at)
    assert list(again.rest()) == [2]
    assert list(at) == before


def test_what_is_left_is_examined_by_the_rounds_of_a_site():
    stored("a", "b").go_on()
    Rounds().keep_some(60)
    assert sorted(known()) == ["a", "b"]


def test_a_conversation_that_was_deleted_meanwhile_stops_nothing():
    found = stored("a", "b")
    Memory.objects.filter(pk="b").delete()
    found.go_on()
    assert list(found.rest()) == [1]
    assert known() == ["a"]


def test_how_far_conversations_are_examined_is_counted_by_their_prefix():
    stored("a-1", "a-2", "b").go_on()
    assert examined(MemoryFilter(id_prefix="a-")) == Examined(0, 2, None)
    assert examined(MemoryFilter(id_prefix="b")) == Examined(1, 1, None)
    assert examined(MemoryFilter(id_prefix="b")).is_all
