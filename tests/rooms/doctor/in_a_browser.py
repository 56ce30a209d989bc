"""A repair in a browser: previewed, made, and taken back; also without JavaScript."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from chatmemory import (
    AiMessage,
    MessageWindow,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
)
from inspector.rooms.doctor.choosing import choices, choose_providers

from ...conversations import create_and_add
from .diagnosed import diagnosed

PHONE = {"width": 390, "height": 844}


def make_ill() -> None:
    call = AiMessage(None, [ToolExecutionRequest("1", "find", "{}")])
    orphan = ToolExecutionResultMessage("9", "find", "found")
    hi = UserMessage("Where is it?")
    create_and_add("ill", MessageWindow(20), [hi, call, hi, orphan, hi])
    choose_providers("", ["openai"], actor="ada")
    diagnosed()


@pytest.mark.parametrize("javascript", [True, False])
def test_a_repair_is_previewed_made_and_undone(open_page, demo_conversations, javascript):
    make_ill()
    page = open_page("/doctor/?rule=dangling_call", javascript=javascript)
    page.get_by_role("link", name="Repair ill").click()
    expect(page.locator("#preview")).to_contain_text("Tool call #2: a placeholder")
    expect(page.locator("#preview")).to_contain_text("Tool result #4: left out")
    page.get_by_label("Reason, for the ledger").fill("refused this morning")
    page.get_by_role("button", name="Repair", exact=True).click()
    repaired = page.get_by_role("status").filter(has_text="Repaired for OpenAI")
    expect(repaired).to_be_visible()
    assert diagnosed("ill").refused_by == ()
    repaired.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("refused by OpenAI").first).to_be_visible()
    assert diagnosed("ill").refused_by == ("openai",)


def test_providers_are_chosen_at_the_first_visit(open_page, demo_conversations):
    page = open_page("/doctor/")
    User.objects.update(is_superuser=True)
    page.reload()
    expect(page.locator("input[value=openai]")).to_be_checked()  # the demo's policies count for it
    page.locator("input[value=openai]").uncheck()
    page.locator("input[value=anthropic]").check()
    page.get_by_role("button", name="Show what needs me").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Nothing would fail now.")
    assert list(choices().by_prefix[""].use.models) == ["anthropic"]


def test_axe_finds_nothing(open_page, demo_conversations, violations, violations_in_both_schemes):
    make_ill()
    page = open_page("/doctor/")
    for path in ("/doctor/", "/doctor/providers/", "/doctor/rules/", "/c/ill/repair/"):
        page.goto(page.url.split("/", 3)[0] + "//" + page.url.split("/", 3)[2] + path)
        assert violations_in_both_schemes(page) == []
        page.set_viewport_size(PHONE)
        assert violations(page) == []
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= PHONE["width"]
        page.set_viewport_size({"width": 1280, "height": 800})
