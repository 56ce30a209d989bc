"""The sentence on top of a conversation in which something came up again, and its verbs."""

from __future__ import annotations

import pytest
from django.utils.html import strip_tags

from chatmemory import MessageWindow, TokenWindow, services
from chatmemory.stores.database import DjangoChatMemoryStore
from inspector import demo

from ...conversations import create_and_add, users

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
        assert "The user had to say A-1182 again: #46 asked for it." in said
        assert "#28 held it and left at step 43, when #43 arrived: 55 over the limit." in said
        assert "Set limit to 902…" in said
        assert 'action="/c/order-7741/pin/47/"' in shown
    assert "report__say" not in report(operator_client, "/c/order-7741/?at=46")
    asked = operator_client.post("/c/order-7741/adopt/", {"policy": "token_window:902"})
    assert "Use Token window 902" in " ".join(asked.text.split())
    operator_client.post("/c/order-7741/pin/47/", {"pinned": "yes"})
    assert "Pin #47" not in words(report(operator_client, "/c/order-7741/"))


def test_a_limit_is_offered_only_above_todays(operator_client):
    create_and_add("told", MessageWindow(2), SAID)
    services.keep("told")
    assert "Set limit to 3…" in words(report(operator_client, "/c/told/"))
    services.change("told", policy=MessageWindow(9))
    assert "Set limit to" not in report(operator_client, "/c/told/")
    services.change("told", policy=TokenWindow(9_000))
    assert "Set limit to" not in report(operator_client, "/c/told/")


def test_where_a_client_decides_there_is_no_verb(operator_client):
    client = DjangoChatMemoryStore()
    for window in (SAID[:1], SAID[1:3], SAID[1:]):
        client.update_messages("theirs", window)
    services.keep("theirs")
    said = words(report(operator_client, "/c/theirs/"))
    assert "The client writes this window." in said
    assert "Pin" not in said
