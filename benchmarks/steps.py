"""Measure what a step of a long conversation sends to a page, and what it changes there.

    .venv/bin/python -m benchmarks.steps

Writes to a SQLite database in a temporary folder. The nodes that a step changes are counted in
Chromium, if there is one.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from statistics import median
from typing import Any

from playwright.sync_api import sync_playwright

from benchmarks.database import migrated
from tests.browser.chromium import chromium, launch
from tests.browser.touched import COUNT, TOUCHED
from tests.serving import served_by

PART = re.compile(r'\bid="([a-z][a-z0-9-]*)"[^>]*? data-part="([\w-]{6})"')
STEPS = 12
LONG = 10_000


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

    from tests.long_conversations import long_conversation

    long_conversation("long", LONG)
    client = Client(headers={"host": "localhost"})
    client.force_login(get_user_model().objects.create_superuser("bench"))
    sent(client)
    touched(folder)


if __name__ == "__main__":
    with migrated() as folder:
        main(folder)
