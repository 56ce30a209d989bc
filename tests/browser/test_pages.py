from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from chatmemory import MessageWindow, SystemMessage

from ..conversations import create_and_add
from .addresses import arrive
from .menus import choose

pytestmark = pytest.mark.usefixtures("demo_conversations")
PHONE = {"viewport": {"width": 390, "height": 844}}
LIGHT, DARK = "rgb(255, 255, 255)", "rgb(21, 26, 25)"
# How many colours and sizes are on their way to others.
FADING = "() => document.getAnimations().filter(each => each instanceof CSSTransition).length"
FORGOTTEN = "/c/order-7741/?at=43&msg=25"
PAGES = ["/", "/?q=nothing+at+all", "/c/order-7741/", FORGOTTEN, "/c/order-7741/?at=0"]


def surface(page) -> str:
    """The colour that the top bar is painted with."""
    return page.locator(".topbar").evaluate("bar => getComputedStyle(bar).backgroundColor")


def entitled(page, title: str) -> None:
    """Waits until a page has this title."""
    expect(page).to_have_title(f"{title} · Memory inspector")


def test_hidden_elements_are_hidden_while_styles_load(open_page):
    page = open_page("/", javascript=False)
    page.route("**/pages.css", lambda route: route.fulfill(content_type="text/css", body=""))
    page.goto(page.url + "c/order-7741/")
    expect(page.get_by_text("live", exact=True)).to_be_hidden()


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_stepping_swaps_the_page_and_the_address(open_page, motion):
    page = open_page("/c/order-7741/?at=42", reduced_motion=motion)
    page.get_by_role("link", name="Step forward").click()
    expect(page.locator(".tape__say")).to_contain_text("4 messages left")
    assert page.url.endswith("/c/order-7741/?at=43")
    page.get_by_role("link", name="Step back").click()
    arrive(page, r"\?at=42$")
    page.go_back()
    expect(page.locator(".tape__step")).to_contain_text("Step 43")


def test_everything_works_without_javascript(open_page):
    page = open_page("/", javascript=False)
    page.get_by_role("searchbox").fill("A-1182")
    page.get_by_role("button", name="Search").click()
    expect(page.locator(".convs tbody tr")).to_have_count(1)
    page.get_by_role("link", name="order-7741").first.click()
    page.get_by_role("link", name="Step back").click()
    expect(page.locator(".tape__step")).to_contain_text("Step 57")
    choose(page, "Change theme")
    assert page.locator("html").get_attribute("data-theme") == "dark"


def test_searching_as_one_types(open_page):
    page = open_page("/")
    page.get_by_role("searchbox").press_sequentially("lisbon")
    expect(page.locator(".convs tbody tr")).to_have_count(1)
    expect(page.get_by_role("searchbox")).to_be_focused()
    assert "q=lisbon" in page.url
    entitled(page, "Conversations")


def test_the_keyboard_moves_through_steps_and_messages(open_page):
    page = open_page("/c/order-7741/?at=43")
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".tape__step")).to_contain_text("Step 42")
    arrive(page, r"\?at=42$")  # the playhead moves ahead of the panes
    page.keyboard.press("ArrowRight")
    arrive(page, r"\?at=43$")
    expect(page.locator("[data-caption]")).to_contain_text("#43 arrived")
    expect(page.locator("#said-43")).to_be_visible()
    page.keyboard.press("k")
    expect(page.get_by_role("heading", name="Why is #43 still in memory?")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", name="Step 43", exact=True)).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("heading", name="Keyboard")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("Shift+ArrowLeft")
    expect(page.locator(".tape__step")).to_contain_text("Step 33")
    page.keyboard.press("g")
    page.keyboard.press("l")
    expect(page.locator(".tape__step")).to_contain_text("Step 58")


def test_the_theme_follows_the_system_until_it_is_chosen(open_page):
    page = open_page("/", color_scheme="dark")
    assert surface(page) == DARK
    page.emulate_media(color_scheme="light")
    assert surface(page) == LIGHT
    assert page.evaluate(FADING) == 0
    page.emulate_media(color_scheme="dark")
    with page.expect_response("**/theme/"):
        choose(page, "Change theme")
    assert surface(page) == LIGHT
    page.reload()
    assert surface(page) == LIGHT


def test_a_phone_shows_one_pane_at_a_time(open_page):
    page = open_page("/c/order-7741/?at=43", **PHONE)
    expect(page.locator(".pane--memory")).to_be_visible()
    expect(page.locator(".pane--history")).to_be_hidden()
    page.get_by_text("History", exact=True).first.click()
    expect(page.locator(".pane--history")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_label("Step forward").click()
    expect(page.locator(".tape__step")).to_contain_text("Step 44")
    expect(page.locator(".pane--history")).to_be_visible()


def test_a_phone_opens_what_was_asked(open_page):
    page = open_page("/c/order-7741/?at=43", **PHONE)
    page.get_by_text("History", exact=True).first.click()
    page.get_by_role("searchbox", name="Does memory still have…?").fill("A-1182")
    page.keyboard.press("Enter")
    expect(page.get_by_text("At step 43: no").first).to_be_visible()
    page.get_by_text("History", exact=True).first.click()
    expect(page.locator(".said.is-hit").last).to_be_in_viewport()
    page.locator(".said.is-hit .hit").last.click()
    expect(page.get_by_role("heading", name="Why did #28 leave?")).to_be_visible()


@pytest.mark.parametrize(
    ("query", "pane"),
    [
        ("", "memory"),
        ("?incident=1", "why"),
        ("?at=30", "memory"),
        ("?msg=2", "why"),
        ("?find=parcel", "why"),
        ("?before=9", "history"),
    ],
)
def test_a_phone_without_javascript_opens_what_was_asked(open_page, query, pane):
    page = open_page(f"/c/order-7741/{query}", javascript=False, **PHONE)
    for name, each in (("history", ".pane--history"), ("memory", ".pane--memory"), ("why", ".why")):
        expect(page.locator(each)).to_be_visible(visible=name == pane)


@pytest.mark.parametrize("path", PAGES)
def test_axe_finds_nothing_also_on_a_phone(open_page, violations, violations_in_both_schemes, path):
    page = open_page(path)
    assert violations_in_both_schemes(page) == []
    page.set_viewport_size(PHONE["viewport"])
    assert violations(page) == []


def test_axe_finds_nothing_where_memory_has_one_row(open_page, violations):
    create_and_add("one", MessageWindow(4), [SystemMessage("Be brief.")])
    page = open_page("/c/one/")
    assert violations(page) == []
    searches = page.get_by_role("search").evaluate_all("all => all.map(each => each.ariaLabel)")
    assert searches == ["All conversations", "Search this conversation"]


def test_axe_finds_nothing_in_help_and_in_large_type(open_page, violations):
    page = open_page("/c/order-7741/settings/", viewport={"width": 1100, "height": 800})
    choose(page, "Keyboard shortcuts")
    expect(page.locator("#keys")).to_be_visible()
    assert violations(page) == []
    page.goto(page.url.replace("settings/", "?at=43"))
    choose(page, "Large type")
    expect(page.locator("html")).to_have_attribute("data-type", "large")
    assert violations(page) == []
    heads = page.locator(".pane__head")
    assert heads.evaluate_all("all => all.every(each => each.scrollWidth <= each.clientWidth)")


def test_a_phone_chooses_conversations(open_page, violations):
    page = open_page("/", **PHONE)
    page.get_by_role("checkbox", name="Select order-7741").check()
    expect(page.get_by_role("button", name="Export")).to_be_in_viewport(ratio=1)
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_api_page_needs_nothing_from_elsewhere_is_readable_and_leads_back(open_page, contrasts):
    page = open_page("/api/docs/")
    expect(page.get_by_text("/api/v1/memories/", exact=False).first).to_be_visible()
    page.locator(".opblock-summary-control").first.click()
    expect(page.get_by_role("button", name="Try it out")).to_be_visible()
    assert contrasts(page, ["light", "dark"]) == []
    page.get_by_role("link", name="Conversations").click()
    expect(page.locator("table.convs")).to_be_attached()


def test_several_conversations_are_labelled_and_deleted(open_page, violations):
    page = open_page("/?q=order")
    expect(page.get_by_role("button", name="Delete…")).to_be_hidden()
    page.get_by_role("checkbox", name="Select order-7741").check()
    assert violations(page) == []
    page.get_by_label("Label to add, as name:value").fill("team:blue")
    page.get_by_role("button", name="Add label", exact=True).click()
    assert page.url.endswith("/?q=order")
    page.goto(page.url.replace("?q=order", ""))
    page.get_by_role("checkbox", name="Select all on this page").check()
    with page.expect_download() as download:
        page.get_by_role("button", name="Export").click()
    assert download.value.suggested_filename == "conversations.jsonl"
    page.get_by_role("button", name="Delete 4…").click()
    expect(page.get_by_role("heading", name="Delete 4 conversations?")).to_be_visible()
    assert violations(page) == []
    page.get_by_role("button", name="Delete 4").click()
    expect(page.get_by_role("heading", name="No conversations yet")).to_be_visible()


def test_several_conversations_are_deleted_without_javascript(open_page):
    page = open_page("/", javascript=False)
    page.get_by_role("checkbox", name="Select classroom").check()
    page.get_by_role("button", name="Delete…").click()
    page.get_by_role("button", name="Delete").click()
    expect(page.locator(".convs tbody tr")).to_have_count(3)


def test_a_conversation_prints_whole_light_and_without_controls(open_page):
    page = open_page(FORGOTTEN, color_scheme="dark")
    with page.expect_response("**/theme/"):
        choose(page, "Change theme")
    page.reload()
    with page.expect_response("**/theme/"):
        choose(page, "Change theme")
    assert surface(page) == DARK
    page.emulate_media(media="print")
    assert surface(page) == LIGHT
    for gone in (".topbar", ".composer", ".tape__bar .joined", ".find", ".why .tabs"):
        expect(page.locator(gone).first).to_be_hidden()
    for pane in (".pane--history .pane__body", ".pane--memory .pane__body", ".why__body"):
        clipped = "pane => pane.scrollHeight > pane.clientHeight + 1"
        assert not page.locator(pane).evaluate(clipped)
    expect(page.get_by_role("heading", name="Why did #25 leave?")).to_be_visible()


def test_playing_moves_on_until_something_is_pressed(open_page):
    page = open_page("/c/classroom/?at=14")
    expect(page.get_by_role("button", name="Play").locator("svg:visible")).to_have_count(1)
    page.get_by_label("Speed").select_option("4")
    page.get_by_role("button", name="Play").click()
    arrive(page, r"\?at=17$")
    page.goto(page.url.replace("at=17", "at=2"))
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    expect(page.locator(".tape__step")).to_contain_text("Step 3")
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    page.goto(page.url.partition("?")[0])
    page.get_by_role("button", name="Play").click()  # at the end it begins anew
    expect(page.locator("[data-step]")).to_have_text(re.compile(r"Step\s+\d\s+of\s+17"))


def test_the_scrubber_goes_to_a_step(open_page):
    page = open_page("/c/order-7741/")
    page.get_by_role("slider", name="Step").focus()
    page.keyboard.press("Home")
    arrive(page, r"\?at=0$")
    expect(page.locator(".tape__step")).to_contain_text("Step 0 of 58")
    expect(page.get_by_role("slider", name="Step")).to_be_focused()


def test_the_title_names_the_selected_message_on_each_way_to_it(open_page):
    page = open_page("/c/order-7741/?at=42&msg=26")
    entitled(page, "order-7741, #26")
    page.keyboard.press("j")
    entitled(page, "order-7741, #27")
    page.keyboard.press("j")
    entitled(page, "order-7741, #28")
    page.keyboard.press("ArrowRight")
    arrive(page, "at=43")
    entitled(page, "order-7741, #28")
    page.keyboard.press("Escape")
    entitled(page, "order-7741")
    page.go_back()
    entitled(page, "order-7741, #28")
    page.reload()
    entitled(page, "order-7741, #28")
    page.get_by_role("link", name="Conversations").first.click()
    entitled(page, "Conversations")


def test_two_steps_are_compared(open_page):
    page = open_page("/c/order-7741/?at=43", javascript=False)
    page.get_by_role("link", name="Compare steps").click()
    page.get_by_label("Compare with step").fill("30")
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_role("heading", name="Compared with step 30")).to_be_visible()
    expect(page.locator("p", has_text="Entered memory:")).to_contain_text("#43")
