"""An evidence file in a real browser, from the disk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, expect

from chatmemory import MessageWindow, TokenWindow, UserMessage
from chatmemory.windows.clearing import STUB

from ...conversations import create_and_add
from ...test_clearing import FOUND, SAID
from .test_evidence_file import HOSTILE


@contextmanager
def opened_from_disk(page: Page, file: Path) -> Iterator[tuple[Page, list[str]]]:
    """Download the file of a form; yield it in a browser without a network, and its requests."""
    with page.expect_download() as downloaded:
        page.get_by_role("button", name="Download").click()
    downloaded.value.save_as(file)
    context = page.context.browser.new_context(offline=True)
    try:
        alone = context.new_page()
        asked: list[str] = []
        alone.on("request", lambda request: asked.append(request.url))
        alone.goto(file.as_uri())
        yield alone, asked
    finally:
        context.close()


def test_a_file_is_stepped_through_without_a_network(open_page, demo_conversations, tmp_path):
    page, file = open_page("/c/order-7741/evidence/?at=43"), tmp_path / "evidence.html"
    with opened_from_disk(page, file) as (alone, asked):
        expect(alone.locator("[data-now]")).to_have_text("43")
        alone.locator("#m25").click()
        expect(alone.locator("[data-why]")).to_contain_text("Why did #25 leave?")
        expect(alone.locator(".incident")).to_contain_text("902 tokens would have kept it")
        alone.keyboard.press("Home")
        expect(alone.locator(".incident")).to_be_hidden()
        alone.keyboard.press("End")
        alone.get_by_role("button", name="step 43").click()
        expect(alone.locator("[data-now]")).to_have_text("43")
        alone.keyboard.press("ArrowLeft")
        expect(alone.locator("[data-now]")).to_have_text("42")
        expect(alone.locator("[data-why]")).to_contain_text("It is in memory")
        assert asked == [file.as_uri()]


def test_the_sum_is_bold_and_one_message_is_not_called_messages(
    open_page, transactional_db, tmp_path
):
    create_and_add("m", TokenWindow(35), [UserMessage("a"), UserMessage("word " * 24)])
    page = open_page("/c/m/evidence/")
    with opened_from_disk(page, tmp_path / "evidence.html") as (alone, _):
        expect(alone.locator("[data-load]")).to_have_text("1 message, 32 of 35 tokens")
        rows = alone.locator("[data-why] tr")
        bold = "rows => rows.map(each => getComputedStyle(each.children[0]).fontWeight >= 600)"
        assert rows.evaluate_all(bold) == [*[False] * (rows.count() - 1), True]


def test_a_window_of_messages_is_counted_once(open_page, transactional_db, tmp_path):
    create_and_add("m", MessageWindow(2), [UserMessage(each) for each in "abc"])
    page = open_page("/c/m/evidence/")
    with opened_from_disk(page, tmp_path / "evidence.html") as (alone, _):
        expect(alone.locator("[data-load]")).to_have_text("2 of 2 messages, 10 tokens")


def test_a_cleared_result_is_a_stub_in_memory_only(open_page, transactional_db, tmp_path):
    create_and_add("m", TokenWindow(300, clear_tool_results=1), SAID)
    page = open_page("/c/m/evidence/")
    with opened_from_disk(page, tmp_path / "evidence.html") as (alone, _):
        stub = alone.locator("[data-memory] li", has_text=STUB).last
        number = stub.get_by_role("button").inner_text()
        stub.get_by_role("button").click()
        question = f"Why was the result of {number} cleared?"
        expect(alone.get_by_role("heading", name=question)).to_be_visible()
        result = alone.locator(f"#m{number.removeprefix('#')}")
        expect(result).to_contain_text("result cleared in memory since step")
        expect(result).to_contain_text(FOUND.strip())


def test_hostile_texts_are_harmless_from_a_file(open_page, transactional_db, tmp_path):
    create_and_add("m", MessageWindow(2), [UserMessage(text) for text in HOSTILE])
    page = open_page("/c/m/evidence/")
    with opened_from_disk(page, tmp_path / "evidence.html") as (alone, _):
        alone.locator("#m1").click()
        assert alone.title() == "m, evidence"
        assert alone.locator("img").count() == 0
