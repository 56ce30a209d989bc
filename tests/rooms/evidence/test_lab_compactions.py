"""The lab's page of compactions: sums of the kept rows, by summarizer and trigger."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chatmemory import AiMessage, MessageWindow, UserMessage, services
from chatmemory.formats import Transcript
from chatmemory.messages.sessions import Compaction, Session
from chatmemory.reading.finding import MemoryFilter
from inspector.rooms.evidence.compactions import fleet_compactions
from inspector.rooms.transfer.imports import import_each

pytestmark = pytest.mark.django_db
OPUS = {"claude_code": {"model": "opus"}}
SUMMARY = AiMessage("None.")
LINK = "/c/one/?at=3"


@pytest.fixture
def compacted():
    """An agent's session loses A-11 and a term of the assistant; the summary of a program, in
    another conversation, loses nothing.
    """
    said = [UserMessage("A-11"), AiMessage("I take B-22.", attributes=OPUS)]
    messages = (*said, SUMMARY, AiMessage("A-11 B-22"))
    session = Session(messages, (Compaction(2, (0, 1), (2,), "auto"),))
    transcript = Transcript("one", (*said, messages[3]), session=session)
    assert not next(import_each([transcript])).refused
    services.label(["one"], "team", "one")
    services.create("two", MessageWindow(20), {"team": "two"})
    services.add("two", said)
    services.compact("two", "A-11 B-22", keep_last=0, trigger="manual")
    services.add("two", [AiMessage("A-11 B-22")])
    services.create("none", MessageWindow(20))
    for memory_id in ("one", "two"):
        services.keep(memory_id)


@pytest.fixture
def page(operator_client, compacted):
    def get(query: str = "") -> str:
        html = operator_client.get(f"/lab/compactions/{query}").content.decode()
        return html.partition("<main")[2]

    return get


def words(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split()).replace(" .", ".")


def rows(html: str) -> list[str]:
    return [words(row) for row in re.findall(r"<tr.*?</tr>", html, re.DOTALL)][1:]


def test_it_adds_up_by_summarizer_and_trigger(page):
    told = "Of 2 exact terms that the assistant was given and needed again, the summaries hold"
    assert told in words(page())
    html = page("?level=all")
    assert "Of 4 exact terms that the assistant needed again, the summaries hold 50 %." in words(
        html
    )
    assert rows(html) == [
        "not recorded manual 1 2 2 100 % 2 2 2 2",
        "claude_code opus auto 1 2 0 0 % 2 2 2 2",
        "all 2 4 2 50 % 4 4 4 4",
    ]
    assert f'href="{LINK}"' in html
    assert "lost 2 of 2 terms at step 3, claude_code opus, auto" in words(html)
    assert 'href="/c/two/' not in html


def test_terms_given_to_the_assistant_are_a_level(page):
    html = page("?level=told")
    assert rows(html)[-1] == "all 2 2 1 50 % 2 2 2 2"
    assert re.search(r'level=told"\s+aria-current="true"', html)


def test_it_can_be_of_some_conversations(page):
    assert rows(page("?level=all&label=team:two"))[-1] == "all 1 2 2 100 % 2 2 2 2"
    assert "No summary lost a term." in words(page("?label=team:two"))
    assert "No compaction was found." in words(page("?prefix=none"))


def test_it_reads_what_is_kept_by_one_query_and_the_corpus_by_two(compacted):
    with CaptureQueriesContext(
        connection,
    ) as captured:
        found = fleet_compactions(MemoryFilter())
    assert len(captured) == 3
    assert (len(found.measured), found.left_out, found.matching, found.conversations) == (
        2,
        0,
        2,
        2,
    )
