"""The cases of a cause: beginnings, numbers per day, and the effect of a change of policy."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from chatmemory import MessageWindow, services
from chatmemory.flags import flag_named
from chatmemory.models import Memory, Step
from inspector.overview.cases import DAYS, cases_of, newest_policy_change
from inspector.overview.causes import Cause

from ...conversations import create_and_add, keep, users

pytestmark = pytest.mark.django_db
SAID = users("My order is A-1182.", "well", "well", "As I said, A-1182!")
NOON = datetime(2026, 11, 26, 12, tzinfo=UTC)
MIDNIGHTS = [NOON.replace(hour=0) - timedelta(days=n) for n in reversed(range(DAYS))]


def began(name: str, days_ago: float) -> None:
    """Let something be said again in a conversation so many days before noon."""
    create_and_add(name, MessageWindow(2), SAID)
    Step.objects.filter(memory=name).update(at=NOON - timedelta(days=days_ago))


def cases(changed: datetime | None = None):
    keep()
    return cases_of(flag_named("user_repeated"), MIDNIGHTS, NOON, changed)


def test_each_case_counts_on_the_day_on_which_it_began():
    for name, days_ago in {"old": 40, "week": 7, "both": 7.2, "today": 0.1}.items():
        began(name, days_ago)
    found = cases()
    assert (found.count, found.newest, found.new_today) == (4, "today", 1)
    assert found.by_day == (*[0] * 6, 2, *[0] * 6, 1)
    assert found.since == NOON - timedelta(days=40)


def test_a_change_of_policy_marks_its_day_and_says_what_came_before_and_after():
    for name, days_ago in {"a": 6, "b": 5, "c": 4, "d": 1}.items():
        began(name, days_ago)
    services.change("a", policy=MessageWindow(9))
    at = NOON - timedelta(days=3)
    Step.objects.filter(memory="a", kind="policy").update(at=at)
    assert newest_policy_change(MIDNIGHTS[0]) == at
    found = cases(at)
    assert found.change.day == DAYS - 4
    line = Cause("user_repeated", found, "", "")
    assert [bar.is_marked for bar in line.bars].index(True) == DAYS - 4
    assert line.change == "0.3 a day before the change of 23 Nov, 0.3 after"
    assert newest_policy_change(NOON) is None


def test_where_no_case_is_older_than_the_change_nothing_is_compared():
    began("a", 1)
    found = cases(NOON - timedelta(days=1.5))
    assert Cause("user_repeated", found, "", "").change == ""


def test_without_conversations_there_is_nothing():
    assert cases().count == Memory.objects.count() == 0
