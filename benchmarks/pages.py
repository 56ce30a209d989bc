"""Measure pages of large conversations, windows and fleets: their time, as ratios of one run, and
what a step sends and changes.

    .venv/bin/python -m benchmarks.pages

Writes to a SQLite database in a temporary folder. Prints milliseconds beside each ratio. The nodes
that a step changes are counted in Chromium, if there is one.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from playwright.sync_api import sync_playwright

from benchmarks.database import migrated
from tests.browser.chromium import chromium, launch
from tests.browser.touched import COUNT, TOUCHED
from tests.serving import served_by

PART = re.compile(r'\bid="([a-z][a-z0-9-]*)"[^>]*? data-part="([\w-]{6})"')
ROUNDS = 15
STEPS = 12
SHORT, LONG = 100, 10_000
FEW, MANY = 200, 10_000


def fill() -> None:
    from chatmemory import AiMessage, UserMessage, services
    from chatmemory.core.policies import TokenWindow

    def messages(count: int) -> Iterator[UserMessage | AiMessage]:
        for n in range(count):
            kind = UserMessage if n % 2 == 0 else AiMessage
            yield kind(
                f"message {n}: " + "where is my parcel, and when will it come? " * (n % 4 + 1)
            )

    for name, limit, count in (
        ("short", 4_000, SHORT),
        ("long", 4_000, LONG),
        ("wide", 128_000, LONG),
    ):
        services.import_conversation(name, list(messages(count)), TokenWindow(limit))


def fill_fleet(start: int, count: int) -> None:
    from chatmemory import UserMessage, services
    from chatmemory.core.policies import MessageWindow

    for n in range(start, count):
        messages = [UserMessage(f"order {n}, line {line}") for line in range(5)]
        services.import_conversation(f"conversation-{n}", messages, MessageWindow(3))


def cost(client: Any, urls: Iterator[str]) -> float:
    """Return the median response time in milliseconds, without the first request."""
    times = []
    for _ in range(ROUNDS + 1):
        url = next(urls)
        start = time.perf_counter()
        response = client.get(url, headers={"HX-Request": "true"})
        times.append(1000 * (time.perf_counter() - start))
        assert response.status_code == 200, url
    return median(times[1:])


def show(what: str, small: float, large: float) -> None:
    print(f"{what}: {large / small:.2f} times ({small:.0f} and {large:.0f} ms)")


def steps(name: str, last: int) -> Iterator[str]:
    return (f"/c/{name}/?at={at}" for at in range(last - ROUNDS - 5, last))


def same(url: str) -> Iterator[str]:
    while True:
        yield url


def sent(client: Any) -> None:
    """Print what a step sends to a page that tells which parts it holds, against the whole page."""
    whole, least = [], []
    page = client.get(f"/c/long/?at={LONG // 2}").content
    for at in range(LONG // 2 + 1, LONG // 2 + 1 + STEPS):
        parts = {"HX-Request": "true", "Held-Parts": held(page.decode())}
        least.append(len(client.get(f"/c/long/?at={at}", headers=parts).content))
        page = client.get(f"/c/long/?at={at}").content
        whole.append(len(page))
    ratio = median(least) / median(whole)
    print(f"a step of 10,000 messages sends {ratio:.2f} of the page: {max(least):,} bytes at most")


def held(page: str) -> str:
    """Return the parts that a page holds, as its script tells them."""
    return " ".join(f"{id}:{digest}" for id, digest in PART.findall(page))


def touched(folder: str) -> None:
    """Print how many nodes a step adds, removes and alters in a browser."""
    path = chromium()
    if not path:
        return
    with (
        served_by(os.environ["DATABASE_URL"], Path(folder)) as served,
        sync_playwright() as playwright,
        launch(playwright, path) as browser,
    ):
        page = browser.new_page()
        page.goto(served.sign_in_link())
        page.goto(f"{served.url}/c/long/?at={LONG // 2}")
        counts = []
        for at in range(LONG // 2 + 1, LONG // 2 + 1 + STEPS):
            page.evaluate(COUNT)
            page.keyboard.press("ArrowRight")
            page.locator(f"#said-{at}").wait_for()
            page.wait_for_function("() => !document.querySelector('.htmx-request')")
            counts.append(page.evaluate(TOUCHED))
    most = max(counts, key=lambda count: sum(count.values()))
    print(f"a step of 10,000 messages changes {sum(most.values())} nodes at most: {most}")


def main(folder: str) -> None:
    from django.contrib.auth import get_user_model
    from django.test import Client

    client = Client(headers={"host": "localhost"})
    client.force_login(get_user_model().objects.create_superuser("bench"))
    fill()
    short = cost(client, steps("short", SHORT))
    show("a step of 10,000 messages against 100", short, cost(client, steps("long", LONG)))
    show(
        "a step with 128,000 tokens in memory against 4,000",
        short,
        cost(client, steps("wide", LONG)),
    )
    sent(client)
    touched(folder)
    fill_fleet(0, FEW)
    before = {url: cost(client, same(url)) for url in ("/", "/?q=order+17", "/?sort=fill")}
    fill_fleet(FEW, MANY)
    for url, small in before.items():
        show(f"{url} with 10,000 conversations against 200", small, cost(client, same(url)))


if __name__ == "__main__":
    with migrated() as folder:
        main(folder)
