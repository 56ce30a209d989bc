"""The card of an incident in a browser: by one click, keyboard, copied, on a phone, without JS."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from chatmemory import MessageWindow, services
from tests.conversations import create_and_add, users

PHONE = {"width": 390, "height": 844}
# What is copied is kept where a test can read it: the clipboard of a machine belongs to others.
KEEP = """() => Object.defineProperty(navigator, "clipboard", {
  value: {writeText: async (text) => { window.copied = text; }},
})"""


def make_incidents() -> None:
    texts = "A-1182, B-7788", "well", "well", "A-1182!", "well", "well", "B-7788!"
    texts += ("well", "well", "A-1182?")
    create_and_add("twice", MessageWindow(2), users(*texts))
    services.keep("twice")


@pytest.mark.parametrize("javascript", [True, False])
def test_the_report_of_the_demo_leads_to_its_card(open_page, demo_conversations, javascript):
    make_incidents()
    page = open_page("/", javascript=javascript)
    page.get_by_role("link", name="order-7741").first.click()
    expect(page.locator(".report__say")).to_contain_text("The user had to repeat A-1182 in #47")
    page.get_by_role("link", name="Show incident").click()
    card = page.locator("#incident")
    expect(card).to_contain_text("A-1182 had to be repeated by the user")
    expect(card).to_contain_text(
        "A limit of 902 tokens would have kept it in memory (today’s limit is 800)."
    )
    card.get_by_role("link", name="#25").click()
    expect(page.get_by_role("heading", name="Why did #25 leave?")).to_be_visible()
    assert "at=47" in page.url
    page.go_back()
    page.locator("#incident").get_by_role("link", name="step 43").click()
    expect(page.locator("[data-step]")).to_contain_text("43")


@pytest.mark.parametrize("javascript", [True, False])
def test_one_leafs_and_stays_at_the_step(open_page, demo_conversations, javascript):
    make_incidents()
    page = open_page("/c/twice/?at=10", javascript=javascript)
    nav = page.locator(".incident__nav")
    expect(nav).to_contain_text("1 of 3")
    page.get_by_role("link", name="Older incident").click()
    expect(nav).to_contain_text("2 of 3")
    page.get_by_role("link", name="Older incident").click()
    expect(nav).to_contain_text("3 of 3")
    expect(page.get_by_role("link", name="Older incident")).to_have_count(0)
    expect(page.locator("[data-step]")).to_contain_text("10")
    page.get_by_role("link", name="Newer incident").click()
    expect(nav).to_contain_text("2 of 3")


def test_keys_leaf_and_the_focus_stays(open_page, demo_conversations):
    make_incidents()
    page = open_page("/c/twice/?at=10")
    page.get_by_role("link", name="Older incident").focus()
    for shown in ("2 of 3", "3 of 3"):
        page.keyboard.press("Enter")
        expect(page.locator(".incident__nav")).to_contain_text(shown)
    inside = "document.activeElement.closest('[data-pane=why]') !== null"
    assert page.evaluate(inside)


def test_its_link_and_its_markdown_are_copied(open_page, demo_conversations):
    make_incidents()
    page = open_page("/c/order-7741/?incident=1")
    page.evaluate(KEEP)
    page.get_by_role("link", name="Copy link").click()
    expect(page.get_by_role("link", name="Copied")).to_be_visible()
    assert page.evaluate("copied").endswith("/c/order-7741/?at=47")
    assert page.url.endswith("/c/order-7741/?incident=1")
    page.get_by_role("button", name="Copy as Markdown").click()
    expect(page.locator("[data-id='markdown incident'] button")).to_have_text("Copied")
    lines = page.evaluate("copied").splitlines()
    assert lines[0] == "**A-1182 had to be repeated by the user**"
    assert "- A limit of 902 tokens would have kept it in memory (today’s limit is 800)." in lines
    assert "| Now 55 tokens over the limit | 855 |" in lines
    assert lines[-1].endswith("/c/order-7741/?at=47>")
    assert lines[-1].startswith("<http://")
    page.get_by_role("link", name="Copy report").click()
    expect(page.locator("[data-copy-report]")).to_have_text("Copied")
    sentence, address = page.evaluate("copied").splitlines()
    assert sentence.startswith(
        "The user had to repeat A-1182 in #47: #46 asked for it. #25 said it"
    )
    assert address.endswith("/c/order-7741/?at=47")


def test_without_javascript_the_link_leads_to_the_card_and_the_markdown_can_be_read(
    open_page, demo_conversations
):
    make_incidents()
    page = open_page("/c/order-7741/?incident=1", javascript=False)
    page.locator("[data-id='markdown incident'] summary").click()
    text = page.get_by_label("Markdown")
    expect(text).to_have_value(re.compile(r"^\*\*A-1182 had to be repeated by the user\*\*"))
    expect(page.locator("[data-id='markdown incident'] button")).to_be_hidden()
    expect(page.locator("[data-copy-report]")).to_be_hidden()
    page.get_by_role("link", name="Copy link").click()
    expect(page.locator("#incident")).to_contain_text("A-1182 had to be repeated by the user")
    assert page.url.endswith("?at=47")


def test_a_replay_is_tried_and_left_again(open_page, demo_conversations):
    make_incidents()
    page = open_page("/c/order-7741/?at=46&limit=902")
    expect(page.locator("#simbar")).to_contain_text("Replay of step 46 with a limit of 902")
    expect(page.locator("#kept-26")).to_be_visible()
    expect(page.locator("#composer")).to_have_count(0)
    page.locator("#kept-26 .hit").click()
    expect(page.get_by_role("heading", name="Why is #26 still in memory?")).to_be_visible()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#simbar")).to_contain_text("Replay of step 47 with a limit of 902")
    page.get_by_role("link", name="Back to what happened").click()
    expect(page.locator("#simbar")).to_have_count(0)
    expect(page.get_by_role("heading", name="Why did #26 leave?")).to_be_visible()


@pytest.mark.parametrize("javascript", [True, False])
def test_on_a_phone_the_card_is_in_view(open_page, demo_conversations, javascript):
    make_incidents()
    page = open_page("/c/order-7741/?at=47", javascript=javascript, viewport=PHONE)
    expect(
        page.get_by_role("heading", name="A-1182 had to be repeated by the user")
    ).to_be_in_viewport()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_label("Memory", exact=True).first.check(force=True)
    expect(page.locator("#kept-47")).to_be_visible()


@pytest.mark.parametrize("path", ["/c/twice/?at=10&incident=2", "/c/order-7741/?at=46&limit=902"])
def test_axe_finds_nothing(open_page, demo_conversations, violations_in_both_schemes, path):
    make_incidents()
    assert violations_in_both_schemes(open_page(path)) == []
