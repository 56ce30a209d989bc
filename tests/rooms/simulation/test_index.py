"""The index of exact terms in simulations, and beside a window without one."""

from __future__ import annotations

import re
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest

from chatmemory import SystemMessage, TokenWindow, UserMessage, services
from chatmemory.reading import windows
from tests.conversations import create_and_add

LONG = "and some more words that fill the window " * 3
CITIES = ("Paris", "Rome", "Oslo", "Wien", "Bern")


@pytest.fixture
def indexed(db) -> str:
    said = [f"{each} {LONG}" for each in ("order: A-1182", "flight: HAT001", *CITIES)]
    policy = TokenWindow(190, low_water=0.4, index_terms=50)
    create_and_add("m", policy, [SystemMessage("Be brief."), *map(UserMessage, said)])
    return "m"


def words(html: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


def part(html: str, beginning: str, end: str) -> str:
    return html[html.index(beginning) :].split(end)[0]


def test_a_simulation_shows_the_index_that_it_would_make(indexed, operator_client):
    old = windows.window("m").rows[1]
    assert old.pinned
    draft = {"text": f"id: Z-77 {LONG * 2}", "role": "user"}
    html = operator_client.post("/c/m/simulate/", draft, follow=True).content.decode()
    row = words(part(html, '<li class="led led--index', "</li>"))
    assert "order: A-1182 #2" in row
    assert "As sent" not in row
    assert "not available" not in html
    assert f"#{old.seq}" not in words(part(html, "Would evict", "</p>"))
    assert f"#{old.seq}" not in words(part(html, 'id="just-evicted"', "</ol>"))


def test_a_branch_has_the_whole_window_if_its_index_counts_more_tokens(db):
    said = [f"{each} {LONG}" for each in ("A-11, B-22, C-33, D-44", *CITIES)]
    policy = TokenWindow(190, low_water=0.4, index_terms=50)
    create_and_add("m", policy, [SystemMessage("Be brief."), *map(UserMessage, said)])
    services.pin("m", windows.window("m").rows[-1].seq)
    source = windows.window("m")
    services.change("m", policy=replace(policy, limit=policy.load(source.totals)))
    step = windows.window("m").step
    services.redact("m", 2)  # its line in the index becomes longer
    services.branch("m", "b", [], at=step)
    branch = windows.window("b")
    kept = [row.pinned for row in branch.in_order]  # the limit hides one until the next add
    assert kept == [row.pinned for row in source.in_order]
    assert branch.over_limit


def test_its_cost_leads_to_the_comparison_without_it(indexed, operator_client):
    html = operator_client.get("/c/m/?msg=2").content.decode()
    (address,) = re.findall(r'href="(/c/m/compare/[^"]+)"[^>]*>Preview without an index', html)
    table = operator_client.get(address.replace("&amp;", "&")).content.decode()
    assert "Facts named by the index" in table
    policies = parse_qs(urlsplit(address.replace("&amp;", "&")).query)["policy"]
    plain = "token_window:190,low_water=0.4"
    assert policies == [f"{plain},index_terms=50", plain]
