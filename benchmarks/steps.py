"""Measure the size of a step of a long conversation as it is sent to a page, and its changes there.

    .venv/bin/python -m benchmarks.steps

Writes to a SQLite database in a temporary folder. The nodes that a step changes are counted in
Chromium, if there is one.
"""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from benchmarks.database import migrated
from benchmarks.server import client
from tests.browser.chromium import chromium, launch
from tests.browser.touched import COUNT, TOUCHED
from tests.serving import served_by

STEPS = 12
LONG = 10_000


def sent(reader: Any) -> None:
    """Print the compressed size of a step as it is sent."""
    steps = range(LONG // 2, LONG // 2 + STEPS)
    urls = [f"/c/long/?at={at}" for at in steps]
    sizes = [len(gzip.compress(reader.get(url).content)) for url in urls]
    print(f"a step of 10,000 messages sends {max(sizes):,} bytes at most, compressed")


def touched(folder: str) -> None:
    """Print the numbers of nodes that a step adds, removes and alters in a browser."""
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
    from tests.long_conversations import long_conversation

    long_conversation("long", LONG)
    sent(client())
    touched(folder)


if __name__ == "__main__":
    with migrated() as folder:
        main(folder)
