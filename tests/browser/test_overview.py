"""The overview moves as conversations change, and keeps what its reader has chosen."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from chatmemory import MessageWindow, TokenWindow, UserMessage, services
from chatmemory.ledger import protocol
from inspector.overview import causes

from ..connecting import connected_to
from ..conversations import create_and_add, users

PAGE = 25
CROWD = 28
SECONDS_IDLE = 30  # without a change, a page asks so seldom
ROUNDS = 5
SECONDS_KEPT = 40  # headline numbers are counted anew after half a minute at the latest


@pytest.fixture(scope="session")
def crowd(shared_server, django_db_blocker) -> None:
    """More conversations than a page shows: crowd-00 is the oldest, and stays it."""
    with django_db_blocker.unblock(), connected_to(shared_server.environment["DATABASE_URL"]):
        for n in range(CROWD):
            create_and_add(f"crowd-{n:02}", MessageWindow(3), users("one"))


def row(page, memory_id: str):
    return page.locator(f"[data-rows] tr[data-id='{memory_id}']")


def order(page) -> list[str]:
    return page.locator("[data-rows] tr").evaluate_all("rows => rows.map(row => row.dataset.id)")


def test_a_row_and_the_numbers_move(reader, served):
    served.create("move-a")
    served.create("move-b")
    served.say("move-a", "one", "two", "three")
    served.say("move-b", "one")
    page = reader("/?q=move-")
    expect(page.locator("[data-rows] tr").first).to_contain_text("move-b")
    served.say("move-a", "the fourth")
    expect(row(page, "move-a")).to_contain_text("the fourth")
    expect(page.locator("[data-rows] tr").first).to_contain_text("move-a")
    left = page.locator('[data-leaving] [data-id="move-a"]')
    expect(left).to_contain_text("1 message left", timeout=SECONDS_KEPT * 1000)


def test_numbers_that_lack_the_last_change_are_counted_again_soon(
    open_page, between_requests, transactional_db, monkeypatch
):
    monkeypatch.setattr(causes, "LEAST_SECONDS", 2)
    create_and_add("counted", MessageWindow(1), [UserMessage("one")])
    page = open_page("/")
    forgotten = page.locator("[data-found]")
    with between_requests:
        services.add("counted", [UserMessage("two")])
    page.reload()
    expect(forgotten).to_contain_text("1 message left memory", timeout=SECONDS_IDLE * 500)


def test_a_new_conversation_appears_and_is_counted(reader, served):
    served.create("come-a", "one")
    page = reader("/?q=come-")
    expect(page.get_by_text("1 of 1 conversation")).to_be_visible()
    served.create("come-b", "one")
    expect(row(page, "come-b")).to_be_visible()
    expect(page.get_by_text("2 of 2 conversations")).to_be_visible()
    page.locator("summary", has_text="Policy").click()
    expect(page.get_by_role("button", name=re.compile("Message window 2"))).to_be_visible()


def test_a_deletion_removes_the_row_and_is_asked_for_once(reader, served):
    for name in ("erased-a", "erased-b"):
        served.create(name, "one")
    page = reader("/?q=erased-")
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    page.clock.install()
    served.api.delete(f"{served.url}/api/v1/memories/erased-b/").raise_for_status()
    expect(row(page, "erased-b")).to_have_count(0)
    asked, answered = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("requestfinished", lambda request: answered.append(request.url))
    for _ in range(ROUNDS):
        page.clock.fast_forward(SECONDS_IDLE * 1000 // (ROUNDS + 1))
        page.evaluate("null")  # what is asked now is known then
        while len(answered) < len(asked):
            page.wait_for_event("requestfinished")
    assert len(asked) <= 1  # headline numbers that lacked the last change are asked for once more


def test_rows_in_use_change_where_they_are(reader, served):
    for name in ("hold-a", "hold-b", "hold-c"):
        served.create(name, "one")
    page = reader("/?q=hold-")
    page.get_by_role("checkbox", name="Select hold-b").check()
    row(page, "hold-c").get_by_role("link").first.focus()
    served.say("hold-a", "moved on")
    expect(row(page, "hold-a")).to_contain_text("moved on")
    assert order(page) == ["hold-c", "hold-b", "hold-a"]
    expect(page.get_by_role("checkbox", name="Select hold-b")).to_be_checked()
    expect(row(page, "hold-c").get_by_role("link").first).to_be_focused()
    page.get_by_role("button", name="Clear").click()
    served.say("hold-a", "and again")
    expect(page.locator("[data-rows] tr").first).to_contain_text("hold-a")


def test_a_later_page_keeps_its_rows(reader, served, crowd):
    page = reader("/?q=crowd-")
    page.get_by_role("link", name="Older").click()
    expect(page.locator("[data-rows] tr")).to_have_count(CROWD - PAGE)
    before = order(page)
    served.say("crowd-01", "moved on")
    expect(row(page, "crowd-01")).to_contain_text("moved on")
    assert order(page) == before


def test_the_keyboard_walks_from_conversation_to_conversation(reader, served):
    for name in ("walk-a", "walk-b", "walk-c"):
        served.create(name, "one")
    page = reader("/?q=walk-")
    for key in "jjk":
        page.keyboard.press(key)
    expect(row(page, "walk-c").get_by_role("link").first).to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="walk-b")).to_be_visible()


HEIGHTS = "rows => new Set(rows.map(row => Math.round(row.getBoundingClientRect().height))).size"


@pytest.mark.parametrize("width", [390, 760, 1440])
def test_what_was_found_takes_one_line_more_than_the_name(open_page, transactional_db, width):
    labels = {"team": "returns and complaints", "channel": "telephone", "tier": "gold"}
    for name, given in (("meta-a", {}), ("meta-b", labels)):
        create_and_add(name, MessageWindow(3), users("metaphors", "and more"), given)
    page = open_page("/?q=metaphor", viewport={"width": width, "height": 900})
    expect(page.locator("[data-rows] .label")).to_have_count(len(labels))
    assert page.locator("[data-rows] tr").evaluate_all(HEIGHTS) == 1
    assert row(page, "meta-b").bounding_box()["height"] < {390: 110}.get(width, 70)


def test_the_order_is_chosen_beside_the_search(open_page, transactional_db):
    for n in range(10):
        services.create(f"message-{n}", MessageWindow(3))
        services.create(f"token-{n}", TokenWindow(30))
    protocol.update_messages("client", [UserMessage("hello")])
    page = open_page("/")
    expect(page.locator(".filters__more p .filter")).to_have_count(4)
    parts = page.locator(".filters .field, .filters__more summary, #sort")
    assert len({round(part.bounding_box()["y"]) for part in parts.all()}) == 1
    search = page.get_by_role("searchbox", name="Search conversations")
    search.fill(search.get_attribute("placeholder"))
    assert search.evaluate("box => box.scrollWidth <= box.clientWidth"), "it is read whole"


def test_typed_text_is_left_alone(reader, served):
    served.create("typed", "one")
    page = reader("/?q=typed")
    box = page.get_by_role("searchbox")
    box.focus()
    served.say("typed", "moved on")
    expect(row(page, "typed")).to_contain_text("moved on")
    expect(box).to_be_focused()
    expect(box).to_have_value("typed")


def test_the_first_match_of_a_filter_brings_the_table(reader, served):
    served.create("first")
    page = reader("/?q=not+yet")
    expect(page.get_by_text("No conversation matches the search and filters.")).to_be_visible()
    served.say("first", "not yet said until now")
    expect(page.locator("[data-rows] tr mark")).to_have_text("not yet")


def test_the_feed_shows_what_leaves_anywhere(reader, served):
    served.create("feeding", "anywhere", "two", "three")
    page = reader("/")
    feed = page.locator("[data-feed]")
    expect(feed.get_by_text("live", exact=True)).to_be_visible()
    expect(feed).not_to_contain_text("“anywhere”")
    served.say("feeding", "four")
    expect(feed.locator(".is-new")).to_contain_text("“anywhere”")
    expect(page.locator("[data-announce]")).to_have_text("1 message left memory")


def test_the_feed_quotes_nothing_that_was_redacted(reader, served):
    served.create("hushed", "my card number", "two", "three")
    page = reader("/")
    feed = page.locator("[data-feed]")
    served.say("hushed", "four")
    expect(feed.locator(".is-new")).to_contain_text("“my card number”")
    redaction = f"{served.url}/api/v1/memories/hushed/messages/1/redact/"
    served.api.post(redaction).raise_for_status()
    expect(feed).not_to_contain_text("my card number")
    expect(feed.locator(".is-new")).to_contain_text("#1")  # it is marked until another one leaves


def test_the_feed_quotes_nothing_of_a_deleted_conversation(reader, served):
    """Also where it was the only one that matched, and the table goes."""
    served.create("gone-y", "soon gone", "two", limit=1)
    page = reader("/?q=gone-y")
    feed = page.locator("[data-feed]")
    expect(feed).to_contain_text("“soon gone”")
    served.api.delete(f"{served.url}/api/v1/memories/gone-y/").raise_for_status()
    expect(page.get_by_text("No conversation matches the search and filters.")).to_be_visible()
    expect(feed).not_to_contain_text("soon gone")


def test_a_paused_feed_waits(reader, served):
    served.create("paused", "one", "waiting", "three", "four")
    page = reader("/")
    page.get_by_role("button", name="Pause live updates").click()
    with page.expect_event("requestfinished", predicate=lambda r: "/now/" in r.url) as asked:
        served.say("paused", "five")
        page.get_by_role("button", name="Resume live updates").click()
    assert asked.value.method == "GET"
    expect(page.locator("[data-feed] .is-new")).to_contain_text("“waiting”")


def test_a_choice_stays_over_pages_and_reload(reader, crowd):
    page = reader("/?q=crowd-")
    page.get_by_role("checkbox", name="Select crowd-27").check()
    expect(page.get_by_text("1 selected", exact=True)).to_be_visible()
    page.get_by_role("link", name="Older").click()
    page.get_by_role("checkbox", name="Select crowd-00").check()
    expect(page.get_by_text("2 selected, 1 on other pages")).to_be_visible()
    page.reload()
    expect(page.get_by_role("checkbox", name="Select crowd-00")).to_be_checked()
    page.get_by_label("Label to add, as name:value").fill("team:blue")
    page.get_by_role("button", name="Add label", exact=True).click()
    page.get_by_role("searchbox").fill("team:blue")
    expect(page.locator("[data-rows] tr")).to_have_count(2)
    assert sorted(order(page)) == ["crowd-00", "crowd-27"]


def test_a_choice_says_what_a_new_search_does_not_show(reader, crowd):
    page = reader("/?q=crowd-")
    page.get_by_role("checkbox", name="Select crowd-27").check()
    page.get_by_role("checkbox", name="Select crowd-26").check()
    page.get_by_role("searchbox").fill("crowd-27")
    expect(page.locator("[data-rows] tr")).to_have_count(1)
    expect(page.get_by_text("2 selected, 1 not in this search", exact=True)).to_be_visible()
    page.get_by_role("button", name="Delete 2…").click()
    expect(page.get_by_text("1 of these conversations is not in this search")).to_be_visible()
    expect(page.get_by_text("crowd-26 · 1 message · not in this search")).to_be_visible()


def test_everything_that_matches_is_chosen_and_exported_by_one_press(reader, crowd):
    page = reader("/?q=crowd-")
    page.get_by_role("checkbox", name="Select all on this page").check()
    expect(page.get_by_text(f"{PAGE} selected", exact=True)).to_be_visible()
    page.get_by_role("checkbox", name=f"All {CROWD} conversations that match").check()
    expect(page.get_by_text(f"All {CROWD} selected")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("button", name="Export").click()
    assert len(download.value.path().read_text().splitlines()) == CROWD
