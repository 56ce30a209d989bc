"""A page that moves as messages arrive, against a real server process."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from ...browser.addresses import arrive

# After how long a page asks again for a stream that was refused, and for a step that failed.
SECONDS_TO_REOPEN, SECONDS_TO_RETRY = 5, 2

# Two pages each; a headless browser shows all of its pages, so they are told that they are hidden.
TABS = 4
BE = """
Object.defineProperty(document, "hidden", {{ configurable: true, value: {} }});
document.dispatchEvent(new Event("visibilitychange"));"""
HIDE, SHOW = BE.format("true"), BE.format("false")


def test_two_readers_see_a_message_arrive(reader, served):
    served.create("arrives", "one", "two", "three")
    pages = [reader("/c/arrives/"), reader("/c/arrives/")]
    for page in pages:
        expect(page.get_by_text("live", exact=True)).to_be_visible()
    served.say("arrives", "the fourth")
    for page in pages:
        expect(page.locator(".tape__step")).to_contain_text("Step 4 of 4")
        expect(page.locator(".just-evicted")).to_contain_text("one")
        expect(page.locator(".tape__say")).to_contain_text("1 message left")
        expect(page.locator("[data-announce]")).to_contain_text("#4 arrived. 1 message left")


def test_a_page_shows_what_is_derived_of_its_step_without_another_change(reader, served):
    served.create("derived", "My order is A-1182.", "well", "well", limit=2)
    page = reader("/c/derived/")
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    served.say("derived", "A-1182!")
    expect(page.locator(".tape__step")).to_contain_text("Step 4 of 4")
    expect(page.locator("#incident")).to_contain_text(
        "A-1182 was repeated by the user after it had left memory"
    )


@pytest.mark.own_server
def test_the_header_becomes_current_without_another_change(reader, served):
    served.create("ill", "hello", limit=9)
    chosen = reader("/doctor/")
    chosen.locator("input[value=openai]").check()
    chosen.get_by_role("button", name="Save providers").click()
    expect(chosen.get_by_role("heading", level=1)).to_contain_text("would reject")
    page = reader("/c/ill/")
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    calls = [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    said = [{"role": "assistant", "tool_calls": calls}, {"role": "user", "content": "and now?"}]
    url = f"{served.url}/api/v1/memories/ill/messages/"
    body = {"messages": said, "format": "openai_chat"}
    served.api.post(url, json=body).raise_for_status()
    expect(page.locator(".tape__step")).to_contain_text("Step 3 of 3")
    expect(page.locator("#pagehead")).to_contain_text("rejected by OpenAI")


def test_many_pages_are_open_at_once_and_one_that_was_hidden_catches_up(reader, served):
    """Over HTTP/1.1: a browser opens six connections to a host, for all of its pages together."""
    served.create("tabs", "one", "two", "three")
    pages = []
    for path in TABS * ["/c/tabs/", "/"]:
        pages.append(reader(path))
        expect(pages[-1].get_by_text("live", exact=True)).to_be_visible()
        pages[-1].evaluate(HIDE)
    served.say("tabs", "the fourth")
    conversation, overview, *_ = pages
    conversation.evaluate(SHOW)
    overview.evaluate(SHOW)
    expect(conversation.locator(".tape__step")).to_contain_text("Step 4 of 4")
    expect(overview.locator("[data-feed]")).to_contain_text("“one”")
    served.say("tabs", "the fifth")
    expect(conversation.locator(".tape__step")).to_contain_text("Step 5 of 5")


def test_a_reader_in_the_past_is_notified_and_not_moved(reader, served):
    served.create("past", "one", "two")
    page = reader("/c/past/?at=1")
    served.say("past", "three")
    expect(page.get_by_text("1 new step since you looked.")).to_be_visible()
    expect(page.locator(".tape__step")).to_contain_text("Step 1 of 2")
    page.get_by_role("link", name="Go to live").click()
    expect(page.locator(".tape__step")).to_contain_text("Step 3 of 3")
    expect(page.get_by_text("1 new step since you looked.")).to_be_hidden()


def test_who_is_writing_is_not_disturbed(reader, served):
    served.create("writing", "one")
    page = reader("/c/writing/")
    page.get_by_role("textbox", name="Message").fill("half a thought")
    served.say("writing", "two")
    expect(page.get_by_text("1 new step since you looked.")).to_be_visible()
    expect(page.get_by_role("textbox", name="Message")).to_have_value("half a thought")
    page.get_by_role("textbox", name="Message").fill("")
    page.get_by_role("textbox", name="Message").blur()
    expect(page.locator(".tape__step")).to_contain_text("Step 2 of 2")


def test_a_simulation_stays_until_it_is_discarded(reader, served):
    served.create("simulated", "one")
    page = reader("/c/simulated/")
    page.get_by_role("textbox", name="Message").fill("what if")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("Simulation from step 1.")).to_be_visible()
    served.say("simulated", "two")
    expect(page.get_by_text("1 new step since you looked.")).to_be_visible()
    page.get_by_role("link", name="Discard").click()
    expect(page.locator(".tape__step")).to_contain_text("Step 2 of 2")


def test_a_simulation_that_is_saved_is_followed_as_a_conversation_of_its_own(reader, served):
    served.create("original", "one")
    page = reader("/c/original/")
    page.get_by_role("textbox", name="Message").fill("what if")
    page.get_by_role("button", name="Preview").click()
    page.get_by_role("textbox", name="ID of the new conversation").fill("saved")
    page.get_by_role("button", name="Save as a new conversation").click()
    page.wait_for_url(f"{served.url}/c/saved/")
    expect(page).to_have_title("saved · Memory inspector")
    expect(page.locator(".tape__step")).to_contain_text("Step 2 of 2")
    served.say("saved", "three")
    expect(page.locator(".tape__step")).to_contain_text("Step 3 of 3")


def test_one_step_moves_and_a_jump_does_not(reader, served):
    served.create("jump", "one")
    page = reader("/c/jump/")
    served.say("jump", "two")
    expect(page.locator(".tape__step")).to_contain_text("Step 2 of 2")
    expect(page.locator("#main")).not_to_have_attribute("data-jump", "")
    served.say("jump", "three", "four", "five")
    expect(page.locator(".tape__step")).to_contain_text("Step 5 of 5")
    expect(page.locator("#main")).to_have_attribute("data-jump", "")


def test_who_reads_further_up_stays_there(reader, served):
    served.create("reading", *(f"message {n}" for n in range(80)), limit=200)
    page = reader("/c/reading/")
    for pane in ("history", "memory"):
        page.locator(f"[data-pane={pane}]").evaluate("pane => pane.scrollTop = 300")
    row = page.locator("[data-pane=memory] [data-seq='20']")
    row.get_by_role("button", name="Why? #20").focus()
    before = row.bounding_box()["y"]
    served.say("reading", "one more")
    expect(page.locator(".tape__step")).to_contain_text("Step 81 of 81")
    assert abs(row.bounding_box()["y"] - before) < 2
    expect(row.get_by_role("button", name="Why? #20")).to_be_focused()


def test_a_chosen_message_does_not_pull_the_reader_back(reader, served):
    served.create("chosen", *(f"message {n}" for n in range(80)), limit=200)
    page = reader("/c/chosen/?msg=10")
    page.locator("[data-pane=memory]").evaluate("pane => pane.scrollTop = pane.scrollHeight")
    expect(page.locator("[data-pane=memory] [data-seq='80']")).to_be_in_viewport()
    served.say("chosen", "one more")
    expect(page.locator("[data-pane=memory] [data-seq='81']")).to_be_in_viewport()
    expect(page.locator("[data-pane=memory] [data-seq='10']")).not_to_be_in_viewport()


def test_a_phone_stays_on_the_pane_that_is_read_and_at_its_end(reader, served):
    served.create("phone", *(f"message {n}" for n in range(40)), limit=40)
    page = reader("/c/phone/", width=390)
    page.get_by_text("History", exact=True).first.click()
    expect(page.locator(".pane--history [data-seq='40']")).to_be_in_viewport()
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    served.say("phone", "one more")
    expect(page.locator(".pane--history [data-seq='41']")).to_be_in_viewport()
    page.evaluate("scrollTo(0, 600)")
    served.say("phone", "and another")
    expect(page.locator(".pane--history [data-seq='42']")).to_be_attached()
    expect(page.locator(".pane--history")).to_be_visible()
    assert page.evaluate("scrollY") == 600


def test_a_search_at_the_live_end_is_kept(reader, served):
    served.create("searched", "a needle")
    page = reader("/c/searched/?find=needle")
    served.say("searched", "hay")
    expect(page.locator(".tape__step")).to_contain_text("Step 2 of 2")
    expect(page.get_by_role("searchbox", name="Does memory still have…?")).to_have_value("needle")
    assert page.url.endswith("/c/searched/?find=needle")


def test_a_refused_stream_is_tried_again(reader, served):
    served.create("refused", "one")
    page = reader("/c/refused/")
    page.clock.install()
    page.route("**/c/*/live/*", lambda route: route.fulfill(status=503), times=1)
    page.reload()
    expect(page.get_by_text("reconnecting")).to_be_visible()
    served.say("refused", "two")
    page.clock.fast_forward(SECONDS_TO_REOPEN * 1000)
    expect(page.locator(".tape__step")).to_contain_text("Step 2 of 2")


@pytest.mark.own_server
def test_a_lost_connection_is_shown_and_made_good(reader, served):
    """On a conversation, and in the feed of the overview."""
    served.create("lost", "restarted", "two", "three")
    page = reader("/c/lost/")
    overview = reader("/")
    feed = overview.locator("[data-feed]")
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    expect(feed.get_by_text("live", exact=True)).to_be_visible()
    served.stop()
    expect(page.get_by_text("reconnecting")).to_be_visible()
    expect(feed.get_by_text("reconnecting")).to_be_visible()
    served.start()
    served.say("lost", "four")
    expect(page.locator(".tape__step")).to_contain_text("Step 4 of 4", timeout=15_000)
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    expect(feed).to_contain_text("“restarted”", timeout=15_000)


@pytest.mark.parametrize("status", [0, 503])
def test_a_step_that_cannot_be_loaded_is_said_and_tried_again(reader, served, status):
    name = f"fails-{status}"
    served.create(name, "one", "two", "three")
    page = reader(f"/c/{name}/?at=3")
    asked = f"**/c/{name}/?at=2*"
    page.route(asked, lambda route: route.fulfill(status=status) if status else route.abort())
    page.get_by_label("Step back").click()
    note = page.get_by_role("alert")
    expect(note).to_contain_text("Not loaded. The")
    expect(page.locator(".tape__step")).to_contain_text("Step 3 of 3")
    page.unroute(asked)
    note.get_by_role("button", name="Try again").click()
    expect(page.locator(".tape__step")).to_contain_text("Step 2 of 3")
    expect(note).to_be_hidden()
    assert page.url.endswith("?at=2")


def test_a_live_page_that_could_not_move_moves_later(reader, served):
    served.create("later", "one")
    page = reader("/c/later/")
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    page.clock.install()
    with page.expect_event("requestfinished", lambda request: request.url.endswith("/c/later/")):
        page.route("**/c/later/", lambda route: route.fulfill(status=503), times=1)
        served.say("later", "two")
    page.clock.fast_forward(SECONDS_TO_RETRY * 1000)
    expect(page.locator(".tape__step")).to_contain_text("Step 2 of 2")
    expect(page.get_by_role("alert")).to_be_hidden()


def test_what_takes_long_is_marked_busy_and_stays_readable(reader, served):
    served.create("slow", "one", "two")
    page = reader("/c/slow/?at=2")
    held = []
    page.route("**/c/slow/?at=1*", lambda route: held.append(route))
    page.get_by_label("Step back").click()
    expect(page.locator(".panes")).to_have_attribute("aria-busy", "true")
    expect(page.locator(".pane--memory").get_by_text("two")).to_be_visible()
    held[0].continue_()
    expect(page.locator(".tape__step")).to_contain_text("Step 1 of 2")
    expect(page.locator(".panes")).not_to_have_attribute("aria-busy", "true")


def test_an_add_that_fails_keeps_the_text_and_offers_no_second_one(reader, served):
    served.create("unsent", "one")
    page = reader("/c/unsent/")
    page.route("**/add/", lambda route: route.abort())
    page.get_by_role("textbox", name="Message").fill("two")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("alert")).to_contain_text("check before you send it again")
    expect(page.get_by_role("button", name="Try again")).to_be_hidden()
    expect(page.get_by_role("textbox", name="Message")).to_have_value("two")


def test_who_is_signed_out_meanwhile_comes_back_to_the_page(reader, served):
    served.create("expired", "one", "two")
    page = reader("/c/expired/?at=2")
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    page.context.clear_cookies()
    page.get_by_label("Step back").click()
    page.wait_for_url("**/sign-in/?next=/c/expired/%3Fat%3D2")
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()


def test_a_selected_message_is_followed_until_it_leaves(reader, served):
    served.create("followed", "one", "two")
    page = reader("/c/followed/")
    page.get_by_role("button", name="Why? #1").first.click()
    arrive(page, r"/c/followed/\?msg=1$")
    served.say("followed", "three", "four")
    expect(page.locator(".tape__step")).to_contain_text("Step 4 of 4")
    expect(page.get_by_role("heading", name="Why did #1 leave?")).to_be_visible()


@pytest.mark.parametrize("stream", ["open", "refused"])
def test_a_deleted_conversation_is_said_and_no_longer_followed(reader, served, stream):
    """Also on a page whose stream has ended, as it does without an ASGI server."""
    name = f"deleted-{stream}"
    served.create(name, "one", "two")
    page = reader(f"/c/{name}/", refused=404)
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    if stream == "refused":
        page.clock.install()
        page.route("**/c/*/live/*", lambda route: route.fulfill(status=503), times=1)
        page.reload()
        expect(page.get_by_text("reconnecting")).to_be_visible()
    served.api.delete(f"{served.url}/api/v1/memories/{name}/").raise_for_status()
    if stream == "refused":
        page.clock.fast_forward(SECONDS_TO_REOPEN * 1000)
    expect_deleted(page)
    expect(page.get_by_text("live", exact=True)).to_be_hidden()
    expect(page.get_by_text("reconnecting")).to_be_hidden()
    expect(page.get_by_role("link", name="Following", exact=True)).to_be_hidden()
    page.get_by_label("Step back").click()
    expect_deleted(page)
    page.get_by_role("alert").get_by_role("link", name="All conversations").click()
    page.wait_for_url(f"{served.url}/")


def test_a_step_on_a_deleted_conversation_says_so_before_the_stream_does(reader, served):
    served.create("stepped", "one", "two")
    page = reader("/c/stepped/", refused=404)
    page.route("**/c/*/live/*", lambda route: route.abort())
    page.reload()
    expect(page.get_by_text("reconnecting")).to_be_visible()
    served.api.delete(f"{served.url}/api/v1/memories/stepped/").raise_for_status()
    page.get_by_label("Step back").click()
    expect_deleted(page)
    expect(page.get_by_text("reconnecting")).to_be_hidden()


@pytest.mark.parametrize("length", [1, 2, 3])
def test_a_conversation_made_anew_while_a_page_was_hidden_is_not_taken_for_the_old_one(
    reader, served, length
):
    name = f"anew-{length}"
    served.create(name, "one", "two")
    # What is derived of it may be kept, and the page asked for again, as it is deleted
    page = reader(f"/c/{name}/", refused=404)
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    page.evaluate(HIDE)
    served.api.delete(f"{served.url}/api/v1/memories/{name}/").raise_for_status()
    served.create(name, *["other"] * length)
    page.evaluate(SHOW)
    expect_deleted(page)
    expect(page.get_by_text("live", exact=True)).to_be_hidden()


def expect_deleted(page) -> None:
    note = page.get_by_role("alert")
    expect(note).to_contain_text("This conversation was deleted.")
    expect(note.get_by_role("button", name="Try again")).to_be_hidden()


def test_following_is_switched_off_and_on(reader, served):
    served.create("switched", "one", "two")
    page = reader("/c/switched/?msg=1")
    page.get_by_role("link", name="Following", exact=True).click()
    expect(page.get_by_role("link", name="Not following")).to_be_visible()
    served.say("switched", "three")
    expect(page.get_by_text("1 new step since you looked.")).to_be_visible()
    expect(page.locator(".tape__step")).to_contain_text("Step 2 of 2")
    page.get_by_role("link", name="Not following").click()
    expect(page.locator(".tape__step")).to_contain_text("Step 3 of 3")
    expect(page.get_by_role("heading", name="Why is #1 still in memory?")).to_be_visible()
    page.get_by_role("textbox", name="Message").fill("half a thought")
    expect(page.get_by_role("link", name="Waits while you write")).to_be_visible()
