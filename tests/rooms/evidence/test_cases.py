"""The cases of a cause: their beginnings, and numbers per day."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from chatmemory import MessageWindow
from chatmemory.flags import flag_named
from chatmemory.models import Memory, Step
from inspector.overview.cases import DAYS, cases_of

from ...conversations import create_and_add, keep, users

pytestmark = pytest.mark.django_db
SAID = users("My order is A-1182.", "well", "well", "As I said, A-1182!")
NOON = datetime(2026, 11, 26, 12, tzinfo=UTC)
MIDNIGHTS = [NOON.replace(hour=0) - timedelta(days=n) for n in reversed(range(DAYS))]


def began(name: str, days_ago: float) -> None:
    """Let something be said again in a conversation so many days before noon."""
    create_and_add(name, MessageWindow(2), SAID)
    Step.objects.filter(memory=name).update(at=NOON - timedelta(days=days_ago))


def cases():
    keep()
    return cases_of(flag_named("user_repeated"), MIDNIGHTS)


def test_each_case_counts_on_the_day_on_which_it_began():
    for name, days_ago in {"old": 40, "week": 7, "both": 7.2, "today": 0.1}.items():
        began(name, days_ago)
    found = cases()
    assert (found.count, found.newest, found.new_today) == (4, "today", 1)
    assert found.by_day == (*[0] * 6, 2, *[0] * 6, 1)
    assert found.since == NOON - timedelta(days=40)


def test_without_conversations_there_is_nothing():
    assert cases().count == Memory.objects.count() == 0
