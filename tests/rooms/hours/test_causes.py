"""The sentences of causes on the first screen, each compared with an independent count."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from html import unescape
from zoneinfo import ZoneInfo

import pytest
from django.core.cache import cache
from django.test import override_settings

from benchmarks.first_screen import Clock
from chatmemory import (
    AiMessage,
    MessageWindow,
    TokenWindow,
    ToolExecutionResultMessage,
    UserMessage,
    services,
)
from chatmemory.inserted import NewMessage
from chatmemory.models import Memory, Stay, Step
from inspector.rooms.calls.call import NewCall, ReceivedAnswer, SentRequest, Source, Usage
from inspector.rooms.calls.writes import store
from inspector.rooms.doctor.choosing import choose_providers
from inspector.rooms.hours.figures import refresh

from ...conversations import call, create_and_add, keep, users
from ...messages.letters import CALL

pytestmark = [pytest.mark.django_db, pytest.mark.needs("evidence", "settings")]
NOW = datetime(2026, 11, 28, 14, 30, tzinfo=UTC)
FACT = "My order is A-1182."


@pytest.fixture
def clock() -> Iterator[Clock]:
    clock = Clock(NOW)
    with clock.set():
        yield clock


@pytest.fixture
def page(operator_client, clock):
    """The text of the first screen, after the derived rows were kept."""

    def read(address: str = "/") -> str:
        keep()
        refresh()
        cache.clear()
        return " ".join(operator_client.get(address).text.split())

    return read


def say(memory_id: str, *texts: str) -> None:
    services.add(memory_id, users(*texts))


def refused(name: str, **labels: str) -> None:
    services.create(name, MessageWindow(20), labels)
    services.add(name, [ToolExecutionResultMessage("1", "find", "x"), *users("well?")])


# Did it help


def repeated_until_the_limit_was_raised(clock: Clock, after: str = "fghij") -> None:
    """Write four conversations whose users repeat a number, with some messages `after` it, until
    the limit is raised.
    """
    for n in range(4):
        clock.at(9 - n / 10)
        services.create(f"acme/{n}", MessageWindow(3))
        say(f"acme/{n}", FACT, "b", "c", "d", f"As I said: A-1182, {n}.", *after)
        clock.at(6)
        services.change(f"acme/{n}", policy=MessageWindow(4))
        for days in (5, 4, 3, 2, 1):
            clock.at(days)
            say(f"acme/{n}", *(f"{days} {each}" for each in "klmn"))
    clock.at(0)


def turns_after_an_eviction(ids: list[str]) -> dict[bool, int]:
    """Count the turns after the first eviction, on each side of the change: straight from the
    history and the stays.
    """
    found = {False: 0, True: 0}
    for memory_id in ids:
        stays = Stay.objects.filter(memory=memory_id, left_step__isnull=False)
        first = min(stays.values_list("left_step", flat=True))
        changed = Step.objects.get(memory=memory_id, kind=Step.Kind.POLICY).n
        said = Stay.objects.filter(memory=memory_id, type="USER")
        for step in said.values_list("entered_step", flat=True):
            found[step > changed] += step > first
    return found


def lines(page: str) -> list[str]:
    """The titles of the causes of a page."""
    return [each.split(">")[1].split("<")[0] for each in page.split('class="cause__what"')[1:]]


def test_a_cause_closes_is_dismissed_and_comes_back(page, operator_client, clock):
    repeated_until_the_limit_was_raised(clock)
    turns = turns_after_an_eviction([f"acme/{n}" for n in range(4)])
    rate = 100 * 4 / turns[False]
    closed = (
        f"Closed: users repeated · {rate:.1f} cases per 100 turns before limit 4 messages of 22 "
        "Nov,"
        " 0.0 after"
    )
    assert turns[True] >= 50
    assert closed in page()
    assert not lines(page())
    operator_client.post("/mute/", {"flag": "user_repeated", "dismiss": "1"})
    assert "Closed:" not in page()
    clock.at(-0.2)
    clock.now += timedelta(hours=5)
    say("acme/0", FACT, "b", "c", "d", "e", "As I said: A-1182!")
    assert lines(page()) == ["Users repeated themselves, again"]


def test_a_cause_counts_one_conversation_in_the_singular(page, clock):
    services.create("acme/0", MessageWindow(4))
    say("acme/0", FACT, "b", "c", "d", "e", "As I said: A-1182!")
    assert " 1 conversation, first <b>" in page()


def test_a_closed_cause_says_when_it_has_too_few_turns_to_compare(page, clock):
    repeated_until_the_limit_was_raised(clock, after="")
    words = "no case for 2 days since limit 4 messages of 22 Nov"
    words += ", and too few turns before it to compare"
    assert f"Closed: users repeated · {words}" in page()


def test_a_closed_cause_stays_closed_when_its_line_is_gone(page, clock):
    repeated_until_the_limit_was_raised(clock)
    assert "Closed: users repeated" in page()
    for days in (8, 20):
        clock.now = NOW + timedelta(days=days)
        found = page()
        assert not lines(found), f"{days} days later"
        assert "Closed: users repeated" not in found


def test_a_cause_closes_by_its_own_cases(page, clock):
    choose_providers("", ["openai"])
    for n in range(3):
        clock.at(9)
        services.create(f"a/{n}", MessageWindow(3))
        services.add(f"a/{n}", [ToolExecutionResultMessage("1", "find", "x"), *users("well?")])
        services.create(f"b/{n}", MessageWindow(3))
        services.add(f"b/{n}", [*users("go"), call("1"), *users("well?")])
        clock.at(6)
        for tenant in "ab":
            services.change(f"{tenant}/{n}", policy=MessageWindow(2))
        for days in (5, 4, 3, 2, 1):
            clock.at(days)
            for tenant in "ab":
                say(f"{tenant}/{n}", *"klmno")
    clock.at(0.1)
    services.add("b/0", [call("2"), *users("well?")])
    clock.at(0)
    found = page()
    assert "Closed: rejected by OpenAI: a tool result without its tool call" in found
    assert "Rejected by OpenAI: a tool call without its result, again" in found


def test_a_foreign_conversation_that_gets_the_same_policy_changes_no_line(page, clock):
    repeated_until_the_limit_was_raised(clock)
    for n in range(3):
        clock.at(8)
        services.create(f"globex/{n}", MessageWindow(3))
        say(f"globex/{n}", *"abcdef")
    clock.at(0)

    def line() -> str:
        return page().partition("Closed: ")[2].partition("<")[0]

    before = line()
    clock.at(1)
    for n in range(3):
        services.change(f"globex/{n}", policy=MessageWindow(4))
    clock.at(0)
    assert before
    assert line() == before


def test_it_is_too_early_to_tell(page, clock):
    for n in range(4):
        clock.at(9)
        services.create(f"acme/{n}", MessageWindow(3))
        say(f"acme/{n}", FACT, "b", "c", "d", "As I said: A-1182.", "f", "g", "h", "i", "j", "k")
        clock.at(1.5)
        services.change(f"acme/{n}", policy=MessageWindow(4))
        clock.at(1)
        say(f"acme/{n}", "l")
    clock.at(0)
    assert "too early to tell if limit 4 messages of 27 Nov helped: 4 turns since" in page()


# Whose


def test_the_page_says_what_cases_have_in_common(page):
    choose_providers("", ["openai"])
    refused("x/0")
    refused("x/1")
    assert "data-cause" in page()
    assert "share no label" not in page(), "two cases are too few to compare"
    refused("x/2")
    assert "they share no label, model or policy" in page(), "all conversations are of x/"
    for n in range(4):
        services.create(f"y/{n}", MessageWindow(5))
        say(f"y/{n}", "hi")
    assert "<b>3 of 3 cases:</b> x/" in page()


def test_under_a_search_or_a_filter_no_link_has_a_count_of_another_set(page, operator_client):
    """A link of the page shows as many rows as its count says, whatever the list is."""
    choose_providers("", ["openai"])
    for n in range(5):
        name = f"shop/order-{n}" if n % 2 else f"bank/{n}"
        services.create(name, TokenWindow(12), {"team": "blue" if n < 3 else "green"})
        services.add(name, [UserMessage("hi"), CALL, UserMessage("too long " * 30)])
    create_and_add("calm", MessageWindow(3), users("an order"))
    for listed in ("", "q=order", "label=team:blue", "label=team:blue&q=order", "flagged=any"):
        page(f"/?{listed}")
        shown = operator_client.get(f"/?{listed}")
        found = [*counted_links(shown)]
        assert len(found) > 1, listed
        for href, count in found:
            assert operator_client.get(href).context["total"] == count, f"{href} from {listed}"
    offered = {chip.name for menu in shown.context["menus"] for chip in menu.chips}
    assert "label" in offered


def counted_links(page) -> Iterator[tuple[str, int]]:
    """The links to lists, each with the number beside its words: filters and causes."""
    for menu in page.context["menus"]:
        for chip in menu.chips:
            if chip.count is not None:
                yield f"/{chip.href}", chip.count
    text = unescape(" ".join(page.text.split()))
    for href, count in re.findall(r'class="cause__n" href="([^"]+)"[^>]*>([0-9]+)<', text):
        yield f"/{href}", int(count)
    quiet = r'class="link" href="([^"]+)" hx-get="[^"]+">[^<]+</a> · ([0-9]+) conversation'
    for href, count in re.findall(quiet, text):
        yield f"/{href}", int(count)


def test_labels_count_as_they_are_today(page, clock):
    choose_providers("", ["openai"])
    for n in range(9):
        clock.at(3)
        name = f"t/{n}"
        if n < 3:
            refused(name, release="1")
        else:
            services.create(name, MessageWindow(20), {"release": "1"})
            say(name, "hi")
    clock.at(0)
    assert "release 2" not in page()
    services.label([f"t/{n}" for n in range(3)], "release", "2")
    found = page()
    assert "<b>3 of 3 cases:</b> release 2" in found
    assert "label=release%3A2" in found, "the menu of labels offers the new value"


def test_the_cost_of_a_turn_counts_the_conversations_with_the_change(page, operator_client, clock):
    for n in range(12):
        clock.at(10 - n * 0.75)
        is_new = n >= 6
        services.create(f"n/{n}", MessageWindow(20), {"release": "2" if is_new else "1"})
        for _ in range(5):
            services.add(f"n/{n}", users("word " * (900 if is_new else 300)))
            services.add(f"n/{n}", [call("1"), ToolExecutionResultMessage("1", "f", "x")])
    clock.at(0)
    found = page()
    ours = Memory.objects.filter(labels__release="2").count()
    assert "Cost per turn ×" in found
    assert f"<b>{ours} of {ours} conversations:</b> n/" in found
    assert "release 2" in found
    assert "Cost per turn ×" in page("/?split=policy"), "a split of the strip hides no cause"
    answer = operator_client.post("/mute/", {"flag": "cost:n/"})
    assert answer.status_code == 302, answer.text
    found = page()
    assert "Cost per turn ×" not in found
    assert f"Muted by operator at {ours} conversations:" in found
    operator_client.post("/mute/", {"flag": "cost:n/", "undo": "1"})
    assert "Cost per turn ×" in page()
    assert operator_client.post("/mute/", {"flag": "cost:other/"}).status_code == 409


# Hours around midnight, and a change of the clock

BERLIN = ZoneInfo("Europe/Berlin")


@override_settings(TIME_ZONE="Europe/Berlin")
def test_days_and_hours_are_those_of_the_sites_clock(page, operator_client, clock):
    """On 25 October 2026 the clock goes back at 3:00: the hour from 2:00 comes twice."""
    clock.now = datetime(2026, 10, 25, 20, tzinfo=UTC)
    times = [
        datetime(2026, 10, 24, 21, 59, tzinfo=UTC),  # 23:59
        datetime(2026, 10, 24, 22, 1, tzinfo=UTC),  # 0:01
        datetime(2026, 10, 25, 0, 30, tzinfo=UTC),  # 2:30, summer time
        datetime(2026, 10, 25, 1, 30, tzinfo=UTC),  # 2:30 again
        datetime(2026, 10, 25, 19, 59, tzinfo=UTC),
    ]
    for n, at in enumerate(times):
        services.create(f"m{n}", MessageWindow(5))
        services.add(f"m{n}", [NewMessage(users("hi")[0], said_at=at)])
    page()

    def listed(day: str) -> set[str]:
        rows = operator_client.get(f"/?day={day}").context["rows"]
        return {row.memory.id for row in rows}

    for day in (24, 25):
        said = {f"m{n}" for n, at in enumerate(times) if at.astimezone(BERLIN).day == day}
        assert listed(f"2026-10-{day}") == said
    assert listed("2026-10-25T02") == {"m2", "m3"}
    strip = operator_client.get("/over-time/?span=24h").context["strip"].context["strip"]
    (turns,) = (cell for row, cells in strip.table for _, cell in cells if row.words == "Turns")
    first = datetime(2026, 10, 24, 21, tzinfo=UTC)
    assert [bar.left for bar in turns.bars] == [(at - first) // timedelta(hours=1) for at in times]
    assert (strip.first, strip.last) == ("23:00", "now")


def test_figures_of_yesterday_do_not_call_their_last_day_today(page, operator_client, clock):
    services.create("a", MessageWindow(5))
    say("a", "hi")
    assert "<span>today</span>" in page()
    clock.now = NOW + timedelta(days=1)
    cache.clear()
    found = " ".join(operator_client.get("/").text.split())
    assert "<span>28 Nov</span>" in found
    assert "<span>today</span>" not in found
    assert "<span>today</span>" in page()


def test_a_bar_leads_to_the_conversations_that_it_counts(page, operator_client, clock):
    choose_providers("", ["openai"])
    clock.at(3)
    refused("mended")
    refused("kept")
    clock.at(2)
    say("mended", *map(str, range(30)))
    say("kept", "later")
    clock.at(0)
    assert "flagged=refused&amp;day=2026-11-25" in page()
    rows = operator_client.get("/?flagged=refused&day=2026-11-25").context["rows"]
    assert {row.memory.id for row in rows} == {"mended", "kept"}
    assert not operator_client.get("/?flagged=refused&day=2026-11-26").context["rows"]
    rows = operator_client.get("/?flagged=refused").context["rows"]
    assert {row.memory.id for row in rows} == {"kept"}


def test_menus_offer_values_and_links_keep_them(page, operator_client):
    services.create("a/1", MessageWindow(5), {"team": "x"})
    services.create("a/2", MessageWindow(9), {"team": "y"})
    services.create("b/1", MessageWindow(9), {"team": "y"})
    for each in ("a/1", "a/2", "b/1"):
        say(each, "hi")
    page()
    found = operator_client.get("/")
    offered = {
        menu.name: [(chip.label, chip.count) for chip in menu.chips]
        for menu in found.context["menus"]
    }
    assert offered["Tenant"] == [("a/", 2), ("b/", 1)]
    assert offered["Label"] == [("team y", 2), ("team x", 1)]
    assert offered["Policy"] == [
        ("Message window", 3),
        ("limit 9 messages", 2),
        ("limit 5 messages", 1),
    ]
    assert offered["Any time"] == [("Active today", 3), ("Today", 3)]
    listed = operator_client.get("/?policy=message_window:9&tenant=a/")
    assert [row.memory.id for row in listed.context["rows"]] == ["a/2"]
    link = next(m for m in listed.context["menus"] if m.name == "Label").chips[0].href
    assert "policy=message_window%3A9" in link
    assert "tenant=a%2F" in link
    chips = {chip.label for chip in listed.context["query"].chips if chip.pressed}
    assert chips == {"Message window, limit 9", "a/"}


def test_what_is_not_examined_yet_is_said_with_the_time_left(operator_client, clock):
    for name in "abc":
        services.create(name, MessageWindow(5))
        say(name, "hi")
    keep("a")
    refresh()
    strip = " ".join(operator_client.get("/over-time/").text.split())
    assert "1 of 3 conversations examined, about 2 min left" in strip
    keep()
    refresh()
    assert "examined" not in " ".join(operator_client.get("/over-time/").text.split())


def test_tokens_are_from_recorded_calls_or_estimated_and_the_page_says_so(page, clock):
    for name in "ab":
        services.create(name, MessageWindow(5))
        services.add(name, [*users("one"), AiMessage("yes")])
    assert "tokens at the input price, estimated" in page()
    usage = Usage(input=2_000, cached=1_000)
    asked = {"model": "gpt-4o", "messages": [{"role": "user", "content": "one"}]}

    def record(name: str) -> None:
        new = NewCall(
            key=name,
            source=Source.RECORDER,
            format="openai_chat",
            provider="openai",
            model="gpt-4o",
            sent=SentRequest(asked),
            at=NOW,
            session=name,
            received=ReceivedAnswer(usage=usage),
        )
        store(new)

    record("a")
    assert "tokens at the input price, from recorded calls, else estimated" in page()
    record("b")
    found = page()
    assert "tokens at the input price, from recorded calls<" in found.replace(" </small>", "<")
    assert "2,000</b>" in found
    assert "1,500</b>" in found, "half of the prompt was read at half the price"
