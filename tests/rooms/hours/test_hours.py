"""The hours of conversations: made by the keeper, continued, and compared with hours made anew."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from random import Random

import pytest
from django.db import connection
from django.test import override_settings
from django.utils import timezone

from chatmemory import AiMessage, MessageWindow, TokenWindow, services
from chatmemory.inserted import NewMessage
from chatmemory.keeping import current, remade
from chatmemory.messages.estimators import estimator_for
from chatmemory.models import Memory, Message
from chatmemory.services import Rounds
from inspector.overview.selection import OverviewQuery
from inspector.rooms.calls.call import NewCall, ReceivedAnswer, SentRequest, Source, Usage
from inspector.rooms.calls.writes import store
from inspector.rooms.hours.clock import days_until, hour_of, hours_until
from inspector.rooms.hours.figures import refresh
from inspector.rooms.hours.filters import narrowing
from inspector.rooms.hours.fleet import spent
from inspector.rooms.hours.keeping import HoursKeeper
from inspector.rooms.hours.models import Hour, KeptHours
from inspector.rooms.hours.page import over_time

from ...any_operations import Conversation
from ...conversations import call, create_and_add, keep, users
from ...plans.plans import plans_of

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
ALL = 60.0


def said(at: datetime, *messages) -> list[NewMessage]:
    """Messages that were said at a time, a minute after each other."""
    return [NewMessage(each, said_at=at + timedelta(minutes=n)) for n, each in enumerate(messages)]


def rows(memory_id: str = "a") -> dict[datetime, Hour]:
    keep()
    found = Hour.objects.filter(memory=memory_id).order_by("hour")
    return {datetime.fromtimestamp(each.hour, UTC): each for each in found}


def turns(memory_id: str = "a") -> dict[str, int]:
    return {f"{at:%d %H}": row.turns for at, row in rows(memory_id).items()}


def test_an_hour_has_the_turns_that_were_said_in_it():
    services.create("a", MessageWindow(9))
    services.add("a", said(NOON, *users("one", "two"), AiMessage("yes")))
    services.add("a", said(NOON + timedelta(hours=1, minutes=59), *users("three", "four")))
    assert turns() == {"20 12": 2, "20 13": 1, "20 14": 1}


def test_turns_after_an_eviction_and_after_a_compaction_are_counted():
    services.create("a", MessageWindow(2))
    services.add("a", said(NOON, *users("one", "two", "three", "four")))
    (row,) = rows().values()
    assert (row.turns, row.after_eviction, row.after_compaction) == (4, 1, 0)
    services.compact("a", "They counted.", keep_last=0)
    services.add("a", said(NOON, *users("five")))
    (row,) = rows().values()
    assert (row.turns, row.after_eviction, row.after_compaction) == (5, 2, 1)


def test_the_prompt_of_an_answer_is_the_window_before_it():
    create_and_add("a", TokenWindow(10_000), [*users("one " * 50), AiMessage("yes")])
    services.add("a", [*users("two"), AiMessage("no")])
    (row,) = rows().values()
    overhead = estimator_for("gpt-4o").estimate_token_count_in_messages([])
    sizes = dict(Message.objects.values_list("seq", "tokens"))
    first = sizes[1] + overhead
    second = sizes[1] + sizes[2] + sizes[3] + overhead
    assert (row.prompts, row.tokens) == (2, first + second)
    assert row.cost == 1_000 * row.tokens  # too short for a cache


def test_what_begins_like_the_prompt_before_is_cheaper():
    create_and_add(
        "a", TokenWindow(90_000), [*users("one " * 3_000), AiMessage("yes"), *users("two")]
    )
    services.add("a", [AiMessage("no")])
    (row,) = rows().values()
    assert row.cost < 1_000 * row.tokens
    create_and_add("b", TokenWindow(4_000), [*users("one " * 3_000), AiMessage("yes")])
    services.add("b", [*users("two " * 3_000), AiMessage("no")])
    (other,) = rows("b").values()
    assert other.cost == 1_000 * other.tokens, "the first message has left, so nothing is shared"


def cases(flag: str) -> dict[str, list[str]]:
    """The details of the cases of a flag by hour."""
    found: dict[str, list[str]] = {}
    for at, row in rows().items():
        for name, detail in json.loads(row.cases or "[]"):
            if name == flag:
                found.setdefault(f"{at:%H}", []).append(detail)
    return found


def test_a_refused_window_is_a_case_in_its_own_hour_also_when_it_was_mended():
    services.create("a", MessageWindow(3))
    services.add("a", said(NOON, *users("one"), call("1")))
    services.add("a", said(NOON + timedelta(hours=3), *users("two")))
    assert "openai:dangling_call!" in cases("refused")["15"][0]
    services.add("a", said(NOON + timedelta(hours=5), AiMessage("4"), *users("5", "6")))
    found = cases("refused")
    assert "openai:dangling_call!" in found["15"][0]
    assert "openai" not in str(found.get("17", ""))


@pytest.mark.needs("evidence")
def test_a_repeated_fact_is_a_case_in_the_hour_of_the_message():
    services.create("a", MessageWindow(2))
    services.add("a", said(NOON, *users("My order is A-1182.", "well", "well")))
    services.add("a", said(NOON + timedelta(hours=2), *users("As I said, A-1182!")))
    assert cases("user_repeated") == {"14": [""]}


def test_messages_without_a_time_are_left_out_and_counted():
    from chatmemory.ledger.slices import import_conversation

    import_conversation("a", users("one", "two"), MessageWindow(9))
    assert turns() == {}
    assert KeptHours.objects.get(memory="a").untimed == 2


def test_a_branch_does_not_count_what_it_copies():
    create_and_add("a", MessageWindow(9), users("one", "two"))
    services.branch("a", "b", users("three"), at=2)
    assert sum(turns("b").values()) == 1


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Asia/Kolkata", "Australia/Lord_Howe"])
def test_hours_are_those_of_the_sites_clock(zone):
    with override_settings(TIME_ZONE=zone):
        for minutes in range(0, 60 * 24 * 2, 17):
            at = datetime(2026, 10, 24, 22, tzinfo=UTC) + timedelta(minutes=minutes)
            begin = datetime.fromtimestamp(hour_of(at), timezone.get_default_timezone())
            assert timedelta() <= at - begin < timedelta(minutes=91)
            assert begin.minute in (0, 30) if zone == "Australia/Lord_Howe" else begin.minute == 0


def test_a_day_on_which_a_clock_changes_has_23_or_25_hours():
    with override_settings(TIME_ZONE="Europe/Berlin"):
        days = days_until(datetime(2026, 10, 26, 12, tzinfo=UTC), 3)
        assert [b - a for a, b in pairwise(days)] == [24 * 3_600, 25 * 3_600]
        spring = days_until(datetime(2026, 3, 30, 12, tzinfo=UTC), 3)
        assert [b - a for a, b in pairwise(spring)] == [86_400, 23 * 3_600]
        assert len(set(hours_until(datetime(2026, 10, 25, 3, tzinfo=UTC), 24))) == 24


def test_hours_of_another_time_zone_are_stale():
    create_and_add("a", MessageWindow(9), users("one"))
    keep()
    before = KeptHours.objects.get(memory="a").version
    with override_settings(TIME_ZONE="Asia/Kolkata"):
        keep()
        assert KeptHours.objects.get(memory="a").version != before
        assert Hour.objects.get(memory="a").hour % 3_600 == 1_800


def test_they_are_deleted_and_erased_with_their_conversation():
    create_and_add("a", MessageWindow(9), users("one"))
    create_and_add("b", MessageWindow(9), users("one"))
    keep()
    services.redact("a", 1)
    services.delete("b")
    assert not Hour.objects.exists()
    assert turns() != {}


def test_a_verification_makes_altered_hours_again():
    create_and_add("a", MessageWindow(9), users("one"))
    keep()
    assert remade("a") == []
    Hour.objects.update(turns=7)
    assert remade("a") == ["hours"]
    assert sum(turns().values()) == 1
    Hour.objects.create(memory_id="a", hour=0, turns=3)
    assert remade("a") == ["hours"]
    assert sum(turns().values()) == 1


def test_a_recorded_call_makes_them_stale_and_its_counts_win():
    create_and_add("a", MessageWindow(9), [*users("one"), AiMessage("yes")])
    keep()
    store(
        NewCall(
            key="1",
            source=Source.RECORDER,
            format="openai_chat",
            provider="openai",
            model="gpt-4o",
            sent=SentRequest({"model": "gpt-4o", "messages": [{"role": "user", "content": "one"}]}),
            at=timezone.now(),
            session="a",
            received=ReceivedAnswer(usage=Usage(input=2_000, cached=1_000)),
        )
    )
    assert Rounds([HoursKeeper()]).keep_some(60.0) is False
    row, kept = Hour.objects.get(memory="a"), KeptHours.objects.get(memory="a")
    assert (row.calls, row.call_tokens) == (1, 2_000)
    assert row.call_cost < 2_000_000
    assert (kept.step, kept.call, kept.model) == (2, 1, "gpt-4o")
    assert remade("a") == []


@pytest.mark.parametrize("seed", range(4))
def test_continued_hours_equal_hours_made_anew(seed):
    random = Random(seed)
    it = Conversation(random)
    it.begin()
    for _ in range(30):
        it.operate()
        if random.random() < 0.6:
            current(HoursKeeper(), "m")
    current(HoursKeeper(), "m")
    assert remade("m") == []


def test_hours_of_a_time_are_found_by_their_index():
    if connection.vendor == "postgresql":  # whose tables are too small for it here
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_seqscan = off")
    listed = narrowing("day", "2026-11-20")
    first, last = hour_of(NOON), hour_of(NOON + timedelta(hours=3))
    for rows in (
        lambda: list(Memory.objects.filter(listed)),
        lambda: list(spent(first, last)),
    ):
        (plan,) = plans_of(rows)
        assert "hours_by_hour" in plan.indexes


def test_the_kept_strip_takes_one_query(django_assert_num_queries):
    create_and_add("a", MessageWindow(9), users("one"))
    keep()
    refresh()
    for split in ("", "policy"):
        with django_assert_num_queries(1):
            assert over_time(OverviewQuery(split=split)) is not None


def test_only_the_splits_that_are_offered_are_shown():
    create_and_add("a", MessageWindow(9), users("one"))
    keep()
    refresh()
    for split in ("label:nonsense", "nonsense"):
        found = over_time(OverviewQuery(split=split), at_once=True)
        assert found is not None
        assert found.strip.context["strip"].choices.split == "tenant"
