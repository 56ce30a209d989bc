from __future__ import annotations

import re

from playwright.sync_api import Page


def arrive(page: Page, address: str, timeout: int = 15_000) -> None:
    """Waits until this pattern is found in the address of a page.

    Playwright's own expectation describes the whole page for an error message, each time that it
    looks and the address is still another: a sixth of what a page is busy with in these tests.
    """
    page.wait_for_url(re.compile(address), timeout=timeout, wait_until="commit")
