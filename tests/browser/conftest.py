"""A real browser on a real server: a console error or a foreign request fails the test."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from functools import cache

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.conf import settings
from django.contrib.staticfiles import handlers
from django.core.handlers.wsgi import WSGIHandler
from django.core.servers import basehttp
from django.core.signals import request_finished, request_started
from django.test import Client
from django.test.utils import override_settings
from playwright.sync_api import BrowserContext, Page, expect, sync_playwright

from inspector import demo
from inspector.access import get_account
from inspector.conversation import guide

from .chromium import chromium, launch

COOKIE = settings.SESSION_COOKIE_NAME

# How long a page may take is no claim of these tests: a slow machine is waited for.
expect.set_options(timeout=15_000)

# Pages of one site share a process of the browser while one of them is open, and with it what is
# compiled and cached: one that is empty stays open in each window, for each host of test servers.
HOSTS = ("localhost", "127.0.0.1")

# What only a whole window can have; all else can be set for each of its pages.
OF_WINDOWS = {"java_script_enabled", "locale"}

# What axe finds wrong with a page, by its options. Of elements that are painted alike, with the
# same colour, size and weight on the same backgrounds, it is asked for the contrast of the first
# three: a page paints in few ways. The buttons that cover rows and show nothing have no size
# meanwhile: axe says nothing of the colours of what is covered.
FAULTS = """options => {
  const backgrounds = new Map();
  const behind = (element) => {
    if (element && !backgrounds.has(element)) {
      const { backgroundColor, backgroundImage, opacity } = getComputedStyle(element);
      const ways = [backgroundColor, backgroundImage, opacity, behind(element.parentElement)];
      backgrounds.set(element, ways.join());
    }
    return backgrounds.get(element);
  };
  const painted = (element) => {
    const { color, fontSize, fontWeight } = getComputedStyle(element);
    const isDisabled = element.matches(":disabled, :disabled *");
    return [color, fontSize, fontWeight, isDisabled, behind(element)].join();
  };
  const isText = (node) => node.nodeType === Node.TEXT_NODE && node.data.trim();
  const isShown = (element) =>
    element.checkVisibility({opacityProperty: true}) &&
    element.getBoundingClientRect().width > 1 &&
    (element.matches("input, select, textarea") || [...element.childNodes].some(isText));
  const ways = {};
  for (const element of [...document.querySelectorAll("body *")].filter(isShown)) {
    const way = painted(element);
    ways[way] = (ways[way] ?? 0) + 1;
    element.toggleAttribute("data-alike", ways[way] > 3);
  }
  axe.configure({rules: [{id: "color-contrast", selector: "body :not([data-alike])"}]});
  const size = (transform) => {
    for (const cover of document.querySelectorAll(".hit")) cover.style.transform = transform;
  };
  size("scale(0)");
  return axe.run({...options, resultTypes: ["violations"]}).then(found => found.violations)
    .finally(() => {
      size("");
      const marked = document.querySelectorAll("[data-alike]");
      for (const each of marked) each.removeAttribute("data-alike");
    });
}"""
COLOURS = {"runOnly": ["color-contrast"]}

# Waits until no colour is still fading into that of another scheme.
FADED = """() => Promise.allSettled(document.getAnimations().map(each => each.finished))
  .then(() => null)"""

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
    """The windows by their options. Tests share them and thus their cache of styles and scripts.

    Animations end at once, as for people who prefer reduced motion: each frame takes time.
    """
    opened: dict[str, BrowserContext] = {}

    def context(**options) -> BrowserContext:
        key = repr(sorted(options.items()))
        if key not in opened:
            size = {"width": 1440, "height": 900}
            opened[key] = browser.new_context(viewport=size, reduced_motion="reduce", **options)
            for host in HOSTS:
                stay_open(opened[key].new_page(), host)
        return opened[key]

    yield context
    for each in opened.values():
        each.close()


def stay_open(page: Page, host: str) -> None:
    """Shows an empty page of this host, without a request to any server."""
    page.route("**", lambda route: route.fulfill(body=""))
    page.goto(f"http://{host}/")


def new_page(contexts, *, viewport: dict[str, int] | None = None, **options) -> Page:
    """Opens a page in the shared window with these options, or in a window of its own."""
    of_window = {name: options.pop(name) for name in OF_WINDOWS & set(options)}
    page = contexts(**of_window).new_page()
    if viewport:
        page.set_viewport_size(viewport)
    if options:
        page.emulate_media(**options)
    return page


def tour_ended(url: str) -> dict[str, str]:
    """Return the cookie of somebody who has ended the tour of the examples."""
    return {"name": guide.COOKIE, "value": guide.ENDED, "url": url}


@pytest.fixture
def demo_conversations(transactional_db, images):
    """The example conversations and the operator, made once by each test process."""

    def make() -> None:
        demo.load()
        get_account("operator")

    images.bring_about("demo", make)


@pytest.fixture(scope="session")
def at_rest():
    """Waits until the live server answers nothing any more: the database is emptied next.

    It counts over all tests: a request may begin in one, and end in the next.
    """
    changed = threading.Condition()
    running = 0

    def count(handler: type | None, by: int) -> None:
        nonlocal running
        if handler and issubclass(handler, WSGIHandler):  # a test client has another, or none
            with changed:
                running += by
                changed.notify_all()

    def started(sender: type | None, **_) -> None:
        count(sender, 1)

    def finished(sender: type | None, **_) -> None:
        count(sender, -1)

    request_started.connect(started)
    request_finished.connect(finished)

    def wait() -> None:
        with changed:
            assert changed.wait_for(lambda: running == 0, timeout=30), f"{running} requests run"

    yield wait
    request_started.disconnect(started)
    request_finished.disconnect(finished)


def session_of_the_operator() -> str:
    """The key of a new session of the operator's."""
    client = Client()
    client.force_login(get_account("operator"))
    return client.cookies[COOKIE].value


# All threads of the live server share the connection of the tests, and with it its transaction.
TURN = threading.Lock()


def in_turns(answer):
    """A middleware that answers one request after another."""

    def middleware(request):
        with TURN:
            return answer(request)

    return middleware


@pytest.fixture
def between_requests():
    """Holds the live server while a test writes to the database and a page is open."""
    return TURN


class KeptFiles(handlers.StaticFilesHandler):
    """Lets the browser cache styles and scripts, as on a deployed site.

    Files of a fresh checkout are so young that it would request each of them again with each page.
    """

    def serve(self, request):
        response = super().serve(request)
        response.headers["Cache-Control"] = "max-age=600"
        return response


@pytest.fixture(scope="session")
def _starting():
    """The settings with which the live server starts, and what serves its files."""
    middleware = ["tests.browser.conftest.in_turns", *settings.MIDDLEWARE]
    starting = ExitStack()
    starting.enter_context(override_settings(MIDDLEWARE=middleware))
    patch = starting.enter_context(pytest.MonkeyPatch.context())
    patch.setattr(handlers, "StaticFilesHandler", KeptFiles)
    return starting


@pytest.fixture(scope="session")
def live_server(_starting, live_server):
    _starting.close()
    with pytest.MonkeyPatch.context() as patch:
        # Else each response waits for the browser to acknowledge its headers.
        patch.setattr(basehttp.WSGIRequestHandler, "disable_nagle_algorithm", True)
        yield live_server


@pytest.fixture
def open_page(contexts, live_server, transactional_db, at_rest):
    """Opens pages: `open_page("/", javascript=False, color_scheme="dark", …)`.

    They are the operator's, unless `signed_in=False`.
    """
    faults: list[str] = []
    pages: list[Page] = []
    session_key = cache(session_of_the_operator)

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

    def open_(
        path: str,
        *,
        javascript: bool = True,
        signed_in: bool = True,
        toured: bool = True,
        **options,
    ):
        page = new_page(contexts, java_script_enabled=javascript, **options)
        pages.append(page)
        page.context.clear_cookies()
        if signed_in:
            cookie = {"name": COOKIE, "value": session_key(), "url": live_server.url}
            page.context.add_cookies([cookie])
        if toured:
            page.context.add_cookies([tour_ended(live_server.url)])
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
    """Opens signed-in pages of the served site; only a lost connection may show in the console,
    and requests that are `refused` with this status.
    """
    pages = []
    faults: list[str] = []

    def note(message, refused: int | None) -> None:
        refusals = [f"status of {refused}", f"Error Code {refused}"] if refused else []
        is_cut = any(words in message.text for words in CUT + refusals)
        if message.type == "error" and not is_cut:
            faults.append(message.text)

    def open_(path: str, width: int = 1440, refused: int | None = None):
        page = new_page(contexts, viewport={"width": width, "height": 900})
        pages.append(page)
        for name, value in served.session().cookies.items():
            page.context.add_cookies([{"name": name, "value": value, "url": served.url}])
        page.context.add_cookies([tour_ended(served.url)])
        page.on("console", lambda message: note(message, refused))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(served.url + path)
        return page

    yield open_
    for page in pages:
        page.close()
    # Not before: a page that is still loading would ask for its stream without a session.
    for page in pages:
        page.context.clear_cookies()
    assert not faults


@pytest.fixture
def violations():
    """What axe finds wrong with a page, in words."""

    def find(page) -> list[str]:
        return axe_faults(page)

    return find


@pytest.fixture
def contrasts():
    """What axe finds wrong with the colours of a page in these schemes, in words."""

    def find(page, schemes: Sequence[str]) -> list[str]:
        found = []
        for scheme in schemes:
            page.emulate_media(color_scheme=scheme)
            page.evaluate(FADED)
            found += [f"{scheme}: {each}" for each in axe_faults(page, COLOURS)]
        return found

    return find


def axe_faults(page, options: dict[str, object] | None = None) -> list[str]:
    if not page.evaluate("'axe' in window"):
        page.evaluate(Axe().axe_script)
    found = page.evaluate(FAULTS, options or {})
    return [f"{v['id']}: {n['html'][:200]}" for v in found for n in v["nodes"]]


@pytest.fixture
def violations_in_both_schemes(violations, contrasts):
    """What axe finds wrong with a page; in the dark scheme with colours only, as all else stays."""

    def find(page) -> list[str]:
        found = violations(page) + contrasts(page, ["dark"])
        page.emulate_media(color_scheme="light")
        return found

    return find
