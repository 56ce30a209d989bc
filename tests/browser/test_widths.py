"""Every page fits the screens between a phone and a desk."""

from __future__ import annotations

from urllib.parse import urljoin

import pytest
from playwright.sync_api import expect

from chatmemory import (
    AiMessage,
    MessageWindow,
    SystemMessage,
    TokenWindow,
    ToolExecutionRequest,
    UserMessage,
    services,
)
from chatmemory.access.tokens import create_token

from ..conversations import create_and_add, numbered, users
from .addresses import arrive
from .menus import choose, open_menu

WIDTHS = (375, 760, 800, 1024, 1199, 1200, 1440)
# What is cut by a box that scrolls, or closed, is not cut by the screen.
CUT = """
() => [...document.body.querySelectorAll("*")].filter((each) => {
  const box = each.getBoundingClientRect();
  const isSeen = box.width && !each.ownerSVGElement && each.checkVisibility();
  if (!isSeen || box.right <= innerWidth + 1) return false;
  for (let around = each; around !== document.body; around = around.parentElement) {
    const style = getComputedStyle(around);
    if (style.position === "absolute" && style.clipPath !== "none") return false;
    const isScreen = around === each || around.matches(".s-conv, .s-over, main");
    if (!isScreen && style.overflowX !== "visible")
      return around.getBoundingClientRect().right > innerWidth + 1;
  }
  return true;
}).map((each) => `${each.tagName}.${each.className}`)
"""
# What lies over another part of a conversation's head.
OVER = """
() => {
  const parts = [...document.querySelectorAll(".pagehead__id > *, .pagehead > :not(.pagehead__id)")]
    .filter((each) => each.checkVisibility())
    .map((each) => [each.className, each.getBoundingClientRect()]);
  const isOver = (a, b) =>
    Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
    Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1;
  return parts.flatMap(([name, box], n) =>
    parts.slice(n + 1).filter(([, other]) => isOver(box, other)).map(([other]) => [name, other]));
}
"""
NAMES = ("support-2026-11-22-a-long-name-of-a-conversation", "W" * 255)
OF_A_CONVERSATION = ("", "?at=3&msg=2", "compare/", "settings/", "export/")
PAGES = (
    *("", "lab/", "import/", "learn/", "learn/playground/", "policies/", "tokens/"),
    f"c/{NAMES[0]}/",
    *(f"c/{NAMES[1]}/{page}" for page in OF_A_CONVERSATION),
)


def hold_a_conversation(memory_id: str) -> None:
    create_and_add(memory_id, TokenWindow(40), [SystemMessage("Be brief. " * 30)])
    services.add(memory_id, numbered(12))


def test_nothing_is_cut_at_the_edge_of_any_screen(open_page):
    for name in NAMES:
        hold_a_conversation(name)
    create_token("W" * 80, prefix="W" * 255)
    page = open_page("/")
    for address in PAGES:
        page.goto(urljoin(page.url, f"/{address}"))
        for badge in page.locator("[data-live-badge]").all():
            expect(badge).to_be_visible()
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate(CUT) == [], (address, width)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (address, width)
            assert page.evaluate(OVER) == [], (address, width)


def test_the_page_of_an_id_that_is_not_found_fits_any_screen(reader):
    page = reader(f"/c/{'W' * 255}/", refused=404)
    expect(page.get_by_role("heading", name="Page not found")).to_be_visible()
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width, width


def test_the_downloads_of_a_comparison_have_words(open_page):
    hold_a_conversation("m")
    page = open_page("/c/m/compare/")
    for width in (390, 1100, 1440):
        page.set_viewport_size({"width": width, "height": 844})
        for words in ("CSV", "JSON"):
            box = page.get_by_role("link", name=words).get_by_text(words).bounding_box()
            assert box["width"] > 20, width


def test_a_long_id_leaves_room_for_its_dot_and_its_age(open_page):
    create_and_add("session-24a274a3-0317-440d-b17a-41e83ee34fec", MessageWindow(5), users("hi"))
    page = open_page("/")
    row = page.locator(".convs tbody tr").first
    for width in (375, 768, 1200, 1440):
        page.set_viewport_size({"width": width, "height": 844})
        boxes = [row.locator(css).bounding_box() for css in (".who__id", ".dot", ".c-ago time")]
        name, dot, age = boxes
        assert name["y"] < dot["y"] < name["y"] + name["height"], width
        assert name["x"] + name["width"] <= dot["x"] < age["x"] - dot["width"], width


OUT_OF_ITS_TILE = """
() => [...document.querySelectorAll(".cause, .causes__head")].flatMap((tile) => {
  const edge = tile.getBoundingClientRect().right;
  const range = document.createRange();
  return [...tile.querySelectorAll("h1, a, p")].filter((each) => {
    range.selectNodeContents(each);
    return range.getBoundingClientRect().right > edge;
  }).map((each) => each.textContent.trim());
})
"""


def test_the_numbers_of_the_overview_are_not_cut(open_page):
    """Each cause has a line beside the feed."""
    hold_a_conversation("oversized")
    create_and_add("over", MessageWindow(9), users("one", "two", "three"))
    services.change("over", policy=MessageWindow(1))
    services.create("dangling", MessageWindow(9))
    call = AiMessage(None, (ToolExecutionRequest("1", "find", "{}"),))
    services.add("dangling", [UserMessage("hi"), call, UserMessage("well?")])
    create_and_add("told", MessageWindow(2), users("Order A-1182.", "a", "b", "A-1182, as I said."))
    for name in ("oversized", "over", "dangling", "told"):
        services.keep(name)
    page = open_page("/")
    assert page.locator(".cause").count() >= 2
    for width in (390, 800, 1024, 1200, 1280, 1440, 1920):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(OUT_OF_ITS_TILE) == [], width


def test_a_label_behind_a_flag_is_not_cut_in_a_word(open_page):
    services.create("m", TokenWindow(40), labels={"customer": "a-rather-long-name"})
    services.add("m", [SystemMessage("Be brief. " * 30)])
    services.change("m", policy=TokenWindow(30))
    page = open_page("/", viewport={"width": 1100, "height": 844})
    edge = "each => each.getBoundingClientRect().right"
    label = page.locator(".who__line .label")
    assert label.evaluate(edge) <= page.locator(".who__line").evaluate(edge)
    assert label.evaluate("each => getComputedStyle(each).textOverflow") == "ellipsis"


@pytest.mark.parametrize("name", NAMES, ids=["long", "as long as can be"])
def test_a_comparison_leads_back_to_its_conversation_on_any_screen(open_page, name):
    hold_a_conversation(name)
    page = open_page(f"/c/{name}/compare/", viewport={"width": 390, "height": 844})
    back = page.locator(f".pagehead a[href='/c/{name}/']")
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 844})
        expect(back).to_be_visible()
        expect(page.get_by_role("heading", name="Compare policies")).to_be_visible()
    choose(page, "Large type")
    back.click()
    arrive(page, f"/c/{name}/$")


MENU = ("Conversations", "Calls", "Lab", "Learn")
SELDOM = ("Doctor", "Import", "Policies", "Tokens", "API")


@pytest.mark.parametrize("path", ["/", "/c/m/", "/lab/"])
def test_the_whole_menu_opens_on_a_phone(open_page, violations, path):
    create_and_add("m", MessageWindow(9), numbered(12))
    page = open_page(path, viewport={"width": 375, "height": 844})
    open_menu(page, "More")
    nav = page.get_by_role("navigation", name="Main")
    for words in (*MENU, *SELDOM):
        expect(nav.get_by_role("link", name=words)).to_be_in_viewport(ratio=1)
    assert nav.evaluate("each => each.scrollWidth <= each.clientWidth")
    assert violations(page) == []


def test_large_type_keeps_the_menu_and_the_way_back(open_page):
    create_and_add("m", MessageWindow(9), numbered(12))
    page = open_page("/c/m/")
    with page.expect_response("**/display/"):
        choose(page, "Large type")
    for width in (760, 900, 1024, 1100, 1200, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        page.reload()
        expect(page.locator("html")).to_have_attribute("data-type", "large")
        leads_everywhere(page)
        assert page.evaluate(CUT) == [], width


def leads_everywhere(page) -> None:
    back = page.locator("#pagehead").get_by_role("link", name="Conversations")
    expect(back).to_be_in_viewport(ratio=1)
    open_menu(page, "More")
    expect(page.get_by_role("button", name="Sign out")).to_be_in_viewport(ratio=1)
    for words in (*MENU, *SELDOM):
        link = page.get_by_role("navigation", name="Main").get_by_role("link", name=words)
        expect(link).to_be_in_viewport(ratio=1)


def test_the_large_font_of_a_browser_keeps_the_menu_and_the_way_back(open_page):
    """The owner of the browser has set it to a font of 24 px instead of 16."""
    create_and_add("m", MessageWindow(9), numbered(12))
    page = open_page("/")
    fonts = page.context.new_cdp_session(page)
    fonts.send("Page.setFontSizes", {"fontSizes": {"standard": 24}})
    for path in ("/", "/lab/", "/learn/tool-calls/", "/c/m/"):
        page.goto(urljoin(page.url, path))
        assert page.evaluate("getComputedStyle(document.documentElement).fontSize") == "24px"
        for width in (1440, 800):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate(CUT) == [], (path, width)
    leads_everywhere(page)
    page.set_viewport_size({"width": 1440, "height": 900})
    page.reload()
    leads_everywhere(page)


# What the heads of a page with a full window of 10,000 messages say while somebody writes.
TEN_THOUSAND = """
() => {
  const of = "<b>10,000</b> / 10,000 msg";
  const [count, load, tokens] = document.querySelectorAll(".pane--memory .pane__end > span");
  [count.textContent, load.innerHTML, tokens.textContent] = ["10,000 messages", of, "129,000 tok"];
  document.querySelector("#fill .gauge > span").innerHTML = `${of} · 129,000 tok`;
  document.querySelector(".pagehead .chip b").textContent = "10,000";
  document.querySelector("[data-follow]").textContent = "Waits while you write";
}
"""
WIDER_THAN_ITS_PLACE = """
() => [...document.querySelectorAll(".pane--memory .pane__end > span, .pagehead__end")]
  .filter((each) => each.scrollWidth > each.clientWidth + 1)
  .map((each) => each.textContent)
"""


def test_the_numbers_of_a_full_window_have_room(open_page):
    create_and_add("long3", MessageWindow(10_000, oversized="keep"), [UserMessage("a")])
    page = open_page("/c/long3/")
    page.evaluate(TEN_THOUSAND)
    for width in (390, *WIDTHS):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(OVER) == [], width
        assert page.evaluate(WIDER_THAN_ITS_PLACE) == [], width
