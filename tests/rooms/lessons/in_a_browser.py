"""Lessons as people take them: by keyboard, without JavaScript, on a phone and on a projector."""

from __future__ import annotations

import re
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from playwright.sync_api import expect

from inspector.rooms.lessons.catalogue import catalogue
from inspector.rooms.lessons.file import lesson_file
from inspector.rooms.lessons.lesson import Ask

from ...browser.addresses import arrive
from ...browser.conftest import new_page

LESSONS = catalogue().lessons
STRANGER = {"signed_in": False}
PHONE = {"viewport": {"width": 390, "height": 844}, **STRANGER}
PROJECTOR = {"viewport": {"width": 1920, "height": 1080}, **STRANGER}
# How often to press Tab, or Shift and Tab if it is negative, until an element has the focus.
TABS = """target => {
  const tabbable = "a[href], button, input:not([type=hidden]), textarea, summary, [tabindex='0']";
  const all = [...document.querySelectorAll(tabbable)].filter((each) => each.checkVisibility());
  const from = document.activeElement;
  const isBefore = (one, other) => Boolean(one.compareDocumentPosition(other) & 4);
  const isThere = (each) => from === document.body || isBefore(from, each);
  if (isThere(target)) return all.filter((each) => isThere(each) && !isBefore(target, each)).length;
  return -all.filter((each) => isBefore(each, from) && !isBefore(each, target)).length;
}"""


def tab_to(page, locator) -> None:
    """Press Tab until an element has the focus."""
    tabs = locator.evaluate(TABS)
    for _ in range(abs(tabs)):
        page.keyboard.press("Tab" if tabs > 0 else "Shift+Tab")
    expect(locator).to_be_focused()


def answer(page, moment, is_right: bool) -> None:
    """Answer the question of a step with the keyboard alone."""
    step = moment.step
    match step.question.ask:
        case Ask.LEAVES:
            stays = [
                row.seq for row in moment.before.window.rows if row.seq in moment.after.in_memory
            ]
            picks = moment.leaving if is_right else stays[:1]
            for seq in picks:
                tab_to(page, page.locator(f"input[name=leaves][value='{seq}']"))
                page.keyboard.press("Space")
            tab_to(page, page.locator(f"[name=check][value='{1 if picks else 'none'}']:visible"))
        case Ask.LIMIT:
            rights = [limit == moment.keeping for limit in step.question.limits]
            tab_to(page, page.locator("[name=answer]").nth(rights.index(is_right)))
        case Ask.CHOOSE:
            rights = [moment.holds(choice) for choice in step.question.choices]
            tab_to(page, page.locator("[name=answer]").nth(rights.index(is_right)))
    page.keyboard.press("Enter")


# They ask each kind of question. The steps of all lessons are answered in tests/lessons.
BY_KEYBOARD = ["message-window", "tool-calls"]


def test_the_lessons_that_are_done_by_keyboard_ask_each_kind_of_question():
    assert {moment.question.ask for slug in BY_KEYBOARD for moment in LESSONS[slug].moments} == {
        *Ask
    }


@pytest.mark.parametrize("slug", BY_KEYBOARD)
def test_a_lesson_is_done_by_keyboard_wrong_and_right(open_page, slug):
    """Each kind of question wrong once: tests/lessons answers all questions wrong."""
    page = open_page(f"/learn/{slug}/", **STRANGER)
    headline = page.locator(".answer__headline")
    asked = set()
    for moment in LESSONS[slug].moments:
        expect(page.locator(".path .is-on > .b")).to_have_text(str(moment.number))
        if moment.question.ask not in asked:
            asked.add(moment.question.ask)
            answer(page, moment, is_right=False)
            expect(headline).to_be_focused()
            expect(headline).not_to_contain_text("Right.")
            tab_to(page, page.get_by_role("link", name="Try again"))
            page.keyboard.press("Enter")
            expect(page.locator(".ask__q")).to_be_focused()
        answer(page, moment, is_right=True)
        expect(headline).to_contain_text("Right.")
        expect(headline).to_be_focused()
        if moment.number < len(LESSONS[slug].moments):
            page.keyboard.press("ArrowRight")
    expect(page.locator(".finish")).to_contain_text(LESSONS[slug].lesson.remember)
    page.goto(page.url.partition("/learn/")[0] + "/learn/")
    expect(page.locator(".lessons .is-done")).to_have_count(1)


def test_picked_messages_are_named(open_page):
    page = open_page("/learn/tool-calls/?step=2", **STRANGER)
    for seq in (3, 4, 5):
        page.get_by_role("checkbox", name=f"#{seq} leaves").check()
    expect(page.locator("[data-picked]")).to_have_text("You picked #3, #4 and #5.")
    page.get_by_role("checkbox", name="#4 leaves").uncheck()
    expect(page.locator("[data-picked]")).to_have_text("You picked #3 and #5.")


def test_a_lesson_without_javascript(open_page):
    page = open_page("/learn/", javascript=False, **STRANGER)
    page.get_by_role("link", name="Why do tool results vanish together?", exact=True).click()
    page.get_by_role("link", name="Skip", exact=True).click()
    for seq in (3, 4):
        page.get_by_role("checkbox", name=f"#{seq} leaves").check()
    page.get_by_role("button", name="Check my answer").click()
    expect(page.locator(".answer__headline")).to_have_text("Almost. #5 leaves, too.")
    page.get_by_role("link", name="Next", exact=True).click()
    page.get_by_role("button", name="None", exact=True).click()
    expect(page.locator(".answer__headline")).to_have_text("Right.")
    page.get_by_role("link", name="Present").click()
    page.get_by_role("link", name="Next", exact=True).click()
    expect(page.locator(".screen__foot")).to_contain_text("2 of")


def test_the_playground_without_javascript(open_page):
    page = open_page("/learn/playground/", javascript=False, **STRANGER)
    page.get_by_role("textbox", name="Chat").fill("user: one\nai: two\nuser: three")
    page.get_by_role("button", name="Play this chat").click()
    expect(page.locator(".board__caption")).to_contain_text("User message #3 arrived. It fits.")
    page.get_by_role("link", name="Step back").click()
    expect(page.locator("#transport")).to_contain_text("2 of 3")
    page.get_by_role("slider").fill("1")
    page.get_by_role("button", name="Set").click()
    expect(page.locator(".pane--memory")).to_contain_text("1 of 1")
    page.get_by_role("link", name="Link that asks").click()
    page.get_by_role("checkbox", name="#2 leaves").check()
    page.get_by_role("button", name="Check my answer").click()
    expect(page.locator(".answer__headline")).to_have_text("Right. #2 leaves.")


def test_the_playground_keeps_the_line_breaks_before_a_chat(open_page):
    page = open_page("/learn/playground/", **STRANGER)
    chat = page.get_by_role("textbox", name="Chat")
    chat.fill("\n\nuser: one")
    page.get_by_role("button", name="Play this chat").click()
    expect(page.locator(".board__caption")).to_contain_text("User message #1 arrived.")
    expect(chat).to_have_value("\n\nuser: one")


def test_the_playground_follows_the_slider_and_its_link_holds_all_of_it(open_page):
    page = open_page("/learn/playground/?sample=tool-calls", **STRANGER)
    slider = page.get_by_role("slider")
    slider.focus()
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    expect(page.locator(".play output")).to_have_text("3")
    expect(page.locator(".pane--memory")).to_contain_text("of 3")
    arrive(page, "limit=3")
    expect(slider).to_be_focused()
    page.get_by_role("link", name="Step back").click()
    expect(page.locator("#transport")).to_contain_text("8 of 9")
    link = page.get_by_role("link", name="Link to this").get_attribute("href")
    shown = page.locator("#board").inner_text()
    other = open_page(link, **STRANGER)
    assert other.locator("#board").inner_text() == shown
    other.get_by_role("link", name="Token window").click()
    expect(other.locator(".play label")).to_have_text("Limit in tokens")
    other.locator("#main").press("ArrowLeft")
    expect(other.locator("#transport")).to_contain_text("7 of 9")


def test_a_projector_is_turned_by_keys_and_waits_for_the_answer(open_page):
    page = open_page("/learn/tool-calls/present/", **PROJECTOR)
    at = page.locator(".screen__foot")
    for number, key in enumerate(["ArrowRight", "PageDown", "Space", "ArrowRight"], 2):
        expect(at).to_contain_text(f"{number - 1} of")
        page.keyboard.press(key)
    expect(at).to_contain_text("5 of")
    for number, key in ((4, "PageUp"), (3, "ArrowLeft")):
        page.keyboard.press(key)
        expect(at).to_contain_text(f"{number} of")
    expect(page.get_by_role("heading")).to_have_text(re.compile("Which message leaves"))
    expect(page.locator(".is-gone")).to_have_count(0)
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("heading")).to_have_text("#2 leaves.")
    expect(page.locator(".is-gone")).to_have_count(1)


# The height of each screen of a lesson, and its smallest type. All are fetched first: the browser
# paints none of those that are measured one after the other.
SCREENS = """async () => {
  const measured = [];
  const place = document.querySelector(".screen__foot span").textContent;
  const total = Number(place.match(/of (\\d+)/)[1]);
  const screens = [];
  for (let number = 1; number <= total; number += 1) {
    const html = await (await fetch(`?screen=${number}`)).text();
    screens.push(new DOMParser().parseFromString(html, "text/html").querySelector("#screen"));
  }
  for (const next of screens) {
    document.querySelector("#screen").replaceWith(next);
    const texts = [...next.querySelectorAll("h1, p, .tx, .polls li, .cell span")];
    const shown = texts.filter((text) => text.checkVisibility());
    const sizes = shown.map((text) => parseFloat(getComputedStyle(text).fontSize));
    measured.push([document.documentElement.scrollHeight, Math.min(...sizes)]);
  }
  return measured;
}"""


def test_every_screen_fits_a_projector_and_is_large(open_page):
    page = open_page("/learn/", **PROJECTOR)
    for slug in LESSONS:
        page.goto(page.url.partition("/learn/")[0] + f"/learn/{slug}/present/")
        measured = page.evaluate(SCREENS)
        assert len(measured) >= 3 * len(LESSONS[slug].moments)
        assert max(height for height, _ in measured) <= 1080, slug
        assert min(size for _, size in measured) >= 1080 / 35, slug


ADDRESSES = [
    "/learn/",
    "/learn/tool-calls/?step=2",
    "/learn/tool-calls/?step=2&leaves=3&check=1",
    "/learn/memory-vs-history/?step=3&answer=2",
    "/learn/token-window/?step=4&answer=70",
    "/learn/tool-calls/present/?screen=7",
    "/learn/what-a-provider-refuses/present/?screen=4",
    "/learn/playground/?sample=token-window",
]


@pytest.mark.parametrize(("scheme", "options"), [("light", STRANGER), ("dark", PHONE)])
def test_axe_finds_nothing_and_nothing_is_too_wide(open_page, violations, scheme, options):
    page = open_page("/learn/", color_scheme=scheme, **options)
    for address in ADDRESSES:
        page.goto(page.url.partition("/learn/")[0] + address)
        assert violations(page) == [], address
        width = page.viewport_size["width"]
        assert page.evaluate("document.documentElement.scrollWidth") <= width, address


def test_on_a_phone_the_answer_is_checked_below_the_messages(open_page):
    page = open_page("/learn/tool-calls/?step=2", **PHONE)
    page.get_by_role("checkbox", name="#3 leaves").check()
    button = page.get_by_role("button", name="Check my answer")
    expect(button).to_have_count(1)
    assert button.bounding_box()["height"] >= 40
    button.click()
    expect(page.locator(".answer__headline")).to_be_in_viewport()


class Course(SimpleHTTPRequestHandler):
    """A page of another site, which shows the address after ? in a frame."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        url = self.path.partition("?")[2]
        self.wfile.write(f'<iframe src="{url}" width="100%" height="850"></iframe>'.encode())

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def serving_courses():
    """The port of a server of such pages: 127.0.0.1 and localhost are two other sites."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Course) as server:
        Thread(target=server.serve_forever).start()
        try:
            yield server.server_port
        finally:
            server.shutdown()


def test_a_lesson_is_done_in_a_page_of_another_site(contexts, live_server, settings, at_rest):
    page = new_page(contexts, viewport={"width": 1280, "height": 900})
    page.context.clear_cookies()
    with serving_courses() as port:
        school = f"http://127.0.0.1:{port}"
        settings.INSPECTOR = {**settings.INSPECTOR, "EMBED": [school]}
        page.goto(f"{school}/?{live_server.url}/learn/message-window/")
        frame = page.frame_locator("iframe")
        frame.get_by_role("checkbox", name="#1 leaves").check()
        frame.get_by_role("button", name="Check my answer").first.click()
        expect(frame.locator(".answer__headline")).to_contain_text("Right.")
        frame.get_by_role("link", name="Next", exact=True).click()
        expect(frame.locator(".path .is-on > .b")).to_have_text("2")
        frame.get_by_role("link", name="Lesson 2 of 10").click()
        expect(frame.get_by_role("heading", name="Lessons")).to_be_visible()
        expect(frame.locator(".topbar")).to_have_count(0)
        assert page.context.cookies() == []
        page.close()
    at_rest()


def test_a_third_site_cannot_frame_a_lesson(contexts, live_server, settings, at_rest):
    page = new_page(contexts)
    refused: list[str] = []
    page.on("console", lambda message: refused.append(message.text))
    with serving_courses() as port:
        settings.INSPECTOR = {**settings.INSPECTOR, "EMBED": [f"http://127.0.0.1:{port}"]}
        page.goto(f"http://localhost:{port}/?{live_server.url}/learn/message-window/")
        assert page.frames[1].locator("h1").count() == 0
        assert any("frame-ancestors" in each for each in refused), refused
        page.close()
    at_rest()


def opened_file(contexts, slug: str, tmp_path, **options):
    """The file of a lesson, opened from disk."""
    file = tmp_path / f"{slug}.html"
    file.write_text(lesson_file(LESSONS[slug]), "utf-8")
    page = new_page(contexts, **options)
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    faults: list[str] = []
    page.on("console", lambda m: faults.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(file.as_uri())
    return page, requested, faults


@pytest.mark.parametrize("slug", BY_KEYBOARD)
def test_the_file_of_a_lesson_is_done_by_keyboard_wrong_and_right(contexts, slug, tmp_path):
    phone = {"viewport": {"width": 390, "height": 844}}
    page, requested, faults = opened_file(contexts, slug, tmp_path, **phone)
    headline = page.locator(".answer__headline")
    for moment in LESSONS[slug].moments:
        expect(page.locator(".path .is-on > .b")).to_have_text(str(moment.number))
        answer(page, moment, is_right=False)
        expect(headline).to_be_focused()
        expect(headline).not_to_contain_text("Right.")
        tab_to(page, page.get_by_role("link", name="Try again"))
        page.keyboard.press("Enter")
        expect(page.locator(".ask__q")).to_be_focused()
        answer(page, moment, is_right=True)
        expect(headline).to_contain_text("Right.")
        if moment.number < len(LESSONS[slug].moments):
            tab_to(page, page.get_by_role("link", name="Next", exact=True))
            page.keyboard.press("Enter")
    expect(page.locator(".finish")).to_contain_text(LESSONS[slug].lesson.remember)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert requested == [page.url.partition("#")[0]]
    assert faults == []
    page.close()


def test_the_file_of_a_lesson_without_javascript(contexts, tmp_path):
    page, _, _ = opened_file(contexts, "tool-calls", tmp_path, java_script_enabled=False)
    expect(page.locator(".path > li")).to_have_count(len(LESSONS["tool-calls"].moments))
    expect(page.locator("main")).to_contain_text(LESSONS["tool-calls"].lesson.remember)
    page.close()
