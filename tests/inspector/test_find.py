from __future__ import annotations

import pytest

from chatmemory import explanations, queries
from inspector import demo


@pytest.fixture(autouse=True)
def _demo(db):
    demo.load()


def find(client, query: str):
    return client.get(f"/c/order-7741/?{query}").context["page"]


def test_what_is_in_memory_is_remembered(operator_client):
    page = find(operator_client, "at=30&find=a-1182")
    assert page.remembers.words.startswith(
        "Yes. Said 4 times; #25, #26, #27 and #28 are in memory."
    )


def test_what_has_left_is_not_and_the_step_is_named(operator_client):
    page = find(operator_client, "at=43&find=A-1182")
    assert page.remembers.question == "Does it still remember “A-1182”?"
    assert page.remembers.words == (
        "No. Said 4 times, and all of it has left. No message in memory has held it since step 43."
    )
    assert [mention.step for mention in page.mentions] == [43] * 4


def test_what_was_never_said_is_told(operator_client):
    assert "It was never said." in find(operator_client, "find=zebra").remembers.words
    assert "It was never said." in find(operator_client, "at=3&find=A-1182").remembers.words


def test_the_phrase_is_marked_and_the_link_can_be_shared(operator_client):
    html = operator_client.get("/c/order-7741/?at=43&find=A-1182").content.decode()
    assert html.count("<mark>A-1182</mark>") > 4
    assert "&amp;find=A-1182" in html
    assert "is-hit" in html


def test_hostile_phrases_show_as_text(operator_client):
    html = operator_client.get('/c/order-7741/?find="><script>x</script>').content.decode()
    assert "<script>x" not in html


def test_hits_are_bounded_but_counted():
    rows, total = queries.mentions("order-7741", "e", size=5)
    assert len(rows) == 5
    assert total > 40
    assert explanations.remembers("e", rows, total, 58).cause == "Yes."
