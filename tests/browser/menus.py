"""The menus of the bar."""

from __future__ import annotations

from playwright.sync_api import Page


def open_menu(page: Page, name: str) -> None:
    """Open the menu View or More. On a narrow screen, what View has is in More."""
    view, more = page.locator(".topbar__end .menu"), page.locator(".nav .menu")
    menu = view if name == "View" and view.is_visible() else more
    if menu.get_attribute("open") is None:
        menu.locator("summary").click()


def choose(page: Page, name: str, menu: str = "View") -> None:
    """Press a button of a menu."""
    open_menu(page, menu)
    page.locator(".topbar").get_by_role("button", name=name).click()
