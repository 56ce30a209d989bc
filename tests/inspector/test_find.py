from __future__ import annotations

import pytest

from chatmemory import explain
from chatmemory.queries.history import mentions
from inspector import demo


@pytest.fixture(autouse=True)
def _demo(db):
    demo.load()


def find(client, query: str):
    return client.get(f"/c/order-7741/?{query}").context["page"]


def test_a_phrase_in_memory_is_remembered(operator_client):
    page = find(operator_client, "at=30&find=a-1182")
    assert page.panel.remembers.summary.startswith(
        "Yes. Said 4 times; #25, #26, #27 and #28 are in memory."
    )


def test_a_phrase_that_left_is_answered_with_the_step(operator_client):
    page = find(operator_client, "at=43&find=A-1182")
    assert page.panel.remembers.question == "Does it still remember “A-1182”?"
    assert page.panel.remembers.summary == (
        "No. Said 4 times, and all of it has left. The last of it, #25, #26, #27 and #28, left at "
        "step 43. User message #43 arrived +57. 4 messages left −183: #25 and #26 were the oldest, "
        "results #27 and #28 left with #26."
    )
    assert page.panel.remembers.receipt[-1].label == "In memory after"
    assert [mention.step for mention in page.panel.mentions] == [43] * 4
    assert page.panel.mentions[-1].tag == "forgotten at step 43 · capacity, when #43 arrived"


def test_the_last_mention_explains_the_consequence(operator_client):
    page = find(operator_client, "at=43&find=A-1182&msg=26")
    assert page.panel.consequence == (
        "Without #25, #26, #27 and #28, nothing in memory mentions “A-1182”."
    )
    assert find(operator_client, "at=43&find=A-1182&msg=2").panel.consequence == ""
    assert find(operator_client, "at=30&find=A-1182&msg=2").panel.consequence == ""


@pytest.mark.parametrize(
    ("phrase", "near"),
    [("A-1183", "A-118"), ("order zebra", "order"), ("A-1182", ""), ("zzzz", ""), ("  ", "")],
)
def test_a_similar_phrase_is_offered(operator_client, phrase, near):
    assert find(operator_client, f"find={phrase}").panel.nearest == near


def test_a_phrase_that_was_never_said(operator_client):
    assert "It was never said." in find(operator_client, "find=zebra").panel.remembers.summary
    assert "It was never said." in find(operator_client, "at=3&find=A-1182").panel.remembers.summary


def test_the_phrase_is_marked_and_the_link_can_be_shared(operator_client):
    html = operator_client.get("/c/order-7741/?at=43&find=A-1182").content.decode()
    assert html.count("<mark>A-1182</mark>") > 4
    assert "&amp;find=A-1182" in html
    assert "is-hit" in html


def test_hostile_phrases_show_as_text(operator_client):
    html = operator_client.get('/c/order-7741/?find="><script>x</script>').content.decode()
    assert "<script>x" not in html


def test_hits_are_bounded_but_counted():
    rows, total = mentions("order-7741", "e", newest=58, size=5)
    assert len(rows) == 5
    assert total > 40
    assert explain.remembers("e", rows, total, 58).cause == "Yes."


def test_a_number_selects_its_message(operator_client):
    page = find(operator_client, "at=43&find=%2326")
    assert (page.msg, page.find) == (26, "")
    assert operator_client.get("/c/order-7741/?find=%23999").status_code == 404
    assert find(operator_client, "find=%23").find == "#"
