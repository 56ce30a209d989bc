"""Import and export in the browser: no chosen file is lost, and progress is shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import expect

with_demo = pytest.mark.usefixtures("demo_conversations")


def chats(folder: Path) -> Path:
    """Return a new file with a conversation."""
    path = folder / "chats.json"
    path.write_text('[{"role": "user", "content": "hello"}]')
    return path


def test_a_file_is_imported(open_page, violations, tmp_path):
    file = chats(tmp_path)
    page = open_page("/import/")
    assert violations(page) == []
    page.get_by_label("File").set_input_files(file)
    page.get_by_role("button", name="Import").click()
    expect(page.locator("main").get_by_role("status")).to_contain_text("1 conversation imported")
    assert violations(page) == []
    page.get_by_role("link", name="chats-1").click()
    expect(page.get_by_role("heading", name="chats-1")).to_be_visible()


def test_while_the_server_works_the_button_waits(open_page, tmp_path):
    file = chats(tmp_path)
    page = open_page("/import/")
    held = []
    page.route("**/import/", lambda route: held.append(route))
    page.get_by_label("File").set_input_files(file)
    with page.expect_request("**/import/"):
        page.get_by_role("button", name="Import").click()
    expect(page.get_by_role("button", name="Import")).to_be_disabled()
    expect(page.get_by_role("progressbar", name="Import")).to_be_visible()
    expect(page.locator("[data-working]")).to_contain_text("the file")
    held[0].continue_()
    expect(page.locator("main").get_by_role("status")).to_contain_text("1 conversation imported")


def test_an_error_keeps_the_form_as_it_was_filled_in(reader, served, violations, tmp_path):
    file = chats(tmp_path)
    file.write_text("{")
    page = reader("/import/")
    page.get_by_label("File").set_input_files(file)
    page.get_by_label("Limit", exact=True).fill("7")
    page.get_by_label("IDs begin with").fill("team/")
    page.get_by_role("button", name="Import").click()
    expect(page.get_by_role("alert").filter(has_text="JSON")).to_be_visible()
    assert violations(page) == []
    expect(page.get_by_label("Limit", exact=True)).to_have_value("7")
    expect(page.get_by_label("IDs begin with")).to_have_value("team/")
    file.write_text(json.dumps([{"role": "user", "content": "hello"}]))
    page.get_by_label("File").set_input_files(file)
    page.get_by_role("button", name="Import").click()
    expect(page.get_by_role("link", name="team/1")).to_be_visible(timeout=15_000)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (413, 'larger than 16 MB, the limit of INSPECTOR["UPLOAD_BYTES"]. Import the file with'),
        (503, "database is not available"),
        (0, "connection was lost"),
    ],
)
def test_a_refusal_or_a_lost_connection_is_said_and_can_be_tried_again(
    reader, served, tmp_path, status, words
):
    file = chats(tmp_path)
    page = reader("/import/")
    refuse = lambda route: route.fulfill(status=status, body="no") if status else route.abort()  # noqa: E731
    page.route("**/import/", refuse, times=1)
    page.get_by_label("File").set_input_files(file)
    page.get_by_label("IDs begin with").fill(f"again-{status}-")
    page.get_by_role("button", name="Import").click()
    expect(page.get_by_role("alert").filter(has_text=words)).to_be_visible()
    page.get_by_role("button", name="Import").click()
    expect(page.get_by_role("link", name=f"again-{status}-1")).to_be_visible(timeout=15_000)


@with_demo
def test_a_conversation_is_exported(open_page, violations):
    page = open_page("/c/order-7741/")
    page.get_by_role("link", name="Export").click()
    expect(page.get_by_role("heading", name="Export order-7741")).to_be_visible()
    assert violations(page) == []
    with page.expect_download() as download:
        page.get_by_role("button", name="Download").click()
    assert download.value.suggested_filename == "order-7741-history.json"


@with_demo
@pytest.mark.parametrize("javascript", [True, False])
def test_another_format_is_downloaded_by_one_press(open_page, javascript):
    page = open_page("/c/order-7741/export/", javascript=javascript)
    page.get_by_label("Format").select_option("openai_chat")
    page.get_by_label("Messages").select_option("window")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download").click()
    assert download.value.suggested_filename == "order-7741-window.json"
    assert {"role", "content"} <= json.loads(download.value.path().read_text())[0].keys()


@with_demo
def test_losses_of_a_format_are_shown_when_it_is_chosen(open_page):
    page = open_page("/c/order-7741/export/")
    page.get_by_label("Messages").focus()
    page.get_by_label("Messages").select_option("window")
    expect(page.locator("#export-preview")).not_to_contain_text("57 messages")
    expect(page.get_by_label("Messages")).to_be_focused()
