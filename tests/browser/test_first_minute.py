"""The first minute by keyboard, on a phone, without JavaScript, and for axe."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.usefixtures("demo_conversations")
PHONE = {"width": 390, "height": 844}


def test_the_tour_is_walked_by_keyboard_and_ended_for_good(open_page, violations):
    page = open_page("/", toured=False)
    assert violations(page) == []
    page.get_by_role("link", name="Start the tour").press("Enter")
    band = page.locator("#guide")
    for name in ("What was said", "What the model saw", "Why it asked again"):
        expect(band.get_by_role("heading")).to_have_text(name)
        assert violations(page) == []
        if name != "Why it asked again":
            band.get_by_role("link", name="Next").press("Enter")
    page.go_back()
    expect(band.get_by_role("heading")).to_have_text("What the model saw")
    page.go_forward()
    expect(band.get_by_role("heading")).to_have_text("Why it asked again")
    band.get_by_role("button", name="End tour").press("Enter")
    expect(band).to_have_count(0)
    page.get_by_role("link", name="Memory inspector").click()
    expect(page.locator("#conversation-table")).to_be_visible()


def test_on_a_phone_without_javascript_a_stop_selects_its_tab(open_page, violations):
    page = open_page("/", toured=False, javascript=False, viewport=PHONE)
    page.get_by_role("link", name="Start the tour").click()
    for pane in ("History", "Memory", "Why?"):
        expect(page.get_by_role("radio", name=pane)).to_be_checked()
        if pane != "Why?":
            page.locator("#guide").get_by_role("link", name="Next").click()
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= PHONE["width"]


@pytest.mark.parametrize("path", ["/calls/", "/doctor/", "/doctor/error/", "/?q=order+number"])
def test_axe_finds_nothing_on_new_pages(open_page, violations_in_both_schemes, path):
    page = open_page(path)
    assert violations_in_both_schemes(page) == []
    page.set_viewport_size(PHONE)
    assert violations_in_both_schemes(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_a_menu_closes_with_escape_and_with_a_click_elsewhere(open_page):
    page = open_page("/calls/")
    menu, name = page.locator(".topbar__end .menu"), page.locator(".topbar__end .menu > summary")
    name.press("Enter")
    expect(menu.get_by_role("button", name="Large type")).to_be_visible()
    page.keyboard.press("Escape")
    expect(menu.get_by_role("button", name="Large type")).to_be_hidden()
    expect(name).to_be_focused()
    name.click()
    page.locator("main").click(position={"x": 5, "y": 300})
    expect(menu.get_by_role("button", name="Large type")).to_be_hidden()
