"""The first page while only the examples exist, and the tour of one of them."""

from __future__ import annotations

import pytest

from chatmemory import MessageWindow, services
from chatmemory.recall.incidents import path_words
from chatmemory.rooms import known_incidents
from inspector import demo
from inspector.conversation.guide import COOKIE, EXAMPLE, STOPS
from inspector.overview.causes import forget_headlines

from ..conversations import HI, call, create_and_add
from ..inspector.markup import words

pytestmark = pytest.mark.django_db
SENTENCE = "See what your assistant still remembers, what it forgot, and why."


@pytest.fixture
def newcomer(operator_client, demo_conversations_of_the_module):
    del operator_client.cookies[COOKIE]
    return operator_client


@pytest.mark.needs("evidence")
def test_it_says_what_this_is_and_shows_why_the_number_was_asked_again(newcomer):
    """The stops quote the messages that every sentence about the incident names."""
    said = words(newcomer.get("/").content)
    assert SENTENCE in said
    assert "Which providers do you use?" not in said
    for stop in STOPS:
        assert stop.name in said
    assert "#25 Yes, my order number is A-1182" in said
    assert "#46" in said
    assert "4 demo conversations" in said
    (found,) = (each for each in known_incidents(EXAMPLE) if each.is_forced)
    assert {found.messages.said, found.messages.asked, found.messages.again} <= {
        seq for stop in STOPS for seq in stop.seqs
    }, path_words(found)
    assert found.messages.left_step == STOPS[1].at


@pytest.mark.needs("simulation")
def test_each_stop_is_a_band_above_its_pane_that_blocks_nothing(newcomer):
    for stop in STOPS:
        page = newcomer.get(stop.address).text
        assert f'class="guide guide--{stop.pane}"' in page
        assert stop.text.replace("’", "'") in words(page.encode())
        assert 'id="tape"' in page
        assert 'class="composer' in page
    assert "guide--" not in newcomer.get(f"/c/{EXAMPLE}/").text
    assert "guide--" not in newcomer.get("/c/classroom/?stop=2").text
    assert "guide--" not in newcomer.get(f"/c/{EXAMPLE}/?stop=4").text


def test_one_click_ends_the_tour_for_good(newcomer):
    back = newcomer.post("/tour/end/", {"next": f"/c/{EXAMPLE}/?at=43"})
    assert back.url == f"/c/{EXAMPLE}/?at=43"
    assert SENTENCE not in newcomer.get("/").text
    assert "guide--" not in newcomer.get(STOPS[1].address).text
    assert newcomer.post("/tour/end/", {"next": "https://example.org/"}).url == "/"


def test_an_own_conversation_or_a_search_shows_the_list(newcomer):
    assert SENTENCE not in newcomer.get("/?q=parcel").text
    create_and_add("mine", MessageWindow(9), [HI])
    assert SENTENCE not in newcomer.get("/").text


@pytest.mark.needs("doctor")
def test_providers_are_asked_for_with_the_first_refusal_of_ones_own(operator_client, db):
    demo.load()
    assert "Which providers do you use?" not in operator_client.get("/").text
    create_and_add("mine", MessageWindow(9), [HI, call("1"), HI])
    services.keep("mine")
    forget_headlines()
    assert "Which providers do you use?" in operator_client.get("/").text
