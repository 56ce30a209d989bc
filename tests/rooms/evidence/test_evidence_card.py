"""Why? of a step that compacted: the page agrees with the API, and claims no more than is known."""

from __future__ import annotations

import re

import pytest

from chatmemory import AiMessage, MessageWindow, TokenWindow, UserMessage, services
from tests.conversations import create_and_add, users
from tests.recall.test_compaction_evidence import tool

from .test_incident_card import page_html, text_of

pytestmark = pytest.mark.django_db
STEP = "/api/v1/memories/c/steps/4/"


@pytest.fixture
def compacted():
    """Three terms and a number, of which the assistant uses all, and the summary holds one."""
    said = users("word " * 10_500, "A-1182 for 3000 ms", "B-2291 in src/app2/main.go")
    create_and_add("c", MessageWindow(20), said)
    services.compact("c", "It is about main.go, and app2/main.go.", keep_last=0)
    services.add("c", [UserMessage("A-1182!"), tool("B-2291")])
    services.add("c", [AiMessage("A-1182 and B-2291, 3000 ms, in src/app2/main.go")])
    services.keep("c")


def test_it_tells_what_was_needed_held_and_lost(compacted, operator_client):
    words = text_of(page_html(operator_client, "?at=4"))
    for part in (
        "Why? What did the summary lose? #1 to #3 became one summary. ",
        "Of 3 exact terms that the assistant was given and needed so far, the summary holds 1.",
        "All exact terms are counted. Rare terms are known from 5 conversations with a summary on.",
        "summary alone 1 summary + 10 terms 3 summary + 25 terms 3 summary + 50 terms 3",
        "summary + 100 terms 3 last 10,000 tok instead 3",
        "A-1182 repeated by the user said in #2 · again in #5 · used in #7",
        "B-2291 fetched again said in #3 · from find in #6 · used in #7",
        "Exact terms only",
        "a lower bound",
        "Step 4",
    ):
        assert part in words
    assert "invented" not in words
    assert "20,000" not in words  # there were fewer


def test_the_sums_of_a_compaction_are_those_of_its_step(operator_client):
    """The window's tokens are not those of the replaced messages: the card does not show them."""
    create_and_add("c", MessageWindow(20), users("A-1182 please", "one", "two", "three"))
    services.compact("c", "An order.", keep_last=2)
    services.keep("c")
    words = text_of(page_html(operator_client))
    assert "#1 to #2 became one summary. " in words
    assert "2 messages became summary #5. 14 tokens became 7." in words


def test_it_counts_what_the_preview_of_the_compaction_said(operator_client):
    create_and_add("c", MessageWindow(20), users("A-1182 and B-2291", "two", "A-1182", "four"))
    preview = services.preview_compaction("c", "In short.", covering=[1, 2])
    assert (len(preview.terms), preview.beside) == (2, 1)
    services.compact("c", "In short.", covering=[1, 2])
    services.keep("c")
    assert "Show the 1 term" in text_of(page_html(operator_client))


def test_the_api_tells_the_same(compacted, operator_client):
    found = operator_client.get(STEP).json()["evidence"]
    held = {"appended": dict.fromkeys(("10", "25", "50", "100"), 3)}
    needed = {"needed": 3, "held": 1, **held, "tail": {"10000": 3, "20000": 3}}
    first = {"is_told": True, "is_rare": True}
    assert found == {
        "until": 7,
        "replaced": 3,
        "tokens_before": found["tokens_before"],
        "tokens_after": found["tokens_after"],
        "left_out": None,
        "level": "told",
        "all": needed,
        "told": needed,
        "rare": needed,
        "lost": [
            {
                "term": "A-1182",
                "said": 2,
                "used": 7,
                "came": 5,
                "back": "user",
                **first,
            },
            {
                "term": "B-2291",
                "said": 3,
                "used": 7,
                "came": 6,
                "back": "tool",
                **first,
            },
        ],
        "lost_count": 2,
        "not_needed": 0,
    }
    assert operator_client.get(STEP.replace("4", "3")).json()["evidence"] is None


def test_it_is_shown_at_its_step_and_where_nothing_else_is_asked(compacted, operator_client):
    assert 'id="evidence"' in page_html(operator_client, "?at=4&find=A-1182")
    for query in ("?at=3", "?at=5", "?at=4&msg=1"):
        assert 'id="evidence"' not in page_html(operator_client, query)
    assert "What the summary lost" in text_of(page_html(operator_client, "?msg=4"))
    assert 'data-pane="why"' in page_html(operator_client, "?at=4")


def test_as_long_as_nothing_is_found_it_says_so(operator_client):
    create_and_add("c", MessageWindow(20), users("A-1182", "well"))
    services.compact("c", "They asked.", keep_last=0)
    words = text_of(page_html(operator_client))
    assert "This summary is not examined yet: lost terms are found soon after a change" in words
    assert operator_client.get("/api/v1/memories/c/steps/3/").json()["evidence"] is None
    services.keep("c")
    words = text_of(page_html(operator_client))
    assert "Of the replaced messages, the assistant needed no exact term so far." in words
    assert "Terms lost and not needed so far: 1." in words
    services.add("c", users("more"))
    assert "As of step 3." in text_of(page_html(operator_client, "?at=3"))


def test_the_overview_finds_conversations_compacted_with_loss(compacted, operator_client):
    create_and_add("other", TokenWindow(500), users("A-1182", "well"))
    services.compact("other", "A-1182", keep_last=0)
    services.add("other", [AiMessage("A-1182")])
    services.keep("other")
    page = operator_client.get("/?flagged=compacted_with_loss").content.decode()
    assert 'data-id="c"' in page
    assert 'data-id="other"' not in page
    assert re.search(r"summaries lost needed terms</a>\s*· 1\b", page)
    found = operator_client.get("/api/v1/memories/?flag=compacted_with_loss").json()["results"]
    assert [row["id"] for row in found] == ["c"]


def test_rare_terms_are_told_first_where_enough_conversations_tell_what_is_rare(
    compacted, operator_client
):
    for n in range(4):
        create_and_add(f"c{n}", MessageWindow(20), users("B-2291", "well"))
        services.compact(f"c{n}", "B-2291", keep_last=0)
        services.keep(f"c{n}")
    page = page_html(operator_client, "?at=4")
    words = text_of(page)
    assert "Of 2 rare exact terms that the assistant was given and needed so far" in words
    assert "Of all 3 terms that the assistant was given and needed, the summary holds 1." in words
    rare, _, folded = page.partition("All exact terms: 3 needed, 1 held")
    assert '<code dir="auto">A-1182</code>' in rare
    assert '<code dir="auto">B-2291</code>' in folded
    found = operator_client.get(STEP).json()["evidence"]
    assert (found["level"], found["rare"]["needed"]) == ("rare", 2)
    assert [each["is_rare"] for each in found["lost"]] == [True, False]
