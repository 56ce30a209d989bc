"""The newest calls in a browser: axe finds nothing, and the keyboard reaches days and models."""

from __future__ import annotations

from dataclasses import replace

from django.utils import timezone
from playwright.sync_api import expect

from inspector.rooms.calls.writes import store

from .test_pages import ANSWERS, LISTS, a_call

PHONE = {"width": 390, "height": 844}


def test_the_newest_calls_have_no_fault_and_filter_by_keyboard(
    open_page, transactional_db, violations_in_both_schemes
):
    for n, (messages, answer) in enumerate(zip(LISTS, ANSWERS, strict=True), 1):
        store(replace(a_call(n, messages, answer), at=timezone.now()))
    page = open_page("/calls/")
    assert violations_in_both_schemes(page) == []
    page.get_by_role("link", name="gpt-4o").first.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="Show all models")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("link", name="Show all models")).to_be_hidden()
    page.set_viewport_size(PHONE)
    assert violations_in_both_schemes(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
