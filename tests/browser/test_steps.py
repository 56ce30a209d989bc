"""Steps of a long conversation: a held key, and how little of the page a step touches."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from chatmemory import UserMessage, queries, services

from ..long_conversations import long_conversation
from .touched import COUNT, TOUCHED

MESSAGES = 10_000
PRESSES = 40
MOST_BYTES = 60_000
MOST_NODES = 300

# Presses a key as a keyboard does that repeats it every 40 ms, and notes the playhead after each.
HOLD = """presses => new Promise(done => {
  const seen = [];
  const press = () => {
    const key = { key: "ArrowRight", bubbles: true, cancelable: true, repeat: seen.length > 0 };
    document.body.dispatchEvent(new KeyboardEvent("keydown", key));
    seen.push(document.querySelector("[data-step] b").textContent);
    if (seen.length === presses) done(seen);
    else setTimeout(press, 40);
  };
  press();
})"""


# The elements that are not as the server sends them with a whole page; scripts alter none of these.
STALE = """async () => {
  const answer = await (await fetch(location.href)).text();
  const whole = new DOMParser().parseFromString(answer, "text/html");
  const markup = (page, id) => page.getElementById(id).outerHTML;
  const memory = ["memory-head", "pinned", "just-evicted", "kept", "load-bars"];
  const ids = ["history-head", "said", ...memory, "why"];
  return ids.filter(id => markup(document, id) !== markup(whole, id));
}"""

# Counts how often a node as large as the page is copied, as HTMX does for a history that it keeps.
COUNT_COPIES = """() => {
  window.copies = 0;
  const copy = Node.prototype.cloneNode;
  Node.prototype.cloneNode = function (isDeep) {
    if (isDeep && this.contains(document.querySelector("#main"))) window.copies += 1;
    return copy.call(this, isDeep);
  };
}"""


@pytest.fixture
def path(transactional_db) -> str:
    long_conversation("long", MESSAGES, kept=70)
    return "/c/long/"


def test_a_held_key_moves_the_playhead_on_each_press(open_page, path):
    page = open_page(f"{path}?at=5000")
    seen = page.evaluate(HOLD, PRESSES)
    assert seen == [f"{5001 + n:,}" for n in range(PRESSES)]
    expect(page).to_have_url(f"{page.url.partition('?')[0]}?at={5000 + PRESSES}")
    for rows in ("#said li", "#kept li"):
        expect(page.locator(rows).last).to_contain_text(f"#{5000 + PRESSES}")
    page.go_back()
    expect(page.locator("[data-step]")).to_contain_text("Step 5,000 of 10,000")


def test_a_step_sends_and_touches_only_what_differs(open_page, path):
    """Also one at which the cells of the strip become others. No copy of the page is kept."""
    page = open_page(f"{path}?at=5009")
    page.evaluate(COUNT_COPIES)
    first_cell = page.locator("#cells li").first
    for step, moves in ((5010, False), (5011, True)):
        before = first_cell.get_attribute("id")
        page.evaluate(COUNT)
        with page.expect_response(f"**/?at={step}") as response:
            page.keyboard.press("ArrowRight")
        expect(page.locator(f"#said-{step}")).to_be_visible()
        expect(page).to_have_url(f"{page.url.partition('?')[0]}?at={step}")
        assert len(response.value.body()) < MOST_BYTES
        touched = page.evaluate(TOUCHED)
        assert sum(touched.values()) < MOST_NODES, (step, touched)
        assert (first_cell.get_attribute("id") != before) == moves
        assert page.evaluate(STALE) == []
    assert page.evaluate("copies") == 0


def test_of_several_backs_the_last_wins(open_page, demo_conversations):
    """The page of the first one comes late, and is not put over that of the second."""
    page = open_page("/c/order-7741/?at=10")
    for step in (11, 12):
        page.get_by_role("link", name="Step forward").click()
        expect(page).to_have_url(re.compile(f"at={step}$"))
    page.route("**/?at=11", lambda route: None)
    page.go_back()
    with page.expect_event("requestfailed", lambda request: "at=11" in request.url, timeout=5_000):
        page.go_back()
    expect(page.locator("[data-step]")).to_contain_text("Step 10 of")
    page.unroute("**/?at=11")


def test_play_starts_again_at_the_end_and_shows_that_it_pauses(open_page, demo_conversations):
    page = open_page("/c/order-7741/")
    page.get_by_role("button", name="Play").click()
    pause = page.get_by_role("button", name="Pause")
    icons = pause.locator("svg")
    assert [icons.nth(i).is_visible() for i in range(2)] == [False, True]
    expect(page.locator("[data-step]")).to_have_text(re.compile(r"Step\s+\d\s+of\s+58"))
    pause.click()
    play = page.get_by_role("button", name="Play").locator("svg")
    assert [play.nth(i).is_visible() for i in range(2)] == [True, False]


def test_the_playhead_of_a_simulation_stays_at_its_last_draft(open_page, demo_conversations):
    key = services.keep_trial("order-7741", [UserMessage("one"), UserMessage("two")])
    page = open_page(f"/c/order-7741/?at=30&trial={key}")
    for step in (31, 30):
        page.keyboard.press("ArrowRight" if step == 31 else "ArrowLeft")
        expect(page).to_have_url(re.compile(f"at={step}"))
        expect(page.locator(f"#cells-{step + 2}.is-draft .playhead b")).to_have_text("draft")
        expect(page.locator("#past rect")).to_have_attribute("width", str(step + 2))
        expect(page.locator("[data-step] b")).to_have_text(str(step))


@pytest.mark.parametrize("pause", [0, 30, 60])
def test_no_press_of_a_key_is_lost_however_quick(open_page, demo_conversations, pause):
    """Each counts from what the ones before it asked for, shown or not yet."""
    page = open_page("/c/order-7741/?at=58&msg=20")
    page.keyboard.type("j" * 10, delay=pause)
    expect(page).to_have_url(re.compile(r"msg=30$"))
    page.keyboard.type("k" * 4, delay=pause)
    expect(page).to_have_url(re.compile(r"msg=26$"))
    before = evictions_of("order-7741")
    page.keyboard.type("[" * 5, delay=pause)
    expect(page).to_have_url(re.compile(rf"at={before[-5]}&msg=26$"))
    page.keyboard.type("]" * 2, delay=pause)
    expect(page).to_have_url(re.compile(rf"at={before[-3]}&msg=26$"))
    expect(page.locator("[data-step] b")).to_have_text(str(before[-3]))


def test_a_held_leap_ends_when_its_key_is_released(open_page, demo_conversations, between_requests):
    """It is one movement, to where it began Back leads."""
    before = evictions_of("order-7741")
    page = open_page("/c/order-7741/")
    with between_requests, page.expect_request(f"**/?at={before[-1]}"):
        for _ in range(PRESSES):
            page.keyboard.down("[")
        page.keyboard.up("[")
    expect(page).to_have_url(re.compile(rf"at={before[-2]}$"))
    page.go_back()
    expect(page.locator("[data-step]")).to_contain_text("Step 58 of 58")
    expect(page).to_have_url(re.compile("/c/order-7741/$"))


def test_presses_go_on_beyond_the_part_of_the_history_that_is_shown(open_page, path):
    page = open_page(f"{path}?at=9000&msg=5000")
    page.keyboard.type("j" * 60)
    expect(page).to_have_url(re.compile(r"msg=5060$"))


def evictions_of(memory_id: str) -> list[int]:
    """The steps at which messages left, before the last one."""
    last = queries.memory(memory_id).last_step
    left = [n for n in range(1, last) if queries.step(memory_id, n).change.evicted]
    assert len(left) > 5
    return left
