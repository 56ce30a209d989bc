"""The lab compares the memories of agent frameworks, and functions of one's own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chatmemory import TokenWindow, services
from chatmemory.registry import Registry
from chatmemory.strategies import STRATEGIES, catalog
from inspector.rooms.lab import frameworks, writes
from inspector.rooms.lab.addresses import FleetAddress
from inspector.rooms.lab.models import Figures
from tests.conversations import create_and_add
from tests.inspector.markup import words
from tests.rooms.lab.in_a_browser import long_session

QUERY = "strategies=1&provider=own&input=2.5&cached=0.25"


def newest(messages):
    return messages[-2:]


def breaks(messages):
    raise KeyError("gone")


@pytest.fixture
def lab(operator_client, db, monkeypatch):
    """The page of some conversations, as text. One framework is missing here, and two functions of
    a package are strategies, of which one breaks.
    """
    missing = replace(STRATEGIES[-1], package="no-such-framework")
    functions = Registry(catalog.GROUP, {"newest": newest, "breaks": breaks}, callable)
    monkeypatch.setattr(catalog, "STRATEGIES", (*STRATEGIES[:3], missing))
    monkeypatch.setattr(catalog, "functions", functions)
    for n in range(3):
        create_and_add(f"long-{n}", TokenWindow(1_500), long_session(n))

    def page(query: str = QUERY) -> str:
        while writes.compute_figures(address_of(query).query, 60):
            pass
        return words(operator_client.get(f"/lab/?{query}").content)

    return page


def address_of(query: str = QUERY) -> FleetAddress:
    return FleetAddress.read(dict(each.split("=") for each in query.split("&")))


def computed() -> None:
    frameworks.compute(address_of().frameworks, 60)


def test_frameworks_are_compared_on_request(lab, operator_client):
    assert "Compare agent frameworks" in lab("provider=own&input=2.5")
    told = lab()
    assert "Agent frameworks compared limits of" in told
    assert "0 of 3 conversations" in told
    assert "not installed: pip install 'no-such-framework'" in told
    assert operator_client.post("/lab/", address_of().parameters).status_code == 302
    computed()
    told = lab()
    assert "0 of 3 conversations" not in told
    assert "newest" in told
    assert "each summary has 500 words without any fact" in told


def test_a_strategy_that_fails_is_left_out(lab):
    computed()
    (row,) = Figures.objects.filter(memory_id="long-0", figures__has_key="newest")
    assert row.figures.keys() == {"newest"}
    assert "breaks" not in lab()


def test_figures_are_of_the_present_state_and_sizes(lab):
    computed()
    services.add("long-1", long_session(1)[1:3])
    assert "2 of 3 conversations" in lab()
    assert "0 of 3 conversations" in lab(f"{QUERY}&limit=1000")
    assert "limits of 1,000 tokens or 20 messages, measured with the frameworks’ own code" in lab(
        f"{QUERY}&limit=1000"
    )


def test_a_dot_has_the_name_and_the_version(lab, operator_client):
    computed()
    lab()
    page = operator_client.get(f"/lab/?{QUERY}").content.decode()
    assert page.count('class="d-lib"') == 4  # one in each chart, and one in the key
    assert "<title>newest: " in page
