"""What conversations cost beside sending everything, and the line that says so."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chatmemory import AiMessage, TokenWindow, UserMessage, services
from chatmemory.advice import advise
from chatmemory.ledger.lookup import find_memory
from chatmemory.reading.recall import recall_history
from chatmemory.recall.cost import ONE, Prices, providers
from chatmemory.recall.frontier import figures_of, tried_of_kind
from inspector.overview.causes import counted_headlines
from inspector.rooms.lab.figures import PRICED, FiguresKeeper, figures_now
from inspector.rooms.lab.reads import fleet
from inspector.shell.chosen import IDS_MAX, text_of_ids

from ...conversations import create_and_add

pytestmark = pytest.mark.django_db
WORDS = "a parcel that is late, and nobody knows where it is " * 12
TALK = [
    each for n in range(30) for each in (UserMessage(f"{n} {WORDS}"), AiMessage(f"{n} {WORDS}"))
]
WINDOW = TokenWindow(3_000)


def in_use(monkeypatch, *names: str) -> None:
    monkeypatch.setattr("inspector.rooms.lab.costs.providers_in_use", lambda: list(names))


def test_the_kept_cost_equals_the_labs():
    create_and_add("dear", WINDOW, TALK)
    services.keep("dear")
    kept = FiguresKeeper().row(find_memory("dear"))
    for name in PRICED:
        provider = providers()[name]
        tried = tried_of_kind(WINDOW, {WINDOW.limit}, provider.rules)
        found = figures_of(recall_history("dear", WINDOW.estimator), tried, WINDOW)
        prices = Prices(ONE, provider.cached, provider.write)
        bills = (each.bill(found.calls) for each in (found.today, found.everything))
        assert getattr(kept, name) == round(100 * round(prices.relative(*bills), 2))
        assert getattr(kept, name) > 105


def test_figures_and_advice_write_nothing_and_take_no_lock():
    for memory_id in ("one", "another"):
        create_and_add(memory_id, WINDOW, TALK)
    services.keep("another")
    with CaptureQueriesContext(connection) as asked:
        made = FiguresKeeper().make(find_memory("one"), None)
        (kept,) = figures_now(["another"], {})
        assert advise([kept]).today
    assert made["openai"] == find_memory("another").keptcost.openai
    for each in asked.captured_queries:
        assert re.match(r'(DECLARE "\w+" NO SCROLL CURSOR FOR )?SELECT', each["sql"])
        assert "FOR UPDATE" not in each["sql"]


@pytest.mark.parametrize("limit", [1_200, 1_600, 2_000, 2_400, 3_000])
def test_the_report_and_the_comparison_give_the_same_cost(operator_client, monkeypatch, limit):
    in_use(monkeypatch, "openai")
    create_and_add("dear", TokenWindow(limit), TALK)
    services.keep("dear")
    page = operator_client.get("/c/dear/").content.decode()
    report = re.search(r"Today’s limit costs (\d+) % more", page)
    page = operator_client.get(f"/c/dear/compare/?policy=token_window:{limit}&as=json")
    assert report, "a sliding window costs more"
    assert 100 + int(report[1]) == round(100 * page.json()[0]["relative_cost"])


@pytest.mark.needs("simulation")
def test_the_line_needs_a_price_and_names_it(operator_client, monkeypatch):
    create_and_add("dear", WINDOW, TALK)
    create_and_add("cheap", TokenWindow(100_000), TALK)
    for memory_id in ("dear", "cheap"):
        services.keep(memory_id)
    for names in ((), ("mistral",)):
        in_use(monkeypatch, *names)
        assert "costly" not in [cause.name for cause in counted_headlines(0).causes]
    in_use(monkeypatch, "openai_responses")
    (line,) = (cause for cause in counted_headlines(0).causes if cause.name == "costly")
    assert line.count == 1
    assert line.cases.newest == "dear"
    assert re.search(
        r"% more than sending everything at OpenAI’s prices of .*: \d+ of 30", line.words
    )
    assert line.address == "/c/dear/compare/"
    assert operator_client.get(line.address).status_code == 200
    assert line.cases.new_today == 1
    assert not line.flag.is_red
    rows = operator_client.get("/?flagged=costly").context["rows"]
    assert [row.memory.id for row in rows] == ["dear"]
    create_and_add("dear too", WINDOW, TALK)
    services.keep("dear too")
    (line,) = (cause for cause in counted_headlines(0).causes if cause.name == "costly")
    assert line.address == "/lab/?ids=dear%2520too%2Cdear"


def test_several_lead_to_the_lab_by_their_ids_and_say_the_same(operator_client, monkeypatch):
    in_use(monkeypatch, "openai")
    dear = ("a,b", "dear & more", "third")
    for memory_id in (*dear, "third of a kind"):
        create_and_add(memory_id, WINDOW if memory_id in dear else TokenWindow(100_000), TALK)
        services.keep(memory_id)
    (line,) = (cause for cause in counted_headlines(0).causes if cause.name == "costly")
    page = operator_client.get(line.address).context["page"]
    assert {each.measured.id for each in fleet(page.address.query).known} == {*dear}
    assert page.advice.measured.conversations == line.count == 3
    assert line.words.startswith(f"{round(100 * (page.advice.today.cost - 1))} % more")
    create_and_add("fourth", WINDOW, TALK)
    services.keep("fourth")
    page = operator_client.get(line.address).context["page"]
    assert page.advice.measured.conversations == 3
    monkeypatch.setattr("inspector.overview.cases.IDS_MAX", 3)
    (line,) = (cause for cause in counted_headlines(0).causes if cause.name == "costly")
    assert line.address == "/lab/?flagged=costly"


def test_an_address_names_a_bounded_number_of_conversations(operator_client):
    ids = text_of_ids(f"c{n}" for n in range(IDS_MAX + 1))
    page = operator_client.get("/lab/", {"ids": ids})
    assert f"t most {IDS_MAX} conversations can be chosen by ID" in page.text
