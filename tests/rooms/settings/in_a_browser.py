"""The pages of policies and tokens in a browser."""

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


def test_another_kind_of_policy_shows_its_own_options(open_page, violations_in_both_schemes):
    page = open_page("/policies/")
    page.get_by_label("Ids that begin with").first.fill("shop-")
    page.get_by_label("Kind").select_option("message_window")
    expect(page.get_by_text("Limit in messages")).to_be_visible()
    expect(page.get_by_label("When full, first clear tool results")).to_have_count(0)
    expect(page.get_by_role("button", name="Show options")).to_be_hidden()
    page.get_by_label("Limit in messages").fill("20")
    page.get_by_text("More options").first.click()
    page.get_by_label("After a trim, start memory at a user message").check()
    assert violations_in_both_schemes(page) == []
    page.get_by_role("button", name="Set default policy", exact=True).click()
    expect(page.get_by_role("rowheader", name="shop-")).to_be_visible()
