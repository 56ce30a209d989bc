"""The title of a page says what it shows, however the reader came there."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.usefixtures("demo_conversations")


def entitled(page, title: str) -> None:
    """Waits until a page has this title."""
    expect(page).to_have_title(f"{title} · Memory inspector")


def test_the_title_names_the_selected_message_on_each_way_to_it(open_page):
    page = open_page("/c/order-7741/?at=42&msg=26")
    entitled(page, "order-7741, #26")
    page.keyboard.press("j")
    entitled(page, "order-7741, #27")
    page.keyboard.press("j")
    entitled(page, "order-7741, #28")
    page.keyboard.press("ArrowRight")
    expect(page).to_have_url(re.compile("at=43"))
    entitled(page, "order-7741, #28")
    page.keyboard.press("Escape")
    entitled(page, "order-7741")
    page.go_back()
    entitled(page, "order-7741, #28")
    page.reload()
    entitled(page, "order-7741, #28")
    page.get_by_role("link", name="Conversations").first.click()
    entitled(page, "Conversations")


def test_a_saved_simulation_has_the_title_of_its_own_conversation(open_page):
    page = open_page("/c/order-7741/?at=42")
    page.get_by_role("textbox", name="Message").fill("Where is my parcel?")
    page.get_by_role("button", name="Preview").click()
    page.get_by_role("button", name="Save as a new conversation").click()
    expect(page).to_have_url(re.compile("/c/order-7741-from-42/$"))
    entitled(page, "order-7741-from-42")


def test_a_filtered_overview_keeps_its_title(open_page):
    page = open_page("/")
    page.get_by_role("searchbox").fill("order-7741")
    expect(page).to_have_url(re.compile("q=order-7741"))
    entitled(page, "Conversations")
