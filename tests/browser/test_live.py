"""A page that moves as messages arrive, against a real server process."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect


@pytest.fixture
def reader(browser, served):
    """Opens signed-in pages of the served site."""
    contexts = []

    def open_(path: str):
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        contexts.append(context)
        page = context.new_page()
        page.goto(served.sign_in_link())
        page.goto(served.url + path)
        return page

    yield open_
    for context in contexts:
        context.close()


def test_two_readers_see_a_message_arrive(reader, served):
    served.create("arrives")
    served.say("arrives", "one", "two", "three")
    pages = [reader("/c/arrives/"), reader("/c/arrives/")]
    for page in pages:
        expect(page.get_by_text("live", exact=True)).to_be_visible()
    served.say("arrives", "the fourth")
    for page in pages:
        expect(page.locator(".tape__step")).to_contain_text("Step 4 of 4")
        expect(page.locator(".ghosts")).to_contain_text("one")
        expect(page.locator(".tape__say")).to_contain_text("1 message left")


def test_a_reader_in_the_past_is_told_and_not_moved(reader, served):
    served.create("past")
    served.say("past", "one", "two")
    page = reader("/c/past/?at=1")
    served.say("past", "three")
    expect(page.get_by_text("1 new step since you looked.")).to_be_visible()
    expect(page.locator(".tape__step")).to_contain_text("Step 1 of 2")
    page.get_by_role("link", name="Go to live").click()
    expect(page.locator(".tape__step")).to_contain_text("Step 3 of 3")


def test_who_is_writing_is_not_disturbed(reader, served):
    served.create("writing")
    served.say("writing", "one")
    page = reader("/c/writing/")
    page.get_by_role("textbox", name="Message").fill("half a thought")
    served.say("writing", "two")
    expect(page.get_by_text("1 new step since you looked.")).to_be_visible()
    expect(page.get_by_role("textbox", name="Message")).to_have_value("half a thought")
    page.get_by_role("textbox", name="Message").fill("")
    page.get_by_role("textbox", name="Message").blur()
    expect(page.locator(".tape__step")).to_contain_text("Step 2 of 2")


def test_a_simulation_stays_until_it_is_discarded(reader, served):
    served.create("simulated")
    served.say("simulated", "one")
    page = reader("/c/simulated/")
    page.get_by_role("textbox", name="Message").fill("what if")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("Simulation from step 1.")).to_be_visible()
    served.say("simulated", "two")
    expect(page.get_by_text("1 new step since you looked.")).to_be_visible()
    page.get_by_role("link", name="Discard").click()
    expect(page.locator(".tape__step")).to_contain_text("Step 2 of 2")


def test_one_step_moves_and_a_jump_does_not(reader, served):
    served.create("jump")
    served.say("jump", "one")
    page = reader("/c/jump/")
    served.say("jump", "two")
    expect(page.locator(".tape__step")).to_contain_text("Step 2 of 2")
    expect(page.locator("#main")).not_to_have_attribute("data-jump", "")
    served.say("jump", "three", "four", "five")
    expect(page.locator(".tape__step")).to_contain_text("Step 5 of 5")
    expect(page.locator("#main")).to_have_attribute("data-jump", "")


def test_a_search_at_the_live_end_is_kept(reader, served):
    served.create("searched")
    served.say("searched", "a needle")
    page = reader("/c/searched/?find=needle")
    served.say("searched", "hay")
    expect(page.locator(".tape__step")).to_contain_text("Step 2 of 2")
    expect(page.locator("input[name=find]")).to_have_value("needle")
    assert page.url.endswith("/c/searched/?find=needle")


def test_a_refused_stream_is_tried_again(reader, served):
    served.create("refused")
    served.say("refused", "one")
    page = reader("/c/refused/")
    page.route("**/live/*", lambda route: route.fulfill(status=503), times=1)
    page.reload()
    expect(page.get_by_text("connection lost, trying again")).to_be_visible()
    served.say("refused", "two")
    expect(page.locator(".tape__step")).to_contain_text("Step 2 of 2", timeout=15_000)


def test_a_lost_connection_is_shown_and_made_good(reader, served):
    served.create("lost")
    served.say("lost", "one")
    page = reader("/c/lost/")
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    served.stop()
    expect(page.get_by_text("connection lost, trying again")).to_be_visible()
    served.start()
    served.say("lost", "two")
    expect(page.locator(".tape__step")).to_contain_text("Step 2 of 2", timeout=15_000)
    expect(page.get_by_text("live", exact=True)).to_be_visible()
