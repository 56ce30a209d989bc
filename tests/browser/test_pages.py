from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from chatmemory import MessageWindow, SystemMessage, services
from inspector.access import get_account, make_token

pytestmark = pytest.mark.usefixtures("demo_conversations")
PHONE = {"viewport": {"width": 390, "height": 844}}
LIGHT, DARK = "rgb(255, 255, 255)", "rgb(21, 26, 25)"
# How many colours and sizes are on their way to others.
FADING = "() => document.getAnimations().filter(each => each instanceof CSSTransition).length"
FORGOTTEN = "/c/order-7741/?at=43&msg=25"
PAGES = ["/", "/?q=nothing+at+all", "/c/order-7741/", FORGOTTEN, "/c/order-7741/?at=0"]


def test_a_link_signs_in(open_page, live_server):
    page = open_page("/sign-in/")
    page.context.clear_cookies()
    page.goto(f"{live_server.url}/sign-in/{make_token(get_account('operator'))}/")
    expect(page.get_by_role("link", name="order-7741").first).to_be_visible()


def surface(page) -> str:
    """The colour that the top bar is painted with."""
    return page.locator(".topbar").evaluate("bar => getComputedStyle(bar).backgroundColor")


def test_why_is_two_clicks_away(open_page):
    page = open_page("/")
    page.get_by_role("link", name="order-7741").first.click()
    page.get_by_role("button", name="Why? #25").first.click()
    expect(page.get_by_role("heading", name="Why did #25 leave?")).to_be_visible()
    expect(page.get_by_text("When #43 arrived, memory needed")).to_be_visible()


def test_what_is_hidden_is_so_while_styles_arrive(open_page):
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
    expect(page).to_have_url(re.compile(r"\?at=42$"))
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
    page.get_by_role("button", name="Change theme").click()
    assert page.locator("html").get_attribute("data-theme") == "dark"


def test_searching_as_one_types(open_page):
    page = open_page("/")
    page.get_by_role("searchbox").press_sequentially("lisbon")
    expect(page.locator(".convs tbody tr")).to_have_count(1)
    expect(page.get_by_role("searchbox")).to_be_focused()
    assert "q=lisbon" in page.url


def test_the_keyboard_moves_through_steps_and_messages(open_page):
    page = open_page("/c/order-7741/?at=43")
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".tape__step")).to_contain_text("Step 42")
    expect(page).to_have_url(re.compile(r"\?at=42$"))  # the playhead moves ahead of the panes
    page.keyboard.press("ArrowRight")
    expect(page).to_have_url(re.compile(r"\?at=43$"))
    expect(page.locator("[data-caption]")).to_contain_text("#43 arrived")
    expect(page.locator("#said-43")).to_be_visible()
    page.keyboard.press("k")
    expect(page.get_by_role("heading", name="Why is #43 still in memory?")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", name="What happened at this step?")).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("heading", name="Keyboard")).to_be_visible()
    page.keyboard.press("Escape")
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
        page.get_by_role("button", name="Change theme").click()
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
    page.get_by_role("searchbox", name="Does it still remember…?").fill("A-1182")
    page.keyboard.press("Enter")
    expect(page.get_by_text("At step 43: no").first).to_be_visible()
    page.get_by_text("History", exact=True).first.click()
    expect(page.locator(".said.is-hit").last).to_be_in_viewport()
    page.locator(".said.is-hit .hit").last.click()
    expect(page.get_by_role("heading", name="Why did #28 leave?")).to_be_visible()


@pytest.mark.parametrize(
    ("query", "pane"),
    [("", "memory"), ("?msg=2", "why"), ("?find=parcel", "why"), ("?before=9", "history")],
)
def test_a_phone_without_javascript_opens_what_was_asked(open_page, query, pane):
    page = open_page(f"/c/order-7741/{query}", javascript=False, **PHONE)
    for name, each in (("history", ".pane--history"), ("memory", ".pane--memory"), ("why", ".why")):
        expect(page.locator(each)).to_be_visible(visible=name == pane)


@pytest.mark.parametrize("path", PAGES)
def test_axe_finds_nothing(open_page, violations_in_both_schemes, path):
    assert violations_in_both_schemes(open_page(path)) == []


@pytest.mark.parametrize("path", PAGES)
def test_axe_finds_nothing_on_a_phone(open_page, violations, path):
    assert violations(open_page(path, **PHONE)) == []


def test_axe_finds_nothing_where_memory_has_one_row(open_page, violations):
    services.create("one", MessageWindow(4))
    services.add("one", [SystemMessage("Be brief.")])
    page = open_page("/c/one/")
    assert violations(page) == []
    searches = page.get_by_role("search").evaluate_all("all => all.map(each => each.ariaLabel)")
    assert searches == ["All conversations", "This conversation"]


def test_axe_finds_nothing_in_help_and_in_large_type(open_page, violations):
    page = open_page("/c/order-7741/settings/", viewport={"width": 1100, "height": 800})
    page.get_by_role("button", name="Keyboard shortcuts").click()
    expect(page.locator("#keys")).to_be_visible()
    assert violations(page) == []
    page.goto(page.url.replace("settings/", "?at=43"))
    page.get_by_role("button", name="Large type").click()
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
    expect(page.get_by_role("heading", name="Conversations")).to_be_attached()


def test_trying_before_adding(open_page, violations):
    page = open_page("/c/order-7741/")
    page.get_by_role("textbox", name="Message").fill("One more question about the parcel, please.")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("Nothing here is saved")).to_be_visible()
    expect(page.locator(".led.is-draft")).to_have_count(1)
    assert violations(page) == []
    page.get_by_role("link", name="Discard").click()
    expect(page.locator(".led.is-draft")).to_have_count(0)
    expect(page.locator(".tape__step")).to_contain_text("Step 58 of 58")
    page.get_by_role("textbox", name="Message").fill("One more question about the parcel, please.")
    page.get_by_role("button", name="Add").click()
    expect(page.locator(".tape__step")).to_contain_text("Step 59 of 59")
    assert page.url.endswith("/c/order-7741/")


def test_trying_before_adding_without_javascript(open_page):
    page = open_page("/c/order-7741/", javascript=False)
    page.get_by_role("textbox", name="Message").fill("Hello?")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("Nothing here is saved")).to_be_visible()
    page.get_by_role("button", name="Add").click()
    expect(page.locator(".tape__step")).to_contain_text("Step 59 of 59")


def test_a_simulation_from_the_past_is_saved_as_a_new_conversation(open_page, violations):
    page = open_page("/c/order-7741/?at=42")
    expect(page.get_by_role("button", name="Add", exact=True)).to_have_count(0)
    page.get_by_role("textbox", name="Message").fill("Where is my parcel?")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator(".cells .is-draft")).to_have_count(1)
    page.get_by_role("textbox", name="Message").fill("And the saucers?")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator(".tape__step")).to_contain_text("Step 42 + 2 simulated")
    expect(page.locator(".led.is-draft")).to_have_count(2)
    expect(page.locator(".said.is-draft")).to_have_count(2)
    assert violations(page) == []
    page.get_by_label("Id of the new conversation").fill("what/if")
    page.get_by_role("button", name="Save as a new conversation").click()
    expect(page.get_by_role("heading", name="what/if")).to_be_visible()
    assert page.url.endswith("/c/what~2Fif/")
    expect(page.locator(".pane--history")).to_contain_text("And the saucers?")


def test_several_conversations_are_labelled_and_deleted(open_page, violations):
    page = open_page("/?q=order")
    expect(page.get_by_role("button", name="Delete…")).to_be_hidden()
    page.get_by_role("checkbox", name="Select order-7741").check()
    assert violations(page) == []
    page.get_by_label("Label, as name:value").fill("team:blue")
    page.get_by_role("button", name="Label", exact=True).click()
    assert page.url.endswith("/?q=order")
    page.goto(page.url.replace("?q=order", ""))
    page.get_by_role("checkbox", name="Select all on this page").check()
    with page.expect_download() as download:
        page.get_by_role("button", name="Export").click()
    assert download.value.suggested_filename == "conversations.jsonl"
    page.get_by_role("button", name="Delete 3…").click()
    expect(page.get_by_role("heading", name="Delete 3 conversations?")).to_be_visible()
    assert violations(page) == []
    page.get_by_role("button", name="Delete 3").click()
    expect(page.get_by_role("heading", name="No conversations yet")).to_be_visible()


def test_several_conversations_are_deleted_without_javascript(open_page):
    page = open_page("/", javascript=False)
    page.get_by_role("checkbox", name="Select classroom").check()
    page.get_by_role("button", name="Delete…").click()
    page.get_by_role("button", name="Delete").click()
    expect(page.locator(".convs tbody tr")).to_have_count(2)


def test_a_conversation_prints_whole_and_without_controls(open_page):
    page = open_page(FORGOTTEN, color_scheme="dark")
    with page.expect_response("**/theme/"):
        page.get_by_role("button", name="Change theme").click()
    page.reload()
    page.emulate_media(media="print")
    for gone in (".topbar", ".composer", ".tape__bar .joined", ".find", ".why .tabs"):
        expect(page.locator(gone).first).to_be_hidden()
    for pane in (".pane--history .pane__body", ".pane--memory .pane__body", ".why__body"):
        clipped = "pane => pane.scrollHeight > pane.clientHeight + 1"
        assert not page.locator(pane).evaluate(clipped)
    expect(page.get_by_role("heading", name="Why did #25 leave?")).to_be_visible()


def test_a_handout_is_light(open_page):
    page = open_page("/", color_scheme="light")
    with page.expect_response("**/theme/"):
        page.get_by_role("button", name="Change theme").click()
    assert surface(page) == DARK
    page.emulate_media(media="print")
    assert surface(page) == LIGHT


def test_a_token_is_made_and_revoked(open_page, violations_in_both_schemes):
    page = open_page("/tokens/")
    page.get_by_label("Name").fill("shop")
    page.get_by_role("button", name="Create a token").click()
    expect(page.locator("main").get_by_role("status")).to_contain_text("cm_")
    assert violations_in_both_schemes(page) == []
    page.get_by_text("Revoke…").click()
    page.get_by_role("button", name="Revoke shop").click()
    expect(page.locator(".tokens")).to_contain_text("revoked")
    assert violations_in_both_schemes(page) == []


def test_playing_moves_on_until_something_is_pressed(open_page):
    page = open_page("/c/classroom/?at=14")
    page.get_by_label("Speed").select_option("4")
    page.get_by_role("button", name="Play").click()
    expect(page).to_have_url(re.compile(r"\?at=17$"))
    page.goto(page.url.replace("at=17", "at=2"))
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    expect(page.locator(".tape__step")).to_contain_text("Step 3")
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Play")).to_be_visible()


def test_the_scrubber_goes_to_a_step(open_page):
    page = open_page("/c/order-7741/")
    page.get_by_role("slider", name="Step").focus()
    page.keyboard.press("Home")
    expect(page).to_have_url(re.compile(r"\?at=0$"))
    expect(page.locator(".tape__step")).to_contain_text("Step 0 of 58")
    expect(page.get_by_role("slider", name="Step")).to_be_focused()


def test_the_playhead_goes_along_while_it_is_dragged(open_page):
    page = open_page("/c/order-7741/")
    box = page.get_by_role("slider", name="Step").bounding_box()
    height = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] - 5, height)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, height, steps=5)
    half = page.locator(".playhead b")
    expect(half).to_have_text(re.compile("^(28|29|30)$"))
    expect(page.locator(".tape__step")).to_contain_text(re.compile("Step (28|29|30) of 58"))
    assert "?at=" not in page.url
    page.mouse.up()
    expect(page).to_have_url(re.compile(r"\?at=(28|29|30)$"))


def test_shift_and_an_arrow_go_ten_steps(open_page):
    page = open_page("/c/order-7741/?at=43")
    page.keyboard.press("Shift+ArrowLeft")
    expect(page.locator(".tape__step")).to_contain_text("Step 33")


def test_two_steps_are_compared(open_page):
    page = open_page("/c/order-7741/?at=43", javascript=False)
    page.get_by_label("Compare with step").fill("30")
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_role("heading", name="Compared with step 30")).to_be_visible()
    expect(page.locator("p", has_text="Arrived:")).to_contain_text("#43")


def test_focus_stays_where_it_was(open_page):
    page = open_page("/c/order-7741/?at=30")
    forward = page.get_by_role("link", name="Step forward")
    forward.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".tape__step")).to_contain_text("Step 31")
    expect(page.get_by_role("link", name="Step forward")).to_be_focused()
