"""The details of a conversation: comparison, widths, projector, forced colours, pins."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from chatmemory import MessageWindow, services

from ..conversations import create_and_add, numbered
from .menus import choose

pytestmark = pytest.mark.usefixtures("demo_conversations")
SIZES = [(1440, 900), (1280, 720), (1100, 800), (390, 844)]


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_a_comparison_is_in_view_and_stays_while_stepping(open_page, width, height):
    page = open_page("/c/order-7741/?at=43&with=30", viewport={"width": width, "height": height})
    compared = page.locator("[data-compared]")
    expect(compared).to_contain_text("Compared with step 30")
    assert compared.bounding_box()["y"] < height
    page.get_by_role("link", name="Step forward").click()
    expect(page.locator("[data-step]")).to_contain_text("44")
    expect(compared).to_contain_text("at step 44")
    assert "with=30" in page.url
    compared.get_by_role("link", name="Stop").click()
    expect(compared).to_have_count(0)


def test_why_is_beside_the_other_panes(open_page):
    page = open_page("/c/order-7741/?at=43&msg=25")
    for width in (1024, 1100, 1180):
        page.set_viewport_size({"width": width, "height": 800})
        expect(page.get_by_role("heading", name="Why did #25 leave?")).to_be_in_viewport()
        panes = [page.locator(f"[data-pane={name}]") for name in ("history", "memory")]
        boxes = [pane.bounding_box() for pane in panes]
        why = page.locator(".why").bounding_box()
        assert all(box["x"] + box["width"] <= why["x"] for box in boxes), width
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width


def test_the_line_of_a_redaction_wraps_within_its_pane(open_page):
    services.redact("order-7741", 25, actor="a-name-that-is-as-long-as-names-become@example.org")
    page = open_page("/c/order-7741/?msg=25")
    line, pane = page.locator(".why .flag"), page.locator(".why__body")
    for width in (1440, 390):
        page.set_viewport_size({"width": width, "height": 844})
        expect(line).to_contain_text("Redacted at step 59")
        boxes = line.bounding_box(), pane.bounding_box()
        assert boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"] + boxes[1]["width"], width
        assert pane.evaluate("pane => pane.scrollWidth <= pane.clientWidth"), width
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width


def test_forced_colours_tell_states_by_more_than_colour(open_page):
    page = open_page("/c/order-7741/?at=43&msg=25", forced_colors="active")

    def style(selector: str, name: str) -> str:
        return page.locator(selector).first.evaluate(
            "(element, name) => getComputedStyle(element)[name]", name
        )

    assert style(".said.is-sel", "outlineStyle") == "solid"
    assert style(".said.is-out .mark", "outlineStyle") == "dashed"
    assert style(".led.is-leaving .led__text", "textDecorationLine") == "line-through"
    assert style(".led.is-next .led__soon", "textDecorationLine") == "underline"


def text_size(page) -> float:
    return page.locator(".said__text").first.evaluate(
        "text => parseFloat(getComputedStyle(text).fontSize)"
    )


@pytest.mark.parametrize("javascript", [True, False])
def test_large_type_for_a_projector_stays_on(open_page, javascript):
    options = {"viewport": {"width": 1280, "height": 720}, "javascript": javascript}
    page = open_page("/c/order-7741/?at=43&msg=25", **options)
    before = text_size(page)
    arrival = page.expect_response("**/display/") if javascript else page.expect_navigation()
    with arrival:
        choose(page, "Large type")
    page.reload()
    assert text_size(page) >= before * 1.2
    expect(page.get_by_role("heading", name="Why did #25 leave?")).to_be_in_viewport()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_next_departures_are_hidden_until_they_are_revealed(open_page):
    page = open_page("/c/order-7741/?at=43")
    mark = page.get_by_text("first to leave", exact=True)
    expect(mark).to_be_visible()
    with page.expect_response("**/display/"):
        choose(page, "Show or hide messages that leave next")
    expect(mark).to_be_hidden()
    page.reload()
    expect(mark).to_be_hidden()
    with page.expect_response("**/display/"):
        choose(page, "Show or hide messages that leave next")
    expect(mark).to_be_visible()


def test_the_line_for_more_that_left_looks_like_their_rows(open_page):
    create_and_add(
        "block",
        MessageWindow(20, low_water="0.4"),
        numbered(21),
    )
    evicted = open_page("/c/block/?at=21").locator("#just-evicted")
    style = "each => [getComputedStyle(each).color, getComputedStyle(each).paddingInlineStart]"
    more = evicted.get_by_text("and 8 more messages", exact=True)
    assert more.evaluate(style) == evicted.locator(".led").first.evaluate(style)


def test_a_message_is_pinned_and_unpinned_in_place(open_page):
    create_and_add("m", MessageWindow(3), numbered(3))
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


def test_the_text_of_a_row_can_be_selected_and_a_click_chooses_the_message(
    open_page, demo_conversations
):
    page = open_page("/c/order-7741/?at=43")
    text = page.locator("#said-39 .said__text")
    text.dblclick(position={"x": 10, "y": 8})
    assert page.evaluate("getSelection().toString().trim()") == "Yes"
    page.evaluate("getSelection().removeAllRanges()")
    page.locator("#said-40 .said__text").click()
    expect(page.locator("#why")).to_contain_text("Why is #40 still in memory?")


def test_the_whole_text_of_a_row_is_copied(open_page, demo_conversations):
    page = open_page("/c/order-7741/?at=43")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator("#said-37").hover()
    page.locator("#said-37 .copy").click()
    expect(page.locator("[data-announce]")).to_have_text("Copied #37")
    assert page.evaluate("navigator.clipboard.readText()").startswith('{"policy": "late-delivery"')
