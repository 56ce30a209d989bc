"""From one step at which messages left to the next, by keys and by buttons."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from chatmemory import MessageWindow, UserMessage, services

pytestmark = pytest.mark.usefixtures("demo_conversations")
PHONE = {"viewport": {"width": 390, "height": 844}}
BACK, ON = "Back to where messages left", "On to where messages left"


def at_step(page, step: int) -> None:
    expect(page.locator(".tape__step")).to_contain_text(f"Step {step}")


def asked(page) -> dict[str, list[str]]:
    """What the address of a page asks for."""
    return parse_qs(urlsplit(page.url).query)


@pytest.mark.parametrize("shown", ["", "msg", "find", "with", "trial"])
def test_the_brackets_go_there_whatever_is_shown_beside_the_step(open_page, shown):
    """Also while a message is selected, a phrase is searched, or messages are simulated."""
    trial = services.keep_trial("order-7741", [UserMessage("What if?")])
    chosen = {"": "", "msg": "26", "find": "A-1182", "with": "30", "trial": trial}[shown]
    page = open_page(f"/c/order-7741/?at=43&{shown}={chosen}")
    for key, step in (("[", 42), ("]", 43)):
        page.keyboard.press(key)
        at_step(page, step)
        page.wait_for_url(f"**at={step}**")
        assert asked(page) == {"at": [str(step)]} | ({shown: [chosen]} if shown else {})


def test_buttons_go_there_on_a_phone_and_without_javascript(open_page):
    page = open_page("/c/order-7741/?at=43&msg=26", javascript=False, **PHONE)
    for name, step in ((BACK, 42), (ON, 43)):
        page.get_by_role("link", name=name).click()
        at_step(page, step)
        assert asked(page) == {"at": [str(step)], "msg": ["26"]}
    page.goto(f"{page.url}&at=0")
    expect(page.get_by_role("link", name=BACK)).to_be_disabled()
    expect(page.get_by_role("link", name=ON)).to_be_enabled()


def test_the_line_for_more_that_left_looks_like_their_rows(open_page):
    services.create("block", MessageWindow(20, low_water="0.4"))
    services.add("block", [UserMessage(f"message {n}") for n in range(21)])
    evicted = open_page("/c/block/?at=21").locator("#just-evicted")
    style = "each => [getComputedStyle(each).color, getComputedStyle(each).paddingInlineStart]"
    more = evicted.get_by_text("and 8 more", exact=True)
    assert more.evaluate(style) == evicted.locator(".led").first.evaluate(style)
