"""Nothing that was typed or chosen is lost, by real key presses."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from chatmemory import UserMessage
from chatmemory.reading import history

from .addresses import arrive

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("demo_conversations")]
PHONE = {"viewport": {"width": 390, "height": 844}}
TEXT = "Where is my parcel?"
NEUTRAL = "Preview shows what would leave, before anything is saved."


COUNT_RECOUNTS = """() => {
  window.recounts = 0;
  addEventListener("recount", () => window.recounts++);
}"""


def message(page):
    return page.get_by_role("textbox", name="Message")


def at_step(page, step: int | str):
    expect(page.locator(".tape__step")).to_contain_text(f"Step {step}")


def preview(page, text: str) -> None:
    drafts = page.locator(".draft").count()
    message(page).fill(text)
    page.get_by_role("button", name="Preview").click()
    expect(page.locator(".draft")).to_have_count(drafts + 1)


def find(page, phrase: str) -> None:
    page.get_by_role("searchbox", name="Does memory still have…?").fill(phrase)
    page.keyboard.press("Enter")
    arrive(page, "find=")


def test_a_text_outlives_steps_selections_searches_reload_and_back(open_page):
    page = open_page("/c/order-7741/?at=42")

    def still_there():
        expect(message(page)).to_have_value(TEXT)
        expect(page.get_by_role("radio", name="AI", exact=True)).to_be_checked()
        expect(page.locator("#written")).to_contain_text("tok")

    page.locator("label", has_text="AI").click()
    message(page).press_sequentially(TEXT)
    message(page).blur()
    page.keyboard.press("ArrowRight")
    at_step(page, 43)
    expect(page.locator("#said-43")).to_be_visible()  # the tape goes ahead of the panes
    still_there()
    page.keyboard.press("k")
    arrive(page, "msg=43")
    still_there()
    find(page, "A-1182")
    still_there()
    page.keyboard.press("g")
    page.keyboard.press("l")
    at_step(page, "58 of 58")
    still_there()
    page.reload()
    still_there()
    page.go_back()
    at_step(page, 43)
    still_there()


def test_a_text_is_gone_when_it_was_previewed_or_added(open_page):
    page = open_page("/c/order-7741/")
    verdict, written = page.locator("#verdict"), page.locator("#written")
    expect(verdict).to_have_text(NEUTRAL)
    preview(page, TEXT)
    expect(message(page)).to_have_value("")
    preview(page, "And the saucers?")
    expect(message(page)).to_have_value("")
    page.reload()
    expect(message(page)).to_have_value("")
    page.get_by_role("link", name="Discard").click()
    expect(page.locator(".draft")).to_have_count(0)
    message(page).fill(TEXT)
    expect(written).to_have_text("9 tok")
    expect(verdict).not_to_have_text(NEUTRAL)
    page.get_by_role("button", name="Add", exact=True).click()
    at_step(page, "59 of 59")
    expect(message(page)).to_have_value("")
    expect(verdict).to_have_text(NEUTRAL)
    expect(written).to_be_empty()


@pytest.mark.parametrize("javascript", [True, False], ids=["HTMX", "plain"])
def test_a_long_text_is_previewed_and_added(open_page, between_requests, javascript):
    """The composer sends more than a url-encoded form may have."""
    page = open_page("/c/order-7741/", javascript=javascript)
    text = "a parcel;" * 30_000
    preview(page, text)
    page.get_by_role("link", name="Discard").click()
    message(page).fill(text)
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator(".tape__step")).to_contain_text("Step 59 of 59")
    with between_requests:
        assert history.all_messages("order-7741")[-1] == UserMessage(text)


def test_the_verdict_follows_the_text_and_never_takes_the_focus(open_page):
    page = open_page("/c/order-7741/?at=42")
    message(page).press_sequentially(TEXT)
    expect(page.locator("#verdict")).to_contain_text("Would evict 1 message: #25.")
    expect(page.locator("#written")).to_have_text("9 tok")
    expect(message(page)).to_be_focused()
    message(page).press_sequentially(" Please!")
    expect(page.locator("#written")).to_have_text("11 tok")
    expect(message(page)).to_have_value(f"{TEXT} Please!")
    page.locator("label", has_text="Script").click()
    expect(page.locator("#verdict")).to_contain_text("The first line must begin with")
    page.get_by_role("radio", name="Script").blur()
    page.keyboard.press("ArrowLeft")
    at_step(page, 41)
    expect(page.locator("#verdict")).to_contain_text("The first line must begin with")


def test_the_verdict_is_that_of_the_step(open_page):
    page = open_page("/c/order-7741/?at=43")
    message(page).press_sequentially(TEXT)
    expect(page.locator("#verdict")).to_contain_text("Fits")
    message(page).blur()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#verdict")).to_contain_text("Would evict")


def test_a_simulation_outlives_steps_selections_searches_reload_and_back(open_page):
    page = open_page("/c/order-7741/?at=42")
    preview(page, TEXT)
    preview(page, "And the saucers?")

    def still_there(step: int):
        expect(page.get_by_text(f"Simulation from step {step}.")).to_be_visible()
        expect(page.locator(".draft")).to_have_count(2)
        expect(page.locator(".said.is-draft").last).to_contain_text("And the saucers?")

    page.keyboard.press("ArrowLeft")
    still_there(41)
    page.reload()
    still_there(41)
    page.get_by_role("button", name="Why? #30").first.click()
    expect(page.get_by_role("heading", name="Why is #30 still in memory?")).to_be_visible()
    still_there(41)
    find(page, "A-1182")
    still_there(41)
    page.go_back()
    expect(page.get_by_role("heading", name="Why is #30 still in memory?")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("heading", name="What would the drafts push out?")).to_be_visible()
    still_there(41)
    page.go_back()
    still_there(42)
    page.go_back()
    expect(page.locator(".draft")).to_have_count(1)


def test_drafts_are_explained_edited_and_removed(open_page, violations):
    page = open_page("/c/order-7741/?at=42")
    preview(page, TEXT)
    preview(page, "And the saucers?")
    message(page).fill("a third, unfinished")
    page.get_by_role("link", name="draft 1", exact=True).click()
    expect(page.get_by_role("heading", name="Why is draft 1 in memory?")).to_be_visible()
    assert violations(page) == []
    page.get_by_role("link", name="Edit draft 2").click()
    expect(message(page)).to_have_value("And the saucers?")
    message(page).fill("And the mugs?")
    page.get_by_role("button", name="Change draft 2").click()
    expect(page.locator(".draft").last).to_contain_text("And the mugs?")
    expect(message(page)).to_have_value("a third, unfinished")
    page.get_by_role("button", name="Remove draft 1").click()
    expect(page.locator(".draft")).to_have_count(1)
    expect(page.locator(".draft")).to_contain_text("And the mugs?")
    expect(message(page)).to_have_value("a third, unfinished")


@pytest.mark.parametrize("options", [{}, {"javascript": False}, PHONE])
def test_edit_leads_to_the_text_of_the_draft(open_page, options):
    page = open_page("/c/order-7741/?at=42", **options)
    message(page).click()
    preview(page, TEXT)
    page.get_by_role("link", name="Edit draft 1").click()
    expect(message(page)).to_be_focused()
    page.get_by_role("link", name="draft 1", exact=True).click()
    page.locator(".why").get_by_role("link", name="Edit").click()
    expect(message(page)).to_be_focused()
    if options.get("javascript", True):
        page.keyboard.type("!")
        expect(message(page)).to_have_value(f"{TEXT}!")


def test_edit_is_pressed_on_a_phone_whether_the_composer_is_open_or_not(open_page):
    page = open_page("/c/order-7741/?at=42", **PHONE)
    message(page).click()
    preview(page, TEXT)
    for is_open in (True, False):
        message(page).focus() if is_open else message(page).blur()
        expect(page.get_by_role("button", name="Preview")).to_be_visible(visible=is_open)
        page.get_by_role("link", name="Edit draft 1").click()
        expect(page.get_by_role("button", name="Change draft 1")).to_be_visible()
        page.get_by_role("link", name="Cancel").click()
        expect(message(page)).to_have_value("")


def test_script_stays_chosen_and_shows_its_syntax(open_page):
    page = open_page("/c/order-7741/?at=42")
    script, syntax = page.get_by_role("radio", name="Script"), page.get_by_text("call: find(")
    expect(syntax).to_be_hidden()
    page.locator("label", has_text="Script").click()
    expect(syntax).to_be_visible()
    message(page).fill("user: one\nai: two")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator(".draft")).to_have_count(2)
    expect(message(page)).to_have_value("")
    expect(script).to_be_checked()
    page.get_by_role("link", name="Discard").click()
    expect(page.locator(".draft")).to_have_count(0)
    expect(script).to_be_checked()
    page.locator("label", has_text="User").click()
    page.reload()
    expect(page.get_by_role("radio", name="User")).to_be_checked()
    expect(syntax).to_be_hidden()


@pytest.mark.parametrize("javascript", [True, False])
def test_an_edited_draft_keeps_its_first_line_break(open_page, javascript):
    page = open_page("/c/order-7741/?at=42", javascript=javascript)
    preview(page, "\n\nBelow two empty lines")
    page.get_by_role("link", name="Edit draft 1").click()
    expect(message(page)).to_have_value("\n\nBelow two empty lines")
    page.get_by_role("button", name="Change draft 1").click()
    expect(message(page)).to_have_value("")
    page.get_by_role("link", name="Edit draft 1").click()
    expect(message(page)).to_have_value("\n\nBelow two empty lines")


def test_the_reason_for_a_refusal_stays_until_something_is_typed(reader, served):
    """Also of a text that is too long to be counted while it is written."""
    served.create("oversized")
    page = reader("/c/oversized/")
    verdict = page.locator("#verdict")
    page.locator("label", has_text="Script").click()
    message(page).fill("user: " + "word " * 8_500 + "\nuser: x" * 1_001)
    expect(verdict).to_contain_text("Press Preview to count a text of this length.")
    page.evaluate(COUNT_RECOUNTS)
    for button in ("Preview", "Add"):
        page.get_by_role("button", name=button, exact=True).click()
        expect(verdict).to_contain_text("1,002 messages are more than 1,000 at a time")
    assert page.evaluate("recounts") == 0
    message(page).press("End")
    message(page).press_sequentially("!")
    expect(verdict).to_contain_text("Press Preview to count a text of this length.")


def test_the_verdict_on_a_text_comes_even_after_an_id_was_refused(reader, served):
    served.create("taken")
    page = reader("/c/taken/")
    preview(page, TEXT)
    message(page).fill("one more")
    expect(page.locator("#verdict")).to_contain_text("Fits")
    page.get_by_label("ID of the new conversation").fill("taken")
    page.get_by_role("button", name="Save as a new conversation").click()
    expect(page.get_by_role("alert").filter(has_text="already exists")).to_be_visible()
    expect(message(page)).to_have_value("one more")
    expect(page.locator("#written")).to_have_text("6 tok")
    expect(page.get_by_role("button", name="Add", exact=True)).to_be_visible()


def test_escape_closes_what_is_on_top(open_page):
    page = open_page("/c/order-7741/?at=43")
    preview(page, TEXT)
    find(page, "A-1182")
    page.locator(".pane--history .hit").first.click()
    arrive(page, "msg=")
    page.keyboard.press("?")
    expect(page.get_by_role("heading", name="Keyboard")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", name="Keyboard")).to_be_hidden()
    arrive(page, "msg=")
    message(page).focus()
    page.keyboard.press("Escape")
    expect(message(page)).not_to_be_focused()
    arrive(page, "msg=")
    page.keyboard.press("Escape")
    expect(page).not_to_have_url(re.compile("msg="))
    arrive(page, "find=")
    page.keyboard.press("Escape")
    expect(page).not_to_have_url(re.compile("find="))
    expect(page.get_by_text("Simulation from step 43.")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_text("Simulation from step 43.")).to_be_hidden()
    page.go_back()
    expect(page.get_by_text("Simulation from step 43.")).to_be_visible()


def test_escape_leaves_the_search_of_the_top_bar(open_page):
    page = open_page("/c/order-7741/?at=43&msg=25")
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox", name="Find a conversation")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#main")).to_be_focused()
    arrive(page, "msg=25")
    page.keyboard.press("ArrowLeft")
    at_step(page, 42)


def test_arrows_in_radios_choose_and_do_not_step(open_page):
    page = open_page("/c/order-7741/?at=43")
    page.get_by_role("radio", name="User").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("radio", name="AI", exact=True)).to_be_checked()
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("radio", name="User")).to_be_checked()
    at_step(page, 43)
    message(page).blur()
    page.get_by_role("radio", name="User").blur()
    page.keyboard.press("ArrowLeft")
    at_step(page, 42)


def test_the_focus_goes_to_the_answer(open_page):
    page = open_page("/c/order-7741/?at=43")
    find(page, "A-1182")
    expect(page.get_by_role("heading", name="Does memory still have “A-1182”?")).to_be_focused()
    expect(page.locator("[data-announce]")).to_contain_text("forgotten at this step")
    page.keyboard.press("Escape")
    preview(page, TEXT)
    expect(page.get_by_role("heading", name="What would the draft push out?")).to_be_focused()
    expect(page.locator("[data-announce]")).to_contain_text("draft would arrive")


# Focuses and scrolls to everything, and asks all that holds panes to scroll.
STUCK = """() => {
  const elements = [...document.querySelectorAll("html, body, body *")];
  for (const element of elements) {
    element.scrollIntoView();
    if (element.matches("a, button, input, textarea, [tabindex]")) element.focus();
  }
  const holds = elements.filter((element) => element.querySelector("[data-pane]"));
  for (const element of holds) element.scrollTop = 500;
  return holds.filter((element) => element.scrollTop).map((element) => element.tagName);
}"""


@pytest.mark.parametrize("query", ["?at=43&msg=25", "?find=parcel", "#m25", "#composer"])
def test_no_page_ends_scrolled(open_page, query):
    page = open_page(f"/c/order-7741/{query}", viewport={"width": 1280, "height": 720})
    for width, height in ((1280, 720), (1440, 900)):
        page.set_viewport_size({"width": width, "height": height})
        assert page.evaluate(STUCK) == []
        assert page.evaluate("[scrollX, scrollY]") == [0, 0]
        assert page.locator(".topbar").bounding_box()["y"] == 0


def test_a_phone_writes_previews_edits_and_removes(open_page, violations):
    page = open_page("/c/order-7741/?at=42", **PHONE)
    message(page).click()
    message(page).press_sequentially(TEXT)
    expect(page.locator("#verdict")).to_contain_text("Would evict")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator(".draft")).to_be_in_viewport()
    expect(page.get_by_role("button", name="Preview")).to_be_in_viewport(ratio=1)
    expect(page.locator(".tape__legend dd").first).to_contain_text("tok")
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    for name in ("Edit draft 1", "Remove draft 1"):
        box = page.locator(f"[aria-label='{name}']").bounding_box()
        assert min(box["width"], box["height"]) >= 40
    page.get_by_role("link", name="Edit draft 1").click()
    expect(message(page)).to_have_value(TEXT)
    message(page).fill("Never mind.")
    page.get_by_role("button", name="Change draft 1").click()
    expect(page.locator(".draft")).to_contain_text("Never mind.")
    page.get_by_role("button", name="Remove draft 1").click()
    expect(page.locator(".draft")).to_have_count(0)


def test_a_simulation_without_javascript(open_page):
    page = open_page("/c/order-7741/?at=42", javascript=False)
    preview(page, TEXT)
    page.get_by_role("link", name="Step back").click()
    expect(page.get_by_text("Simulation from step 41.")).to_be_visible()
    page.get_by_role("link", name="Edit draft 1").click()
    expect(message(page)).to_have_value(TEXT)
    message(page).fill("Never mind.")
    page.get_by_role("button", name="Change draft 1").click()
    expect(page.locator(".draft")).to_contain_text("Never mind.")
    page.get_by_role("button", name="Remove draft 1").click()
    expect(page.locator(".draft")).to_have_count(0)
    page.get_by_role("link", name="Live").first.click()
    preview(page, TEXT)
    page.get_by_role("button", name="Add", exact=True).click()
    at_step(page, "59 of 59")


def test_enter_in_the_limit_of_a_simulation_previews_it(open_page):
    page = open_page("/c/order-7741/?at=42")
    preview(page, TEXT)
    before = page.url
    page.get_by_role("spinbutton", name="Limit").fill("300")
    page.keyboard.press("Enter")
    expect(page.locator("#pagehead .chip")).to_contain_text("300")  # the answer has arrived
    expect(page).not_to_have_url(before)
    expect(page.locator("#simbar")).to_contain_text("Simulation from step 42")
    expect(page.get_by_role("spinbutton", name="Limit")).to_have_value("300")
    arrive(page, r"/c/order-7741/\?.*trial=")
    page.get_by_label("ID of the new conversation").fill("saved-by-enter")
    page.keyboard.press("Enter")
    arrive(page, "/c/saved-by-enter/")
