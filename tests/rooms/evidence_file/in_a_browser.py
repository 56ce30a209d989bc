"""An evidence file in a real browser, from the disk."""

from __future__ import annotations

from playwright.sync_api import expect

from chatmemory import MessageWindow, UserMessage

from ...conversations import create_and_add
from .test_evidence_file import HOSTILE


def test_a_file_is_stepped_through_without_a_network(open_page, demo_conversations, tmp_path):
    page = open_page("/c/order-7741/evidence/?at=43")
    with page.expect_download() as downloaded:
        page.get_by_role("button", name="Download").click()
    file = tmp_path / "evidence.html"
    downloaded.value.save_as(file)
    context = page.context.browser.new_context(offline=True)
    try:
        alone = context.new_page()
        asked: list[str] = []
        alone.on("request", lambda request: asked.append(request.url))
        alone.goto(file.as_uri())
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
    finally:
        context.close()


def test_hostile_texts_are_harmless_from_a_file(open_page, transactional_db, tmp_path):
    create_and_add("m", MessageWindow(2), [UserMessage(text) for text in HOSTILE])
    page = open_page("/c/m/evidence/")
    with page.expect_download() as downloaded:
        page.get_by_role("button", name="Download").click()
    file = tmp_path / "evidence.html"
    downloaded.value.save_as(file)
    context = page.context.browser.new_context(offline=True)
    try:
        alone = context.new_page()
        alone.goto(file.as_uri())
        alone.locator("#m1").click()
        assert alone.title() == "m, evidence"
        assert alone.locator("img").count() == 0
    finally:
        context.close()
