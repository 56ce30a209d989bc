"""Steps of a long conversation: a held key, and how little of the page a step touches.

A step is sent whole, and the script changes only what differs.
"""

from __future__ import annotations

import gzip
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from chatmemory import UserMessage, services
from chatmemory.reading import conversations, steps

from ..conversations import users
from ..long_conversations import long_conversation
from .addresses import arrive
from .touched import COUNT, TOUCHED

MESSAGES = 10_000
PRESSES = 20
MOST_BYTES = 20_000
MOST_NODES = 300
PHONE = {"viewport": {"width": 390, "height": 844}}
BACK, ON = "Back to a step where messages left memory", "On to a step where messages left memory"

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
def path(transactional_db, images) -> str:
    images.bring_about("steps", lambda: long_conversation("long", MESSAGES, kept=70))
    return "/c/long/"


def test_a_held_key_moves_the_playhead_on_each_press(open_page, path):
    page = open_page(f"{path}?at=5000")
    seen = page.evaluate(HOLD, PRESSES)
    assert seen == [f"{5001 + n:,}" for n in range(PRESSES)]
    arrive(page, rf"\?at={5000 + PRESSES}$")
    for rows in ("#said li", "#kept li"):
        expect(page.locator(rows).last).to_contain_text(f"#{5000 + PRESSES}")
    page.go_back()
    expect(page.locator("[data-step]")).to_contain_text("Step 5,000 of 10,000")


def test_a_step_is_small_and_touches_only_what_differs(open_page, path):
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
        arrive(page, rf"\?at={step}$")
        assert len(gzip.compress(response.value.body())) < MOST_BYTES
        touched = page.evaluate(TOUCHED)
        assert sum(touched.values()) < MOST_NODES, (step, touched)
        assert (first_cell.get_attribute("id") != before) == moves
        assert page.evaluate(STALE) == []
    assert page.evaluate("copies") == 0


def test_the_focus_stays_on_its_message(open_page, path):
    page = open_page(f"{path}?at=5000")
    row = page.locator("#kept-4990 .hit")
    row.focus()
    row.evaluate("button => (window.before = button)")
    for step in (5001, 5002):
        page.keyboard.press("ArrowRight")
        expect(page.locator(f"#kept-{step}")).to_be_visible()
    assert row.evaluate("button => button === window.before && button === document.activeElement")


def test_typed_text_stays_with_its_caret_and_its_verdict(open_page, path):
    """The verdict is not taken back before the one on the next step comes."""
    page = open_page(f"{path}?at=5000")
    text = page.get_by_label("Message", exact=True)
    text.fill("how many are there?")
    text.evaluate("field => field.setSelectionRange(4, 8)")
    verdict = page.locator("#verdict")
    expect(verdict).to_contain_text("70 / 70")
    verdict.evaluate("""verdict => {
      window.said = [];
      const note = () => window.said.push(verdict.textContent);
      new MutationObserver(note).observe(verdict, { childList: true, subtree: true });
    }""")
    page.get_by_role("link", name="Step forward").evaluate("link => link.click()")
    expect(page.locator("#kept-5001")).to_be_visible()
    expect(text).to_have_value("how many are there?")
    expect(text).to_be_focused()
    assert text.evaluate("field => [field.selectionStart, field.selectionEnd]") == [4, 8]
    assert not any("Preview shows" in words for words in page.evaluate("window.said"))


def test_details_stay_open_until_another_message_is_chosen(open_page, demo_conversations):
    page = open_page("/c/order-7741/?at=40&msg=20")
    details = page.locator("#why details", has_text="Redact this message…")
    details.locator("summary").click()
    page.keyboard.press("ArrowRight")
    arrive(page, "at=41")
    expect(page.locator("[data-place]")).to_have_attribute("data-at", "41")
    expect(details).to_have_attribute("open", "")
    page.keyboard.press("j")
    expect(page.locator("#why")).to_contain_text("#21")
    assert details.get_attribute("open") is None


def test_a_link_that_leads_elsewhere_after_a_step_keeps_the_focus(open_page, demo_conversations):
    page = open_page("/c/order-7741/?at=40&msg=20")
    following = page.get_by_role("link", name="Next message")
    following.focus()
    for seq in (21, 22):
        page.keyboard.press("Enter")
        arrive(page, f"msg={seq}$")
        expect(page.locator("#why")).to_contain_text(f"#{seq}")
        expect(following).to_be_focused()


def test_of_several_backs_the_last_wins(open_page, demo_conversations):
    """The page of the first one arrives late, and does not replace the page of the second."""
    page = open_page("/c/order-7741/?at=10")
    for step in (11, 12):
        page.get_by_role("link", name="Step forward").click()
        arrive(page, f"at={step}$")
    page.route("**/?at=11", lambda route: None)
    page.go_back()
    with page.expect_event("requestfailed", lambda request: "at=11" in request.url, timeout=5_000):
        page.go_back()
    expect(page.locator("[data-step]")).to_contain_text("Step 10 of")
    page.unroute("**/?at=11")


def test_the_playhead_of_a_simulation_stays_at_its_last_draft(open_page, demo_conversations):
    key = services.keep_trial("order-7741", users("one", "two"))
    page = open_page(f"/c/order-7741/?at=30&trial={key}")
    for step in (31, 30):
        page.keyboard.press("ArrowRight" if step == 31 else "ArrowLeft")
        arrive(page, f"at={step}")
        expect(page.locator(f"#cells-{step + 2}.is-draft .playhead b")).to_have_text("draft")
        expect(page.locator("#past rect")).to_have_attribute("width", str(step + 2))
        expect(page.locator("[data-step] b")).to_have_text(str(step))


@pytest.mark.parametrize("pause", [0, 60])
def test_no_press_of_a_key_is_lost_however_quick(open_page, demo_conversations, pause):
    """Each press counts from the step that earlier presses requested, shown or not yet."""
    page = open_page("/c/order-7741/?at=58&msg=20")
    page.keyboard.type("j" * 5, delay=pause)
    arrive(page, r"msg=25$")
    page.keyboard.type("k" * 2, delay=pause)
    arrive(page, r"msg=23$")
    before = evictions_of("order-7741")
    page.keyboard.type("[" * 4, delay=pause)
    arrive(page, rf"at={before[-4]}&msg=23$")
    page.keyboard.type("]" * 2, delay=pause)
    arrive(page, rf"at={before[-2]}&msg=23$")
    expect(page.locator("[data-step] b")).to_have_text(str(before[-2]))


def test_a_held_leap_ends_when_its_key_is_released(open_page, demo_conversations, between_requests):
    """It is one movement, to where it began Back leads."""
    before = evictions_of("order-7741")
    page = open_page("/c/order-7741/")
    with between_requests, page.expect_request(f"**/?at={before[-1]}"):
        for _ in range(PRESSES):
            page.keyboard.down("[")
        page.keyboard.up("[")
    arrive(page, rf"at={before[-2]}$")
    page.go_back()
    expect(page.locator("[data-step]")).to_contain_text("Step 58 of 58")
    arrive(page, "/c/order-7741/$")


def test_presses_go_on_beyond_the_part_of_the_history_that_is_shown(open_page, path):
    page = open_page(f"{path}?at=9000&msg=5000")
    page.keyboard.type("j" * 40)
    arrive(page, r"msg=5040$", timeout=60_000)  # each press is a request


def parameters_of(page) -> dict[str, list[str]]:
    """The parameters of the address of a page."""
    return parse_qs(urlsplit(page.url).query)


@pytest.mark.parametrize("shown", ["", "msg", "find", "with", "trial"])
def test_the_brackets_go_to_the_next_eviction_whatever_is_shown_beside_the_step(
    open_page, demo_conversations, shown
):
    """Also while a message is selected, a phrase is searched, or messages are simulated."""
    trial = services.keep_trial("order-7741", [UserMessage("What if?")])
    chosen = {"": "", "msg": "26", "find": "A-1182", "with": "30", "trial": trial}[shown]
    page = open_page(f"/c/order-7741/?at=43&{shown}={chosen}")
    for key, step in (("[", 42), ("]", 43)):
        page.keyboard.press(key)
        expect(page.locator(".tape__step")).to_contain_text(f"Step {step}")
        page.wait_for_url(f"**at={step}**")
        assert parameters_of(page) == {"at": [str(step)]} | ({shown: [chosen]} if shown else {})


def test_buttons_go_there_on_a_phone_and_without_javascript(open_page, demo_conversations):
    page = open_page("/c/order-7741/?at=43&msg=26", javascript=False, **PHONE)
    for name, step in ((BACK, 42), (ON, 43)):
        page.get_by_role("link", name=name).click()
        expect(page.locator(".tape__step")).to_contain_text(f"Step {step}")
        assert parameters_of(page) == {"at": [str(step)], "msg": ["26"]}
    page.goto(f"{page.url}&at=0")
    expect(page.get_by_role("link", name=BACK)).to_be_disabled()
    expect(page.get_by_role("link", name=ON)).to_be_enabled()


def evictions_of(memory_id: str) -> list[int]:
    """The steps at which messages left, before the last one."""
    last = conversations.memory(memory_id).last_step
    left = [n for n in range(1, last) if steps.step(memory_id, n).change.evicted]
    assert len(left) > 5
    return left
