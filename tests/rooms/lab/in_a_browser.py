"""The lab in a browser: it computes by itself, adopts what it suggests, and fits a phone."""

from __future__ import annotations

from playwright.sync_api import expect

from chatmemory import MessageWindow, SystemMessage, TokenWindow, UserMessage
from chatmemory.messages.message import AiMessage
from chatmemory.reading import conversations
from inspector.rooms.lab import writes
from inspector.rooms.lab.addresses import FleetAddress
from tests.conversations import create_and_add

PHONE, DESK = {"width": 390, "height": 844}, {"width": 1440, "height": 900}
PRICES = "provider=own&input=2.5&cached=0.25"


def long_session(n: int) -> list:
    said = [SystemMessage("Be kind."), UserMessage(f"The order is A-{n}182.")]
    for turn in range(20):
        said += [UserMessage(f"B-{n}{turn} " + "and then " * 100), AiMessage(f"B-{n}{turn} done")]
    return said


def fill() -> None:
    for n in range(4):
        create_and_add(f"long-{n}", TokenWindow(1_500), long_session(n))


def test_it_computes_by_itself_and_adopts_what_it_suggests(open_page):
    fill()
    page = open_page(f"/lab/?prefix=long-&{PRICES}")
    expect(page.locator(".bill__big")).to_contain_text("Set the limit to ")
    expect(page.locator("progress")).to_have_count(0)
    page.get_by_role("button", name="Preview the change").click()
    page.get_by_role("button", name="Change 4 policies").click()
    expect(page.locator(".bill__big")).to_contain_text("Keep 250")
    assert conversations.policy("long-0") != TokenWindow(1_500)


def test_it_works_without_javascript(open_page):
    fill()
    page = open_page(f"/lab/?prefix=long-&{PRICES}", javascript=False)
    compute = page.get_by_role("button", name="Compute")
    while compute.is_visible():  # each press computes for a moment
        compute.click()
    expect(page.locator(".bill__big")).to_contain_text("Set the limit to ")
    page.locator(".fold > summary").first.click()
    page.get_by_role("link", name="Anthropic, 5 min").click()
    expect(page.locator(".bill__bar")).to_contain_text("Anthropic, 5 min")


def test_axe_finds_nothing_also_on_a_phone(open_page, violations, violations_in_both_schemes):
    fill()
    create_and_add("shop/1", MessageWindow(2), long_session(7))
    while writes.compute_figures(FleetAddress.read({"input": "2.5"}).query, 60):
        pass
    page = open_page("/lab/?input=2.5")
    expect(page.locator(".bill__plot")).to_be_visible()
    for size, find in ((DESK, violations_in_both_schemes), (PHONE, violations)):
        page.set_viewport_size(size)
        page.locator(".fold > summary").first.click()
        assert find(page) == [], size
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"], size
