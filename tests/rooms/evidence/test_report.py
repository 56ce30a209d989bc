"""The sentence on top of a conversation in which something came up again, and its verbs."""

from __future__ import annotations

import re

import pytest
from django.utils.html import strip_tags

from chatmemory import TokenWindow, services
from chatmemory.reading import conversations
from chatmemory.recall.incidents import path_words
from chatmemory.stores.database import DjangoChatMemoryStore
from inspector import demo
from inspector.rooms.evidence.incidents import incidents
from inspector.rooms.evidence_file.masking import Choice, Masker
from inspector.rooms.evidence_file.reads import evidence

from ...conversations import users

pytestmark = pytest.mark.django_db
SAID = users("My order is A-1182.", "well", "well", "As I said, A-1182!")


def report(client, address: str) -> str:
    page = client.get(address).text
    start = page.index('<div id="report">')
    return " ".join(page[start : page.index('id="tape"')].split())


def words(html: str) -> str:
    return " ".join(strip_tags(html).replace("&nbsp;", " ").split())


def test_it_says_how_a_fact_was_lost_and_offers_what_would_have_helped(operator_client):
    demo.load()
    services.keep("order-7741")
    for query in ("", "?msg=3"):
        shown = report(operator_client, f"/c/order-7741/{query}")
        said = words(shown)
        assert "The user had to repeat A-1182 in #47: #46 asked for it." in said
        assert "#25 said it. The fact left memory at step 43" in said
        assert "step 43, when #43 arrived: 55 tokens over the limit" in said
        assert "Send everything…" in said
        assert re.search(r"Today’s limit costs \d+ % more than sending everything", said)
        assert re.search(r"Facts held: \d → (\d) of \1; relative cost: 1\.\d\d → 1\.00\.", said)
        assert 'name="policy" value="everything"' in shown
        assert "/pin/47/" not in shown, "everything fits"
    assert "report__say" not in report(operator_client, "/c/order-7741/?at=46")
    asked = operator_client.post("/c/order-7741/adopt/", {"policy": "everything"}).text
    assert "Send everything in order-7741?" in " ".join(asked.split())
    operator_client.post("/c/order-7741/adopt/", {"policy": "everything", "confirmed": "1"})
    assert conversations.policy("order-7741") == TokenWindow(800).metering()
    assert "Send everything" not in words(report(operator_client, "/c/order-7741/"))


def test_it_names_the_last_message_with_the_fact_if_that_left_later(operator_client):
    """In the class, #2 said it and left at step 7; #7 repeated it and left at step 12."""
    demo.load()
    services.keep("classroom")
    said = words(report(operator_client, "/c/classroom/"))
    assert "#2 said it. #7, the last message with it, left memory at step 12" in said


def test_an_incident_names_the_same_messages_everywhere(operator_client, api):
    """In its report, its card, the list, the overview, the API, the tool and the evidence file."""
    demo.load()
    services.keep("order-7741")
    (found,) = [each for each in incidents("order-7741").incidents if each.is_forced]
    named = found.messages
    assert named == (25, 43, 46, 47)
    path = "A-1182 (said in #25) left memory at step 43; asked for in #46, repeated in #47"
    numbers = {f"#{seq}" for seq in (named.said, named.asked, named.again)} | {"#43"}
    page = operator_client.get("/c/order-7741/?incident=1").text
    card = page[page.index('id="incident"') : page.index('class="incident__cure"')]
    overview = words(operator_client.get("/").text)
    (row,) = [
        each
        for each in api.get("/api/v1/memories/order-7741/incidents/").json()["incidents"]
        if each["forced"]
    ]
    assert path_words(found) == path
    assert path in overview
    assert (row["facts"][0]["said"], row["facts"][0]["left_step"]) == named[:2]
    assert (row["asked"], row["again"]) == named[2:]
    file = evidence("order-7741", None, Masker(Choice())).incident
    assert [each.get("seq", each.get("step")) for each in file["path"]] == list(named)
    for text in (report(operator_client, "/c/order-7741/"), card, path_words(found)):
        assert set(re.findall(r"#\d+", words(text))) <= numbers
        assert {"#25", "#46", "#47"} <= set(re.findall(r"#\d+", words(text)))


def test_a_pin_is_offered_only_where_everything_does_not_fit(operator_client, monkeypatch):
    monkeypatch.setattr("inspector.shell.advice.smallest_prompt", lambda models: 700)
    demo.load()
    services.keep("order-7741")
    shown = report(operator_client, "/c/order-7741/")
    assert 'action="/c/order-7741/pin/47/"' in shown
    operator_client.post("/c/order-7741/pin/47/", {"pinned": "yes"})
    assert "Pin #47" not in words(report(operator_client, "/c/order-7741/"))


def test_where_a_client_decides_there_is_no_verb(operator_client):
    client = DjangoChatMemoryStore()
    for window in (SAID[:1], SAID[1:3], SAID[1:]):
        client.update_messages("theirs", window)
    services.keep("theirs")
    said = words(report(operator_client, "/c/theirs/"))
    assert "The client writes this window." in said
    assert "Pin" not in said
