"""Django's admin, where accounts are made: no fault of its pages, in both schemes."""

from __future__ import annotations

from .conftest import axe_faults

# It reads styles by writing some into the page, which the Content-Security-Policy forbids.
WITHOUT_STYLES = {"preload": False}
# A list, a form and their kin; those of groups are made of the same templates.
PAGES = [
    "",
    "auth/user/",
    "auth/user/{user}/change/",
    "auth/user/{user}/password/",
    "auth/user/{user}/delete/",
    "password_change/",
]


def test_axe_finds_nothing(open_page, live_server, contrasts, operator):
    page = open_page("/admin/")
    for path in PAGES:
        page.emulate_media(color_scheme="light")
        page.goto(f"{live_server.url}/admin/{path.format(user=operator.pk)}")
        found = axe_faults(page, WITHOUT_STYLES) + contrasts(page, ["dark"])
        assert found == [], path


def test_a_page_names_its_icon(open_page, operator):
    """Otherwise a browser requests /favicon.ico, which does not exist."""
    icon = open_page("/admin/").locator("link[rel=icon]").get_attribute("href")
    assert icon.endswith("favicon.svg")
