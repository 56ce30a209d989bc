"""The browser that the tests drive: Debian's Chromium, or the one in CHROMIUM.

Chromium's headless shell is preferred: it has no user interface, which saves a third of the time.
"""

from __future__ import annotations

import os
import shutil

from playwright.sync_api import Browser, Playwright

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--renderer-process-limit=1",
    "--js-flags=--no-opt --no-maglev",  # a page is gone before optimised code would pay
]


def chromium() -> str | None:
    named = os.environ.get("CHROMIUM")
    return named or shutil.which("chromium-headless-shell") or shutil.which("chromium")


def launch(playwright: Playwright, path: str) -> Browser:
    return playwright.chromium.launch(executable_path=path, args=FLAGS)
