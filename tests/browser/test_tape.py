"""The tape in a browser: a press selects its step, and labels do not overlap."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from ..long_conversations import long_conversation
from .addresses import arrive

pytestmark = pytest.mark.long
WIDTHS = [(390, 844), (1024, 768), (1440, 900)]
PHONE = {"width": 390, "height": 844}
# The labels of each row of the tape that are in view, and the playhead's flag, as boxes.
ROWS = [".tape__axis text", ".tape__over .ticks text", ".strip .ticks text, .playhead b"]
BOXES = """rows => rows.map(row => [...document.querySelectorAll(row)]
  .filter(each => getComputedStyle(each).display !== 'none')
  .map(each => ({text: each.textContent.trim(), ...each.getBoundingClientRect().toJSON()})))"""


def overlaps(row: list[dict]) -> list[str]:
    return [
        f"{a['text']} and {b['text']}"
        for i, a in enumerate(row)
        for b in row[i + 1 :]
        if a["left"] < b["right"]
        and b["left"] < a["right"]
        and a["top"] < b["bottom"]
        and b["top"] < a["bottom"]
    ]


@pytest.fixture
def conversation(transactional_db, images):
    """Makes a conversation of so many messages and returns its path."""

    def make(steps: int) -> str:
        images.bring_about(f"c{steps}", lambda: long_conversation(f"c{steps}", steps))
        return f"/c/c{steps}/"

    return make


@pytest.mark.parametrize("steps", [1, 58, 10_000])
def test_labels_do_not_overlap(open_page, conversation, steps):
    """The markup of labels is the same for all widths, so each step is fetched once."""
    page = open_page(conversation(steps), viewport=PHONE)
    for at in {1, steps // 3, steps * 4 // 5, steps} - {0}:
        page.goto(page.url.partition("?")[0] + f"?at={at}")
        for width, height in WIDTHS:
            page.set_viewport_size({"width": width, "height": height})
            for row in page.evaluate(BOXES, ROWS):
                assert overlaps(row) == [], (at, width)
            assert page.locator(".cells > li").first.bounding_box()["width"] >= 8
            assert page.locator(".cells").bounding_box()["width"] >= width / 2
            assert page.locator(".playhead b").bounding_box()["x"] >= 0
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.set_viewport_size(PHONE)


def test_a_press_on_the_overview_means_its_step_each_time(open_page, conversation):
    page = open_page(conversation(1_000))
    box = page.locator(".tape__chart").bounding_box()
    for _ in range(3):
        page.mouse.click(box["x"] + box["width"] / 10, box["y"] + 20)
        arrive(page, r"\?at=100$")
        expect(page.locator(".playhead b")).to_have_text("100")
    cells = page.locator(".cells > li")
    cells.nth(50).click()
    arrive(page, r"\?at=61&msg=61$")
    expect(page.locator(".playhead b")).to_have_text("61")
    expect(cells.first.locator("a")).to_have_attribute("title", "#1 User, left memory at step 21")


def test_the_bracket_is_dragged_with_the_playhead(open_page, conversation):
    page = open_page(conversation(1_000))
    box = page.locator(".tape__chart").bounding_box()
    bracket = page.locator("[data-bracket]")
    page.mouse.move(box["x"] + box["width"] - 2, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20, steps=4)
    expect(page.locator(".tape__step b")).to_have_text("500")
    assert int(bracket.get_attribute("x")) < 500
    page.mouse.up()
    arrive(page, r"\?at=500$")
    expect(page.locator("[data-overview]")).to_have_attribute("data-first", "411")
    assert bracket.get_attribute("x") == "410"


@pytest.mark.parametrize("javascript", [True, False])
def test_a_step_is_typed(open_page, conversation, javascript):
    page = open_page(conversation(200), javascript=javascript)
    page.get_by_label("Go to step").fill("77")
    page.get_by_role("button", name="Go", exact=True).click()
    expect(page.locator(".tape__step")).to_contain_text("Step 77 of 200")
    expect(page.locator(".playhead b")).to_have_text("77")
    page.locator(".cells > li").nth(2).click()
    expect(page.locator(".tape__step")).to_contain_text("Step 3 of 200")


def test_the_strip_scrolls_to_the_playhead_on_a_phone(open_page, demo_conversations):
    page = open_page("/c/order-7741/?at=43", viewport=PHONE)
    expect(page.locator(".playhead b")).to_be_in_viewport()
    left = page.locator(".strip").evaluate("strip => strip.scrollLeft")
    assert left > 0
    page.get_by_role("link", name="Step forward").click()
    expect(page.locator(".playhead b")).to_have_text("44")
    assert page.locator(".strip").evaluate("strip => strip.scrollLeft") == left
    expect(page.locator("[data-bracket]")).to_be_visible()


# The labels below the strip that are shown and not wholly beside its view, as [text, is in view].
LABELS = """() => {
  const view = document.querySelector('.strip').getBoundingClientRect();
  return [...document.querySelectorAll('.strip .ticks text')]
    .filter(each => getComputedStyle(each).visibility !== 'hidden')
    .map(each => ({text: each.textContent, box: each.getBoundingClientRect()}))
    .filter(({box}) => box.right > view.left && box.left < view.right)
    .map(({text, box}) => [text, box.left >= view.left && box.right <= view.right]);
}"""


def test_no_label_is_cut_by_the_edge_of_a_strip_that_scrolls(open_page, conversation):
    page = open_page(conversation(62), viewport=PHONE)
    strip = page.locator(".strip")
    most = strip.evaluate("strip => strip.scrollWidth - strip.clientWidth")
    assert most > 100
    names = set()
    for left in range(0, most + 1, 7):
        strip.evaluate("(strip, left) => { strip.scrollLeft = left; }", left)
        page.evaluate("() => new Promise(done => requestAnimationFrame(done))")
        labels = page.evaluate(LABELS)
        assert [text for text, is_in_view in labels if not is_in_view] == [], left
        names |= {text for text, _ in labels}
        for row in page.evaluate(BOXES, [".strip .ticks text:not(.is-covered), .playhead b"]):
            assert overlaps(row) == [], left
    assert {"left memory", "window"} <= names


def test_a_phone_that_is_turned_shows_the_whole_strip_without_a_bracket(open_page, conversation):
    page = open_page(conversation(62), viewport=PHONE)
    bracket = page.locator("[data-bracket]")
    expect(bracket).to_be_visible()
    page.set_viewport_size({"width": 844, "height": 390})
    expect(bracket).to_be_hidden()
    page.set_viewport_size(PHONE)
    expect(bracket).to_be_visible()


@pytest.mark.parametrize("javascript", [True, False])
def test_messages_to_cover_are_chosen_on_the_tape(open_page, conversation, javascript):
    page = open_page(f"{conversation(58)}compact/", javascript=javascript)
    told, last = page.locator("#cover p"), page.get_by_label("The last message that it covers")
    expect(told).to_contain_text("#39 to #54: 16 messages")
    asked = []
    page.on("request", lambda request: asked.append(request.method))
    page.get_by_label("Summary", exact=True).fill("They count.")
    last.focus()
    for _ in range(10):  # a key that is held
        page.keyboard.press("ArrowLeft")
    if not javascript:
        page.get_by_role("button", name="Preview").click()
    expect(told).to_contain_text("#39 to #44: 6 messages")
    expect(page.locator("#preview")).to_contain_text("6 messages would become one summary")
    expect(page.locator(".cover .is-leaving")).to_have_count(6)
    if javascript:
        expect(last).to_be_focused()
        assert asked.count("POST") <= 3
        box = page.locator(".cover__end").first.bounding_box()
        middle = box["y"] + box["height"] / 2
        page.mouse.move(box["x"] + 8, middle)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] / 8, middle, steps=3)
        page.mouse.up()
        expect(told).to_contain_text("#41 to #44: 4 messages")
    page.get_by_role("button", name="Compact messages", exact=True).click()
    expect(page.locator("#kept")).to_contain_text("They count.")
    expect(page.locator("#kept")).to_contain_text("replaces")
