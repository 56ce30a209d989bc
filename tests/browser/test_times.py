"""Times of the history in a browser: where they are seen, and the box that goes to one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import expect

from chatmemory import MessageWindow, services
from chatmemory.models import Step
from chatmemory.services import NewMessage

from ..conversations import numbered
from .addresses import arrive

pytestmark = pytest.mark.long
PHONE = {"width": 390, "height": 844}
START = datetime(2026, 11, 24, 23, 40, 7, tzinfo=UTC)


@pytest.fixture
def conversation(transactional_db) -> str:
    """Six messages at intervals of five minutes; the last one comes after an hour."""
    times = [START + timedelta(minutes=n) for n in (0, 5, 10, 15, 20, 80)]
    services.create("c", MessageWindow(3))
    said = zip(numbered(6), times, strict=True)
    services.add("c", [NewMessage(message, said_at=at) for message, at in said])
    for n, at in enumerate(times, 1):
        Step.objects.filter(memory_id="c", n=n).update(at=at)
    return "/c/c/"


def visible_times(page) -> list[str]:
    """The times in the history that are seen."""
    return page.locator("#said time").evaluate_all(
        """times => times
          .filter(each => each.checkVisibility({opacityProperty: true}))
          .map(each => each.textContent)"""
    )


DAYS = ["24 November 2026 UTC", "25 November 2026 UTC"]
QUIET = [DAYS[0], "23:40:07", DAYS[1], "01:00:07"]


def test_a_time_shows_where_one_points_or_has_the_focus(open_page, conversation):
    page = open_page(conversation)
    assert visible_times(page) == QUIET
    page.locator("#said-3").hover()
    assert visible_times(page) == [*QUIET[:2], "23:50:07", *QUIET[2:]]
    page.mouse.move(1, 1)
    page.locator("#said-2 .hit").focus()
    assert visible_times(page) == [*QUIET[:2], "23:45:07", *QUIET[2:]]
    page.keyboard.press("Enter")
    arrive(page, r"msg=2$")
    assert "23:45:07" in visible_times(page)


@pytest.mark.parametrize("color_scheme", ["light", "dark"])
def test_no_row_grows_where_its_time_shows(open_page, conversation, color_scheme):
    page = open_page(conversation, color_scheme=color_scheme)
    row = page.locator("#said-2")
    before = row.bounding_box()
    row.hover()
    assert row.bounding_box() == before


def test_a_phone_shows_the_times_of_the_selected_message(open_page, conversation):
    page = open_page(f"{conversation}?msg=2", viewport=PHONE)
    page.get_by_text("History", exact=True).first.click()
    page.mouse.move(1, 1)
    assert visible_times(page) == [*QUIET[:2], "23:45:07", *QUIET[2:]]
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.locator("#tape-when summary").click()
    box = page.locator("#tape-when form").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390


@pytest.mark.parametrize("javascript", [True, False])
def test_a_time_is_gone_to(open_page, conversation, javascript):
    page = open_page(f"{conversation}?find=message+1", javascript=javascript)
    page.locator("#tape-when summary").click()
    time = page.get_by_label("Go to a time, UTC")
    expect(time).to_have_value("2026-11-25T01:00:07")
    time.fill("2026-11-24T23:52:09")
    page.get_by_role("button", name="Go", exact=True).click()
    arrive(page, r"\?find=message\+1&at=3$")
    expect(page.locator(".tape__step")).to_contain_text("Step 3 of 6")
    expect(page.locator("#tape-when form")).to_be_hidden()


def test_the_box_opens_and_closes_by_keys_and_follows_the_step(open_page, conversation):
    page = open_page(f"{conversation}?at=4")
    summary, time = page.locator("#tape-when summary"), page.locator("#go-to-time")
    summary.focus()
    page.keyboard.press("Space")
    expect(time).to_have_value("2026-11-24T23:55:07")
    page.get_by_role("link", name="Step back", exact=True).click()
    expect(time).to_have_value("2026-11-24T23:50:07")
    time.focus()
    page.keyboard.press("Escape")
    expect(time).to_be_hidden()
    expect(summary).to_be_focused()
