"""Django's admin, where accounts are made: no fault of its pages, in both schemes."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group

from .conftest import VIOLATIONS, asked_of_axe

# It reads styles by writing some into the page, which the Content-Security-Policy forbids.
WITHOUT_STYLES = VIOLATIONS.replace("axe.run({", "axe.run({preload: false, ")
PAGES = [
    "",
    "auth/",
    "auth/user/",
    "auth/user/add/",
    "auth/user/{user}/change/",
    "auth/user/{user}/password/",
    "auth/user/{user}/history/",
    "auth/user/{user}/delete/",
    "auth/group/",
    "auth/group/add/",
    "auth/group/{group}/change/",
    "password_change/",
]


@pytest.mark.parametrize("path", PAGES)
def test_axe_finds_nothing(open_page, contrasts, operator, path):
    group = Group.objects.get(name="Viewers")
    page = open_page("/admin/" + path.format(user=operator.pk, group=group.pk))
    assert asked_of_axe(page, WITHOUT_STYLES) + contrasts(page, ["light", "dark"]) == []


def test_a_page_names_its_icon(open_page, operator):
    """A browser asks for /favicon.ico otherwise, which is not there."""
    icon = open_page("/admin/").locator("link[rel=icon]").get_attribute("href")
    assert icon.endswith("favicon.svg")
