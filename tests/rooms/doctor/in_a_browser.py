"""The doctor in a browser: providers are chosen, and axe finds nothing."""

from __future__ import annotations

from django.contrib.auth.models import User
from playwright.sync_api import expect

from inspector.rooms.doctor.choosing import choices

from .diagnosed import make_ill

PHONE = {"width": 390, "height": 844}


def test_providers_are_chosen_at_the_first_visit(open_page, demo_conversations):
    page = open_page("/doctor/")
    User.objects.update(is_superuser=True)
    page.reload()
    expect(page.locator("input[value=openai]")).to_be_checked()  # the demo's policies count for it
    page.locator("input[value=openai]").uncheck()
    page.locator("input[value=anthropic]").check()
    page.get_by_role("button", name="Save providers").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(
        "Your providers would reject no conversation now."
    )
    assert list(choices().by_prefix[""].use.models) == ["anthropic"]


def test_axe_finds_nothing(open_page, demo_conversations, violations, violations_in_both_schemes):
    make_ill()
    page = open_page("/doctor/")
    for path in ("/doctor/", "/doctor/providers/", "/doctor/rules/"):
        page.goto(page.url.split("/", 3)[0] + "//" + page.url.split("/", 3)[2] + path)
        assert violations_in_both_schemes(page) == []
        page.set_viewport_size(PHONE)
        assert violations(page) == []
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= PHONE["width"]
        page.set_viewport_size({"width": 1280, "height": 800})


def test_the_address_of_a_rule_opens_its_fold(open_page, demo_conversations):
    page = open_page("/doctor/rules/#orphan_result")
    rule = page.locator("details", has=page.locator("#orphan_result"))
    expect(rule.locator("figure").first).to_be_visible()
    expect(page.locator("#dangling_call")).to_be_hidden()
