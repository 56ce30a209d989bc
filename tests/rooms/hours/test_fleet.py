"""The first screen, the strip and the figures of a whole fleet, by an independent count."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from django.core.cache import cache
from django.utils import timezone

from benchmarks import first_screen
from chatmemory import MessageWindow, services
from chatmemory.explain.wording import counted
from chatmemory.flags import flag_named
from chatmemory.models import Memory, Message, Step
from inspector.overview.causes import counted_headlines
from inspector.overview.selection import OverviewQuery
from inspector.rooms.doctor.choosing import choose_providers
from inspector.rooms.hours.figures import computed, kept, refresh
from inspector.rooms.hours.models import KeptFigures

from ...conversations import call, keep, users
from .test_first_screen import page_of


def make_fleet(now: datetime) -> None:
    choose_providers("", ["openai"])
    first_screen.fill(now, share=0.12)
    keep()
    refresh()


@pytest.fixture(scope="module")
def lasting_fleet(django_db_setup, django_db_blocker, images) -> Iterator[None]:
    """A fleet as of noon, so that what began an hour ago began today."""
    clock = first_screen.Clock(timezone.now().replace(hour=12))
    make = lambda: make_fleet(clock.now)  # noqa: E731
    with django_db_blocker.unblock(), clock.set(), images.lasting("the first screen", make):
        yield


@pytest.fixture(autouse=True)
def fleet(lasting_fleet, db) -> None:
    """The same fleet for each test, whose changes are rolled back."""


def test_each_question_is_answered_by_one_look(operator_client):
    page = page_of(operator_client)
    cases = Memory.objects.filter(flag_named("refused").where)
    ours = [each for each in cases if each.pk.startswith("hooli/")]
    assert {each.labels["release"] for each in ours} == {"4.2.0"}
    assert f"<b>{len(ours)} of {cases.count()} cases:</b> hooli/" in page
    assert "release 4.2.0" in page
    first = min(Step.objects.filter(memory__in=ours, n=2).values_list("at", flat=True))
    assert f"{first:%H:%M} today" in page
    assert "Over time" in page
    assert "2026.48" in page


def test_the_strip_counts_what_was_said(operator_client):
    values = kept({"tenant"})["tenant"].values
    said = Message.objects.filter(
        type="USER", said_at__gte=datetime.fromtimestamp(values["days"][0], UTC)
    )
    counted = Counter(
        memory_id.partition("/")[0] + "/" for (memory_id,) in said.values_list("memory")
    )
    for name, group in values["groups"].items():
        turns = sum(each[0] for each in group["days"])
        assert turns == (sum(counted.values()) if name == "\0all" else counted[name])
    assert values["groups"]["\0all"]["size"] == Memory.objects.count()
    assert list(values["groups"]["hooli/"]["change"])[1] == "4.2.0"


def test_a_filter_keeps_its_chips_and_has_its_own_strip(operator_client):
    page = operator_client.get("/?tenant=hooli/&flagged=refused")
    assert {row.memory.id.partition("/")[0] for row in page.context["rows"]} == {"hooli"}
    assert "tenant=hooli" in page.context["query"].link(sort="said")
    assert "/over-time/?" in page.text
    strip = operator_client.get("/over-time/?tenant=hooli/&span=24h")
    assert "4.2.0" in strip.text
    assert "globex" not in strip.text
    today = f"{Memory.objects.get(pk='hooli/parcel-00').updated_at:%Y-%m-%d}"
    listed = operator_client.get(f"/?tenant=hooli/&day={today}").context["rows"]
    assert len(listed) == Memory.objects.filter(id__startswith="hooli/").count()
    assert not operator_client.get("/?day=2020-01-01").context["rows"]
    assert not operator_client.get("/?day=nonsense").context["rows"]


def test_a_change_of_a_foreign_policy_changes_no_line_of_the_page(operator_client):
    def lines() -> list[str]:
        refresh()
        cache.clear()
        found = counted_headlines(0)
        return [each.told.effect for each in found.causes] + [
            each.told.effect for each in found.closed
        ]

    before = lines()
    services.change("globex/chat-000", policy=MessageWindow(7))
    services.change("initech/chat-000", policy=MessageWindow(7))
    keep()
    assert lines() == before


def test_a_filter_shows_the_figures_of_its_group():
    for split, name, query in (
        ("tenant", "acme/", OverviewQuery(tenant="acme/")),
        ("label:release", "2026.48", OverviewQuery(label="release:2026.48")),
        ("policy", "token_window:3000", OverviewQuery(policy="token_window:3000")),
    ):
        group = kept({split})[split].values["groups"][name]
        found = computed("tenant", query.which.rows())
        assert found is not None
        whole = found.values["groups"]["\0all"]
        assert group["size"]
        assert any(each[0] for each in group["days"])
        assert [whole[each] for each in ("size", "days", "hours")] == [
            group[each] for each in ("size", "days", "hours")
        ]


def test_a_filter_needs_no_hours(django_assert_num_queries):
    with django_assert_num_queries(2):
        assert computed("tenant", OverviewQuery(tenant="acme/").which.rows())


def test_the_kept_figures_have_no_ids():
    contents = "".join(KeptFigures.objects.values_list("content", flat=True))
    assert not any(each in contents for each in Memory.objects.values_list("pk", flat=True))


def test_a_bar_and_its_list_have_the_same_number_of_cases(operator_client):
    services.create("acme/twice", MessageWindow(3))
    for _ in range(2):
        services.add("acme/twice", [*users("a"), call("1"), *users("b")])
        services.add("acme/twice", users("c", "d", "e"))
    keep()
    refresh()
    several = 0
    values = kept({"tenant"})["tenant"].values
    for name, group in values["groups"].items():
        tenant = "" if name == "\0all" else name
        for start, column in zip(values["days"], group["days"], strict=True):
            for flag, number in column[3].items():
                day = f"{datetime.fromtimestamp(start, UTC):%Y-%m-%d}"
                query = OverviewQuery(flagged=flag, day=day, tenant=tenant)
                assert query.cases == number
                several += number > (query.total or 0)
    assert several, "a conversation has two cases on a day"
    query = OverviewQuery(flagged="refused", day=f"{timezone.localdate():%Y-%m-%d}")
    cases, total = query.cases, query.total
    listed = page_of(operator_client, f"/{query.query}")
    assert f"{counted(cases, 'case')} in {counted(total, 'conversation')}" in listed


def test_costs_are_in_money_only_where_the_site_has_given_prices(operator_client, settings):
    def amounts() -> list[str]:
        return re.findall("≈ ([^ <]*)", page_of(operator_client))

    assert amounts() == []
    settings.INSPECTOR = {**settings.INSPECTOR, "PRICES": {"*": "€20"}}
    whole = kept({"tenant"})["tenant"].values["groups"]["\0all"]
    cost = [each[2] for each in whole["days"] if each[2]][-1]
    assert f"€{cost / 1_000 * 20 / 1_000_000:.4f}" in amounts()
    settings.INSPECTOR = {**settings.INSPECTOR, "PRICES": {"gpt-4o": "€20"}}
    assert amounts() == [], "the models are not known"
