"""The first screen of a fleet: since when, whose, and did it help, by an independent count."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.core.cache import cache

from chatmemory import AiMessage, MessageWindow, ToolExecutionResultMessage, UserMessage, services
from chatmemory.flags import flag_named
from chatmemory.inserted import NewMessage
from chatmemory.models import Memory
from inspector.overview.common import Everywhere, common_of
from inspector.rooms.doctor.choosing import choose_providers
from inspector.rooms.evidence.flagged import USER_REPEATED
from inspector.rooms.hours.changes import Change, Side, closing_of, effect_of
from inspector.rooms.hours.clock import HOUR
from inspector.rooms.hours.figures import refresh
from inspector.rooms.hours.fleet import Counting, Spent
from inspector.rooms.hours.models import KeptFigures
from inspector.rooms.hours.money import money
from inspector.rooms.hours.telling import effect_words

from ...conversations import create_and_add, keep, users

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 28, 14, tzinfo=UTC)
EVERY = Counting({"user_repeated": None})
DAY = 24 * HOUR
AT = int(NOW.timestamp()) - 6 * DAY


def page_of(client, address: str = "/") -> str:
    cache.clear()
    return " ".join(client.get(address).text.split())


# In common


def refused(name: str, **labels: str) -> None:
    services.create(name, MessageWindow(20), labels)
    services.add(name, [ToolExecutionResultMessage("1", "find", "x"), UserMessage("well?")])


def common(count: int):
    keep()
    found = common_of(flag_named("refused"), None, Everywhere(Memory.objects.count()))
    assert found.cases == count
    return found


def test_cases_have_the_smallest_group_in_common(db):
    choose_providers("", ["openai"])
    for n in range(4):
        refused(f"a/{n}", release="2", team="x")
    for n in range(12):
        create_and_add(f"b/{n}", MessageWindow(5), users("hi"), {"team": "x" if n < 4 else "y"})
    found = common(4)
    assert (found.count, found.words) == (4, ["a/", "release 2"])


@pytest.mark.parametrize("count", [1, 2])
def test_fewer_than_three_cases_have_nothing_in_common(db, count):
    choose_providers("", ["openai"])
    for n in range(count):
        refused(f"a/{n}")
    create_and_add("b/1", MessageWindow(5), users("hi"))
    assert common(count).values == ()


def test_what_everybody_has_is_not_in_common(db):
    choose_providers("", ["openai"])
    for n in range(3):
        refused(f"a/{n}", release="1")
    create_and_add("a/9", MessageWindow(5), users("hi"), {"release": "1"})
    found = common(3)
    assert found.values == ()
    assert found.tenants == 1


def test_two_thirds_are_enough(db):
    choose_providers("", ["openai"])
    for n, tenant in enumerate("aaaabb"):
        refused(f"{tenant}/{n}")
    for n in range(20):
        create_and_add(f"c/{n}", MessageWindow(5), users("hi"))
    assert common(6).words == ["a/"]
    refused("b/7")
    assert common(7).values == ()


# Did it help


def spent(days: float, turns: int, cases: int = 0, id: str = "m") -> Spent:
    """An hour of a conversation, so many days after the change."""
    hour = AT + int(days * DAY)
    return Spent(id, hour, turns, turns, 0, 0, 0, False, [["user_repeated", ""]] * cases)


CHANGE = Change("limit 3,000", AT, {"m": AT})


def effect(*rows: Spent, now: datetime = NOW):
    return effect_of(CHANGE, USER_REPEATED, rows, EVERY, now)


def test_before_and_after_are_cases_per_100_turns_that_could_have_had_one():
    found = effect(spent(-2, 30, 3), spent(-1, 20, 2), spent(1, 40, 1), spent(0, 9, 9))
    assert (found.before, found.after) == (Side(5, 50), Side(1, 40))
    assert effect_words(found) == "10.0 cases per 100 turns before limit 3,000 of 22 Nov, 2.5 after"


def test_a_foreign_conversation_changes_no_line():
    rows = spent(-2, 30, 3), spent(1, 40, 1)
    assert effect(*rows) == effect(*rows, spent(-3, 50, 9, "other"), spent(2, 50, 9, "other"))


@pytest.mark.parametrize(
    ("rows", "now", "turns"),
    [
        ((spent(-2, 30, 3), spent(1, 7)), NOW, 7),
        ((spent(-2, 19, 3), spent(1, 40)), NOW, 40),
        ((spent(-0.5, 30, 3), spent(1, 40)), NOW, 40),
        ((spent(-2, 30), spent(0.2, 40)), NOW - timedelta(days=5.5), 40),
    ],
)
def test_it_may_be_too_early_to_tell(rows, now, turns):
    assert effect_words(effect(*rows, now=now)).endswith(f" helped: {turns} turns since")


def closing(*rows: Spent, now: datetime = NOW):
    return closing_of(CHANGE, USER_REPEATED, rows, EVERY, now)


def test_a_cause_closes_after_two_days_and_50_turns_and_comes_back():
    quiet = [spent(1, 30), spent(1.5, 25), spent(3, 5)]
    assert closing(*quiet).at == quiet[2].hour
    assert closing(spent(1, 30), spent(3, 5)).at is None, "only 35 turns"
    assert closing(spent(1, 60), now=NOW - timedelta(days=4.5)).at is None, "only 1.5 days"
    again = closing(*quiet, spent(4, 2, 1))
    assert (again.at, again.came_back) == (None, True)
    assert closing(spent(1, 5, 1), spent(1.5, 60), spent(4, 1)).at is not None


def test_hours_without_conversations_show_no_strip(operator_client, db):
    assert "Over time" not in page_of(operator_client)
    services.create("a", MessageWindow(5))
    services.add("a", [NewMessage(UserMessage("hi"), said_at=NOW), NewMessage(AiMessage("yes"))])
    keep()
    refresh()
    assert "Over time" in page_of(operator_client)


def test_figures_of_no_conversation_show_no_strip(operator_client, db):
    """They were kept before the first conversation was examined: 0 would be no answer."""
    refresh()
    services.create("new", MessageWindow(5))
    services.add("new", [UserMessage("hi")])
    assert KeptFigures.objects.exists()
    assert 'id="h-strip"' not in operator_client.get("/").text


# Money


@pytest.mark.parametrize(
    ("models", "amount"),
    [
        (["gpt-4o-2024-08-06"], "$2.50"),
        (["gpt-4o-mini"], "$0.15"),
        (["gpt-4o", "gpt-4o-2024-08-06"], "$2.50"),
        (["gpt-4o", "gpt-4o-mini"], ""),
        (["claude-3"], ""),
        ([], ""),
    ],
)
def test_the_longest_beginning_of_a_model_has_its_price(models, amount):
    assert money(1_000_000, models, {"gpt-4o": "$2.50", "gpt-4o-mini": "$0.15"}) == amount
