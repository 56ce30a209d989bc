"""The thread of a large site counts the overview ahead of its readers, and pages say when."""

from __future__ import annotations

import pytest
from django.core.cache import cache
from django.utils import timezone

from chatmemory import MessageWindow, TokenWindow, services
from chatmemory.models import Memory
from inspector.overview import ahead
from inspector.overview.ahead import count_ahead
from inspector.overview.causes import COUNTED_AHEAD, forget_headlines
from inspector.shell.keeping import KeeperThread

from ..conversations import create_and_add, keep, users

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def large(monkeypatch):
    """Any site with two conversations is a large one, and counting takes no pause."""
    monkeypatch.setattr(ahead, "MANY", 1)
    monkeypatch.setattr(ahead, "kept_seconds", lambda took: 0)
    cache.clear()


@pytest.fixture
def fleet(db) -> None:
    create_and_add("a", MessageWindow(3), users("hi"))
    create_and_add("b", TokenWindow(100), users("hi"))
    keep()


def chips(page) -> dict[str, int]:
    return {chip.label: chip.count for chip in page.context["query"].chips}


def words(page) -> str:
    return " ".join(page.content.decode().split())


def menus_with_a_time(page) -> set[str]:
    return {menu.name for menu in page.context["menus"] if menu.at}


def test_a_reader_gets_what_the_thread_has_counted(operator_client, fleet):
    count_ahead()
    services.create("c", MessageWindow(3))
    page = operator_client.get("/")
    assert chips(page) == {"Active today": 2, "Message window": 1, "Token window": 1}
    assert page.context["total"] == 2
    assert {row.memory.id for row in page.context["rows"]} == {"a", "b", "c"}


def test_what_is_counted_no_more_takes_no_query(operator_client, fleet, django_assert_num_queries):
    count_ahead()
    statements = [each["sql"] for each in queries_of(operator_client)]
    assert not any("COUNT(" in each for each in statements)
    forget_headlines()
    statements = [each["sql"] for each in queries_of(operator_client)]
    assert any("COUNT(" in each for each in statements)


def queries_of(client):
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    client.get("/help/")  # the session
    with CaptureQueriesContext(connection) as found:
        client.get("/")
    return found


def test_counts_that_miss_a_change_say_when_they_were_made(operator_client, fleet):
    count_ahead()
    page = operator_client.get("/")
    assert "as of" not in words(page).partition("data-found")[2]
    assert not menus_with_a_time(page)
    services.create("c", MessageWindow(3))
    page = operator_client.get("/")
    at = timezone.localtime(page.context["headlines"].counted.at)
    assert "3 of 2 conversations as of <time" in words(page)
    assert f">{at:%H:%M} UTC</time>" in words(page).partition("data-found")[2]
    assert {"Any time", "Policy"} <= menus_with_a_time(page)


def test_after_a_change_the_thread_counts_again(operator_client, fleet):
    count_ahead()
    services.create("c", MessageWindow(3))
    count_ahead()
    page = operator_client.get("/")
    assert (chips(page)["Message window"], page.context["total"]) == (2, 3)
    assert "as of" not in words(page).partition("data-found")[2]
    services.delete("c")
    count_ahead()
    assert operator_client.get("/").context["total"] == 2


def test_without_a_change_the_thread_does_not_count(fleet):
    count_ahead()
    first = cache.get(COUNTED_AHEAD)
    count_ahead()
    assert cache.get(COUNTED_AHEAD).counted.at == first.counted.at


def test_after_a_long_count_there_is_a_pause(fleet, monkeypatch):
    monkeypatch.setattr(ahead, "kept_seconds", lambda took: 1_000)
    count_ahead()
    first = cache.get(COUNTED_AHEAD)
    services.create("c", MessageWindow(3))
    count_ahead()
    assert cache.get(COUNTED_AHEAD).counted.at == first.counted.at


def test_a_list_with_a_filter_is_counted_by_its_reader(operator_client, fleet):
    count_ahead()
    services.create("c", MessageWindow(3))
    page = operator_client.get("/?policy=message_window")
    assert page.context["total"] == 2
    assert "as of" not in words(page).partition("data-found")[2]


def test_a_small_site_is_counted_by_its_reader(operator_client, fleet, monkeypatch):
    monkeypatch.setattr(ahead, "MANY", 5_000)
    count_ahead()
    services.create("c", MessageWindow(3))
    page = operator_client.get("/")
    assert page.context["total"] == 3
    assert "as of" not in words(page).partition("data-found")[2]


def test_a_site_that_became_small_is_counted_by_its_reader(operator_client, fleet):
    count_ahead()
    services.delete("b")
    count_ahead()
    create_and_add("c", MessageWindow(3), users("hi"))
    create_and_add("d", MessageWindow(3), users("hi"))
    assert operator_client.get("/").context["total"] == 3


@pytest.mark.django_db(transaction=True)  # the thread closes its connections
def test_the_thread_counts_after_its_rounds(fleet):
    thread = KeeperThread(also=(count_ahead, lambda: thread.stop()))
    thread.run()
    assert cache.get(COUNTED_AHEAD).counted.stats.conversations == Memory.objects.count()
