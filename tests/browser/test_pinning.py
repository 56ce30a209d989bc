"""A message is pinned by one click or one key, and what that displaces is said before."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from chatmemory import MessageWindow, UserMessage, services

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_message_is_pinned_and_unpinned_in_place(open_page):
    services.create("m", MessageWindow(3))
    services.add("m", [UserMessage(f"message {n}") for n in range(3)])
    page = open_page("/c/m/?msg=1")
    expect(page.locator("#pin-words")).to_contain_text("#2 would leave next, not #1.")
    row = page.locator("#kept-1")
    page.get_by_role("button", name="Pin #1").click()
    expect(page.locator("[data-step]")).to_contain_text("4")
    expect(row).to_contain_text("pinned")
    expect(page.get_by_text("Message #1 was pinned.").first).to_be_visible()
    expect(page.get_by_role("button", name="Unpin #1")).to_be_visible()
    page.locator("#main").focus()
    page.keyboard.press("p")
    expect(page.locator("[data-step]")).to_contain_text("5")
    expect(row).not_to_contain_text("pinned")
    page.keyboard.press("j")
    page.get_by_role("button", name="Pin #2").click()
    expect(page.locator("#kept-2")).to_contain_text("pinned")
    expect(row).not_to_contain_text("pinned")
