"""No page says more than its budget of words, which people read in a glance."""

from __future__ import annotations

import pytest

from benchmarks.words import ON_THE_DEMO, words_on


@pytest.mark.usefixtures("demo_conversations")
def test_each_page_keeps_its_budget_of_words(open_page):
    page = open_page("/")
    site = page.url.removesuffix("/")
    found = {}
    for each in ON_THE_DEMO:
        page.goto(site + each.address)
        count = len(words_on(page, each.part))
        if count > each.words:
            found[each.name] = f"{count} of {each.words}"
    assert found == {}
