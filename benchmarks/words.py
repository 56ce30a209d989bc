"""Count the words that each page shows, beside its budget: `python -m benchmarks.words [--fleet]`.

Pages are opened in Chromium, 1,440 pixels wide, as an operator sees them: on the demo, or with
`--fleet` on that of `benchmarks.first_screen`. A word has a letter or a digit. What people and
models said is not counted, neither are rows of messages and of conversations, nor what is folded.
The command exits with 1 if a page has more words than its budget.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.chromium import chromium, launch
from tests.serving import Served, served_by

ORDER = "/c/order-7741/"
UNCOUNTED = ".said, .led, [dir=auto], tr:has(.tx), textarea, pre, .convs tbody tr, .skip, .sr-only"


class Budget(NamedTuple):
    """A page, the part of it that is counted, and how many words it may have."""

    name: str
    address: str
    words: int
    part: str = "body"


ON_THE_DEMO = [
    Budget("overview", "/", 300),
    Budget("conversation, beside messages", ORDER, 150),
    Budget("Why? at #25, the card", f"{ORDER}?msg=25", 120, "#why"),
    Budget("compare", f"{ORDER}compare/", 450),
    Budget("lab, not computed", "/lab/", 90),
    Budget("doctor", "/doctor/", 200),
    Budget("doctor rules", "/doctor/rules/", 600),
    Budget("providers", "/doctor/providers/", 80),
    Budget("calls, empty", "/calls/", 80),
    Budget("import", "/import/", 80),
    Budget("export", f"{ORDER}export/", 40),
    Budget("settings", f"{ORDER}settings/", 120),
    Budget("policies", "/policies/", 100),
    Budget("evidence form", f"{ORDER}evidence/", 90),
    Budget("repair", f"{ORDER}repair/", 120),
    Budget("compact", f"{ORDER}compact/", 60),
    Budget("lessons", "/learn/", 300),
    Budget("playground", "/learn/playground/", 220),
]
ON_THE_FLEET = [
    Budget("overview of a fleet", "/", 320, "main"),
    Budget("doctor of a fleet", "/doctor/", 300, "main"),
]
_WORDS = """([part, uncounted]) => {
  const whole = document.querySelector(part).cloneNode(true);
  const shown = [...document.querySelectorAll(`${part} *`)];
  const isRead = (element) => element.checkVisibility({visibilityProperty: true});
  [...whole.querySelectorAll("*")].forEach((each, n) => {
    if (!isRead(shown[n]) || shown[n].matches(uncounted)) each.dataset.unread = "";
    else each.append(" ");
  });
  whole.querySelectorAll("[data-unread], script, style, template").forEach((each) => each.remove());
  return whole.textContent.split(/\\s+/).filter((word) => /[\\p{L}\\d]/u.test(word));
}"""


def words_on(page: Page, part: str = "body") -> list[str]:
    """Return the words of a part of an open page."""
    return list(page.evaluate(_WORDS, [part, UNCOUNTED]))


def words_of(served: Served, browser: Browser, budgets: Sequence[Budget]) -> Iterator[list[str]]:
    """Yield the words of each page of a site."""
    with browser.new_context(viewport={"width": 1440, "height": 900}) as context:
        page = context.new_page()
        page.goto(served.sign_in_link())
        for each in budgets:
            page.goto(served.url + each.address)
            yield words_on(page, each.part)


def main(arguments: Sequence[str] = ()) -> int:
    path = chromium()
    if not path:
        raise SystemExit("Chromium not found: apt-get install chromium-headless-shell")
    is_fleet = "--fleet" in arguments
    budgets = ON_THE_FLEET if is_fleet else ON_THE_DEMO
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        database = f"sqlite:///{folder}/words.sqlite3"
        with served_by(database, Path(folder)) as served, launch(playwright, path) as browser:
            if is_fleet:
                fill = [sys.executable, "-m", "benchmarks.first_screen"]
                subprocess.run(fill, env=served.environment, check=True, stdout=subprocess.DEVNULL)
            else:
                served.manage("load_demo")
            counts = [len(each) for each in words_of(served, browser, budgets)]
    over = 0
    for count, each in zip(counts, budgets, strict=True):
        is_over = count > each.words
        over += is_over
        print(f"{'MORE' if is_over else 'ok  '} {count:5} of {each.words:3}  {each.name}")
    return int(over > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
