"""The page of tokens in a browser."""

from __future__ import annotations

from playwright.sync_api import expect


def test_a_token_is_made_and_revoked(open_page, violations_in_both_schemes):
    page = open_page("/tokens/")
    page.get_by_label("Name").fill("shop")
    page.get_by_role("button", name="Create a token").click()
    expect(page.locator("main").get_by_role("status")).to_contain_text("cm_")
    assert violations_in_both_schemes(page) == []
    page.get_by_text("Revoke…").click()
    page.get_by_role("button", name="Revoke shop").click()
    expect(page.locator(".tokens")).to_contain_text("revoked")
    assert violations_in_both_schemes(page) == []
