"""A repair in a browser: previewed, made, and taken back; also without JavaScript."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from ..doctor.diagnosed import diagnosed, make_ill

PHONE = {"width": 390, "height": 844}


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
    expect(page.get_by_text("rejected by OpenAI").first).to_be_visible()
    assert diagnosed("ill").refused_by == ("openai",)


def test_axe_finds_nothing(open_page, demo_conversations, violations, violations_in_both_schemes):
    make_ill()
    page = open_page("/c/ill/repair/")
    assert violations_in_both_schemes(page) == []
    page.set_viewport_size(PHONE)
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
