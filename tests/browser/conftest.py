"""A real browser on a real server: a console error or a foreign request fails the test."""

from __future__ import annotations

import os
import threading

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.conf import settings
from django.core.signals import request_finished, request_started
from django.test import Client
from playwright.sync_api import BrowserContext, Page, sync_playwright

from inspector.access.sign_in_links import get_account

from .chromium import chromium, launch

COOKIE = settings.SESSION_COOKIE_NAME

# What a browser and htmx write to the console when a connection is cut or a request refused.
CUT = [
    "net::ERR_",
    "status of 413",
    "status of 422",
    "status of 503",
    "Error Code 503",
    "htmx:sendError",
    "htmx:afterRequest",
]


@pytest.fixture(scope="package")
def browser():
    """Open for these tests only: Playwright's event loop must not outlast them."""
    path = chromium()
    if not path:
        pytest.skip(
            "no Chromium: install Debian's chromium-headless-shell, or set CHROMIUM to a path"
        )
    # Playwright runs an event loop in this thread; Django's ORM must not mind.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    with sync_playwright() as playwright:
        browser = launch(playwright, path)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def contexts(browser):
    """The windows by their options. Tests share them, and so their cache of styles and scripts."""
    opened: dict[str, BrowserContext] = {}

    def context(**options) -> BrowserContext:
        key = repr(sorted(options.items()))
        if key not in opened:
            opened[key] = browser.new_context(**options)
        return opened[key]

    yield context
    for each in opened.values():
        each.close()


@pytest.fixture
def at_rest():
    """Waits until the live server answers nothing any more: the database is emptied next."""
    changed = threading.Condition()
    running = 0

    def count(by: int) -> None:
        nonlocal running
        with changed:
            running += by
            changed.notify_all()

    def started(**_) -> None:
        count(1)

    def finished(**_) -> None:
        count(-1)

    request_started.connect(started)
    request_finished.connect(finished)

    def wait() -> None:
        with changed:
            assert changed.wait_for(lambda: running == 0, timeout=30)

    yield wait
    request_started.disconnect(started)
    request_finished.disconnect(finished)


def session_of_the_operator() -> str:
    """The key of a new session of the operator's."""
    client = Client()
    client.force_login(get_account("operator"))
    return client.cookies[COOKIE].value


@pytest.fixture
def open_page(contexts, live_server, transactional_db, at_rest):
    """Opens pages: `open_page("/", javascript=False, color_scheme="dark", …)`.

    They are the operator's, unless `signed_in=False`.
    """
    faults: list[str] = []
    pages: list[Page] = []

    def watch(page) -> None:
        page.on("console", lambda m: faults.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on(
            "request",
            lambda request: (
                None
                if request.url.startswith((live_server.url, "data:", "blob:"))
                else faults.append(f"a request left the origin: {request.url}")
            ),
        )

    def open_(path: str, *, javascript: bool = True, signed_in: bool = True, **options):
        options.setdefault("viewport", {"width": 1440, "height": 900})
        context = contexts(java_script_enabled=javascript, **options)
        context.clear_cookies()
        if signed_in:
            key = session_of_the_operator()
            context.add_cookies([{"name": COOKIE, "value": key, "url": live_server.url}])
        page = context.new_page()
        pages.append(page)
        watch(page)
        page.goto(live_server.url + path)
        return page

    yield open_
    for page in pages:
        page.close()
    at_rest()
    assert not faults


@pytest.fixture
def reader(contexts, served):
    """Opens signed-in pages of the served site; only a lost connection may show in the console."""
    pages = []
    faults: list[str] = []

    def note(message) -> None:
        is_cut = any(words in message.text for words in CUT)
        if message.type == "error" and not is_cut:
            faults.append(message.text)

    def open_(path: str, width: int = 1440):
        context = contexts(viewport={"width": width, "height": 900})
        for name, value in served.session().cookies.items():
            context.add_cookies([{"name": name, "value": value, "url": served.url}])
        page = context.new_page()
        pages.append(page)
        page.on("console", note)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(served.url + path)
        return page

    yield open_
    for page in pages:
        page.context.clear_cookies()
        page.close()
    assert not faults


@pytest.fixture
def violations():
    """What axe finds wrong with a page, in words."""

    def find(page) -> list[str]:
        found = Axe().run(page).response["violations"]
        return [f"{v['id']}: {node['html'][:200]}" for v in found for node in v["nodes"]]

    return find
