"""The page of a conversation. What it says at each step is in tests/golden and tests/explain."""

from __future__ import annotations

from datetime import datetime

import pytest

from chatmemory import (
    AiMessage,
    ImageContent,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    services,
)
from chatmemory.converters import address
from chatmemory.formats import parse_messages
from chatmemory.ledger import protocol
from chatmemory.messages.contents import Image
from chatmemory.reading import steps
from chatmemory.windows.policies import MessageWindow, TokenWindow, TurnWindow

from ..conversations import create_and_add, numbered
from ..long_conversations import long_conversation
from . import markup
from .markup import tree

HOSTILE = [
    "<script>alert(1)</script>",
    "</script></title>",
    "{{ 7|add:7 }}{% debug %}",
    "\u202ereversed\u202c",
    "control \x07\x1b[31m characters",
    "x" * 100_000,
    '"><img src=x onerror=alert(1)>',
]


@pytest.fixture
def support(db) -> str:
    said = [
        SystemMessage("Be brief."),
        UserMessage("Where is order A-1182?"),
        AiMessage(None, (ToolExecutionRequest("1", "find", '{"id":"A-1182"}'),)),
        ToolExecutionResultMessage("1", "find", "in Dijon"),
        AiMessage("It is in Dijon."),
        UserMessage("Thank you."),
    ]
    create_and_add("support", MessageWindow(4), said)
    return "support"


@pytest.fixture
def open_page(operator_client):
    """Opens a page of the conversation `support` and returns its presenter."""
    return lambda query="": operator_client.get(f"/c/support/{query}").context["page"]


def html(client, query: str = "") -> str:
    response = client.get(f"/c/support/{query}")
    assert response.status_code == 200
    return response.content.decode()


def test_history_is_beside_memory_with_reasons_for_leaving(open_page, support):
    history, memory = open_page().history_pane.rows, open_page().memory_pane
    assert [row.seq for row in [*memory.top, *memory.messages]] == [1, 5, 6]
    assert [row.row.seq for row in history if row.is_horizon] == [5]
    assert {row.row.seq: row.tag for row in history} == {
        1: "",
        2: "left memory at step 5 · memory was full",
        3: "left memory at step 6 · memory was full",
        4: "left memory at step 6 · left with its call",
        5: "",
        6: "",
    }


def test_every_step_has_a_page_that_names_its_moment(operator_client, support):
    for step in range(7):
        assert f"Step <b>{step}</b> of 6" in html(operator_client, f"?at={step}")
    (time,) = tree(html(operator_client, "?at=1")).iterfind(".//aside//time")
    at = steps.step("support", 1).row.at
    assert datetime.fromisoformat(time.get("datetime")) == at.replace(microsecond=0)
    assert time.findtext("text").endswith(f"{at:%H:%M:%S} UTC")


def test_why_tells_of_a_message_that_is_not_said_yet_and_of_the_system_message(
    operator_client, support
):
    assert "#6 arrives at step 6." in html(operator_client, "?at=2&msg=6")
    page = html(operator_client, "?msg=1")
    assert "It is the system message." in page
    assert "Pin #1" not in page


def test_hostile_text_shows_as_text(operator_client, db):
    create_and_add("support", TokenWindow(10**6), map(UserMessage, HOSTILE))
    for query in ("", "?msg=1", "?msg=7", "?msg=3"):
        page = html(operator_client, query)
        assert "<script>alert" not in page
        assert "<img src=x" not in page
        assert "{{ 7|add:7 }}" in page


@pytest.mark.parametrize("query", ["?at=99", "?msg=99", "?msg=9999999999999999999", "?with=99"])
def test_unknown_steps_and_messages_are_not_found(operator_client, support, query):
    assert operator_client.get(f"/c/support/{query}").status_code == 404
    assert operator_client.post("/c/support/").status_code == 405


def test_any_id_has_a_page(operator_client, db):
    for memory_id in ("..", "a/b?c#d", "ümläut ~ %2F", "<b>"):
        services.create(memory_id, MessageWindow(3))
        assert "<b><b>" not in operator_client.get("/").content.decode()
        assert operator_client.get(f"/c/{address(memory_id)}/").status_code == 200


def test_htmx_gets_the_fragment(operator_client, support):
    response = operator_client.get("/c/support/?at=3", headers={"HX-Request": "true"})
    assert markup.roots(response) == [("title", None), ("main", "main")]
    assert "HX-Request" in response["Vary"]


def test_the_history_pages_both_ways(open_page, db):
    create_and_add("support", MessageWindow(10), numbered(200, "said"))
    last = open_page().state.shown.history
    assert (len(last.rows), last.earlier, last.later) == (60, 140, 0)
    assert open_page(f"?before={last.rows[0].seq}").history_pane.last == last.rows[0].seq - 1
    for query in ("?msg=7&before=61", "?find=said&before=61"):
        assert open_page(query).history_pane.last == 60
    around = open_page("?msg=7").history_pane
    assert [row.row.seq for row in around.rows if "is-sel" in row.css] == [7]
    assert around.around == (6, 8)
    assert open_page("?msg=1").history_pane.around == (None, 2)
    assert open_page("?msg=200").history_pane.around == (199, None)


def test_it_takes_a_bounded_number_of_queries(operator_client, db, django_assert_max_num_queries):
    long_conversation("support", 1_500, 50)
    for query in ("", "?at=600", "?at=600&msg=3", "?at=1400"):
        with django_assert_max_num_queries(28):
            page = html(operator_client, query)
        assert page.count('<li class="cell') <= 400


def test_a_call_and_its_result_belong_together(open_page, support):
    def marked_seqs(seq: int) -> list[int]:
        return [
            row.row.seq for row in open_page(f"?msg={seq}").history_pane.rows if "is-rel" in row.css
        ]

    assert (marked_seqs(3), marked_seqs(4), marked_seqs(2)) == ([4], [3], [])


def test_properties_that_are_not_text_are_shown(operator_client, db):
    picture = Image(base64_data="QQ==", mime_type="image/png")
    said = [
        AiMessage("hi", thinking="hm <b>", attributes={"model": "m-1"}),
        UserMessage([ImageContent(picture), ImageContent("https://example.org/x.png")]),
    ]
    create_and_add("support", MessageWindow(4), said)
    page = html(operator_client, "?msg=1")
    assert "hm &lt;b&gt;" in page
    assert "m-1" in page
    page = html(operator_client, "?msg=2")
    assert 'src="data:image/png;base64,QQ=="' in page
    assert 'src="https://example.org' not in page


def test_details_that_a_format_keeps_with_a_message_are_named(operator_client, db):
    turn = {
        "role": "assistant",
        "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}],
        "annotations": [],
    }
    (read,) = parse_messages([turn], "openai_chat").messages
    create_and_add("support", MessageWindow(4), [read])
    page = html(operator_client, "?msg=1")
    assert "Provider fields kept for openai_chat, restored on export: content, annotations." in page
    assert "<summary>Attributes of the message</summary>" not in page


def test_attributes_that_clients_made_up_are_shown_as_they_are(operator_client, db):
    made_up = {"openai_chat": 5, "vercel_ui": {"differs": [{"items": 5}], "response": 5}}
    create_and_add("support", MessageWindow(4), [UserMessage("a", attributes=made_up)])
    page = html(operator_client, "?msg=1")
    assert "<summary>Attributes of the message</summary>" in page
    assert "Kept for" not in page


def test_a_long_window_is_shown_from_its_end_or_around_the_chosen_message(open_page, db):
    said = [SystemMessage("Be brief."), *numbered(300)]
    create_and_add("support", MessageWindow(1_000), said)
    pane = open_page().memory_pane
    assert [row.text for row in pane.top] == ["Be brief."]
    assert [row.seq for row in pane.messages] == list(range(202, 302))
    assert (pane.messages[0].past, pane.messages[-1].past) == (201, 300)
    assert (pane.earlier.count, pane.later) == (200, None)
    pane = open_page("?msg=101").memory_pane
    assert 101 in [row.seq for row in pane.messages]
    assert pane.earlier.count + len(pane.messages) + pane.later.count == 300
    before = open_page(f"?msg={pane.earlier.seq}").memory_pane
    assert pane.messages[0].seq - 1 in [row.seq for row in before.messages]


def test_a_waiting_call_is_shown(operator_client, support):
    page = html(operator_client, "?at=3&open=providers")
    assert "Tool call #3 is waiting for its results." in page


def test_a_long_text_is_folded(operator_client, support):
    services.add("support", [UserMessage("long " * 30_000)])
    page = html(operator_client, "?msg=7")
    assert "All 150,000 characters" in page
    assert "50,000 more characters are in the" in " ".join(page.split())
    assert "All 20 characters" not in html(operator_client, "?msg=2")


def test_messages_that_a_clients_list_left_out_are_tagged(open_page, db):
    said = numbered(3)
    protocol.update_messages("support", said)
    protocol.update_messages("support", [*said[1:], UserMessage("one more")])
    assert open_page().history_pane.rows[0].tag == "left memory at step 2 · left out by the client"


@pytest.mark.parametrize("first", [MessageWindow(3), None, "later"])
def test_the_page_of_step_0_names_no_policy_that_was_not_in_force(open_page, db, first):
    if first == "later":
        protocol.update_messages("support", [UserMessage("a")])
    else:
        services.create("support", first)
    services.change("support", policy=TokenWindow(99))
    name = "Client decides" if first == "later" else "Policy not recorded"
    assert open_page("?at=0").policy_name == name
    assert open_page().policy_name == "Token window"


def test_no_two_buttons_of_the_head_have_the_same_icon(support, operator_client):
    page = tree(operator_client.get("/c/support/").text)
    (links,) = (each for each in page.iter("div") if each.get("class") == "pagehead__end")
    icons = [use.get("href").partition("#")[2] for use in links.iter("use")]
    assert len(icons) > 3
    assert len(set(icons)) == len(icons)


@pytest.mark.parametrize("policy", [TokenWindow(30), MessageWindow(3)])
def test_the_whole_history_is_the_same_number_on_the_page_and_in_the_api(policy, operator_client):
    """In tokens it has the overhead of a request, as the limit counts."""
    create_and_add("c", policy, numbered(8))
    page = operator_client.get("/c/c/").context["page"]
    found = operator_client.get("/api/v1/memories/c/").json()
    assert page.history.load == found["history_load"]
    assert page.history.load == page.kept.load + page.forgotten.load
    if page.unit == "tok":
        assert found["history_load"] == found["history_tokens"] + policy.overhead


def test_one_turn_is_not_called_turns(operator_client):
    create_and_add("c", TurnWindow(2), numbered(1))
    text = " ".join(markup.words(operator_client.get("/c/c/?open=sums").content).split())
    assert "In memory 1 turn ·" in text
    assert "Free in memory: 1 turn." in text
    assert "1 / 2 turns" in text
    services.change("c", policy=TurnWindow(1))
    text = " ".join(markup.words(operator_client.get("/c/c/").content).split())
    assert "1 turns" not in text


def test_the_api_has_no_load_of_a_history_whose_messages_must_be_weighed(operator_client):
    create_and_add("free", MessageWindow(3, free_system=True), numbered(8))
    create_and_add("turns", TurnWindow(2), numbered(8))
    protocol.update_messages("client", numbered(3))
    for memory_id in ("free", "turns", "client"):
        found = operator_client.get(f"/api/v1/memories/{memory_id}/").json()
        assert found["history_load"] is None
