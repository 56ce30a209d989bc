"""No answer grows with the conversation: a page shows a part, and a list has pages."""

from __future__ import annotations

import re

import pytest

from chatmemory import MessageWindow, services

from .conversations import create_and_add, numbered


@pytest.fixture(params=[120, 240])
def many(request, db, monkeypatch) -> int:
    """A conversation whose last step evicts all of these messages but nine; lists are short."""
    monkeypatch.setattr("chatmemory.api.responses.PAGE_MAX", 20)
    monkeypatch.setattr("inspector.conversation.panel.MOVED_MAX", 20)
    count: int = request.param
    create_and_add("long", MessageWindow(count), numbered(count))
    services.change("long", policy=MessageWindow(10))
    services.add("long", numbered(1))
    return count


def test_a_step_that_evicts_many_has_pages(api, many):
    url = f"/api/v1/memories/long/steps/{many + 2}/"
    found, pages, next_url = [], [], f"{url}?size=100"
    while next_url:
        page = api.get(next_url).data
        pages.append((len(page["arrived"]), len(page["evicted"])))
        found += [each["seq"] for each in page["evicted"]]
        next_url = page["later"]
    assert found == list(range(1, many - 8))
    assert (page["arrived_count"], page["evicted_count"]) == (1, many - 9)
    assert pages[0] == (1, 100)
    assert sum(arrived for arrived, _ in pages) == 1
    assert len(api.get(url).data["evicted"]) == 50


def test_the_receipt_of_a_step_is_shortened(api, many):
    lines = api.get(f"/api/v1/memories/long/steps/{many + 2}/").data["receipt"]
    assert len(lines) == 46
    signed = sum(line["amount"] for line in lines if line["kind"] in ("plus", "minus"))
    assert lines[0]["amount"] + signed == lines[-1]["amount"] == 10
    why = api.get("/api/v1/memories/long/messages/100/").data["why"]
    assert len(why["receipt"]) == 46


def test_the_answer_of_a_change_has_the_first_of_many(api, many):
    services.change("long", policy=MessageWindow(50))
    services.add("long", numbered(40))
    (change,) = api.delete("/api/v1/memories/long/messages/").data["changes"]
    assert (len(change["evicted"]), change["evicted_count"]) == (20, 50)


def test_a_comparison_lists_a_part_and_leads_to_the_others(operator_client, many):
    url = f"/c/long/?at={many}&with={many + 2}"
    seen = []
    while url:
        page = operator_client.get(url)
        changes = page.context["page"].panel.changes
        seen += changes.arrived.seqs
        assert len(changes.arrived.seqs) <= 20
        links = re.findall(
            r'href="([^"]*past=\d+[^"]*)"[^>]*>and [\d,]+ more', page.content.decode()
        )
        url = links[0].replace("&amp;", "&") if links else ""
    assert seen == list(range(1, many - 8))
    assert (changes.left.seqs, changes.left.more) == ((many + 1,), 0)


def test_pages_do_not_grow_with_the_conversation(operator_client, many):
    last = many + 2
    for url in (f"?at={many}", f"?at={last}", f"?at={many}&with={last}", f"?at={last}&msg=5"):
        html = operator_client.get(f"/c/long/{url}").content.decode()
        assert html.count("<") < 6_000, url
