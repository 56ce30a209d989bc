"""The comparison of policies in a browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from chatmemory import AiMessage, MessageWindow, UserMessage, services

PHONE, DESK = {"width": 390, "height": 844}, {"width": 1440, "height": 900}
LOST = "/c/m/compare/?policy=message_window:2&policy=everything&at=3&phrase=A-1182&input=2.5"


def make_conversation() -> None:
    services.create("m", MessageWindow(2))
    orders = "A-1182 " + " ".join(f"B-{n}" for n in range(100, 109))
    said = [
        f"My orders are {orders}.",
        "Thank you.",
        "They have not come.",
        f"I look for {orders}.",
    ]
    services.add("m", [(UserMessage, AiMessage)[n % 2](text) for n, text in enumerate(said)])


@pytest.mark.parametrize("javascript", [True, False])
def test_from_a_lost_order_number_to_the_limit_in_two_clicks(
    open_page, demo_conversations, javascript
):
    make_conversation()
    page = open_page("/c/m/", javascript=javascript)
    page.get_by_role("link", name="Compare", exact=True).click()
    page.locator("#lost").get_by_role("link", name="A-1182").first.click()
    expect(page.locator(".lab__big")).to_have_text(
        "A limit of 3 messages still holds “A-1182” at #3."
    )
    page.get_by_role("link", name="One message on").click()
    expect(page.get_by_role("heading", name="Messages in memory after #4")).to_be_visible()
    page.get_by_role("button", name="Use this policy").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Send everything in m?")


def test_axe_finds_nothing_also_on_a_phone(
    open_page, demo_conversations, live_server, violations, violations_in_both_schemes
):
    make_conversation()
    page = open_page("/")
    for path in (LOST, "/c/order-7741/compare/?at=20"):
        page.goto(live_server.url + path)
        for size, find in ((DESK, violations_in_both_schemes), (PHONE, violations)):
            page.set_viewport_size(size)
            assert find(page) == [], (path, size)
            width = page.evaluate("document.documentElement.scrollWidth")
            assert width <= size["width"], (path, size)
