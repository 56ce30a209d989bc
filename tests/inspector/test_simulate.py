from __future__ import annotations

import pytest
from django.test import Client

from chatmemory import (
    UserMessage,
    queries,
    services,
)
from chatmemory.core.policies import MessageWindow
from chatmemory.services import protocol

URL = "/c/order-7741/simulate/"
ADD = "/c/order-7741/add/"
BRANCH = "/c/order-7741/branch/"


@pytest.fixture
def full(memory_id) -> str:
    services.add(memory_id, [UserMessage(word) for word in "abc"])
    return memory_id


def draft(client, url=URL, **values):
    return client.post(url, {"role": "user", "text": "d", **values})


def test_a_preview_shows_what_would_leave_and_saves_nothing(operator_client, full):
    page = draft(operator_client).context["page"]
    assert page.is_simulation
    assert [row.text for row in page.memory_pane.messages] == ["b", "c", "d"]
    assert [ghost.seq for ghost in page.memory_pane.ghosts.rows] == [1]
    assert page.simulation.verdict.summary == "Would evict. 1 message: #1"
    assert queries.memory(full).last_step == 3


def test_a_preview_is_marked_as_a_simulation(operator_client, full):
    html = draft(operator_client).content.decode()
    assert "Simulation from step 3." in html
    assert "Nothing here is saved" in html
    assert "Would leave" in html
    assert "Your draft arrived" in html


def test_the_panel_explains_each_draft(operator_client, full):
    html = draft(operator_client).content.decode()
    answer = html.partition("What would the draft push out?")[2].partition("Would providers")[0]
    assert "#4 arrived" in answer


def test_adding_has_the_effect_of_the_preview(operator_client, full):
    script = "user: one\ncall: find(7)\nresult: found\nai: two"
    page = draft(operator_client, role="script", text=script).context["page"]
    foreseen = [row.text for row in page.memory_pane.messages]
    response = draft(operator_client, ADD, role="script", text=script)
    assert response["Location"] == "/c/order-7741/"
    assert [row.text for row in queries.window(full).rows] == foreseen
    assert queries.step(full, 7).row.actor == "operator"


def test_moving_the_limit_shows_what_would_leave(operator_client, full):
    page = draft(operator_client, text="", limit="1").context["page"]
    assert [row.text for row in page.memory_pane.messages] == ["c"]
    assert page.simulation.verdict.summary == "Would evict. 2 messages: #1 and #2"
    assert queries.memory(full).policy == MessageWindow(3)


def test_a_limit_and_a_draft_are_put_in_force_together(operator_client, full):
    draft(operator_client, ADD, limit="2")
    assert queries.memory(full).policy == MessageWindow(2)
    assert [row.text for row in queries.window(full).rows] == ["c", "d"]


def test_an_equal_limit_is_not_a_change(operator_client, full):
    draft(operator_client, ADD, limit="3")
    assert [step.kind for step in queries.steps(full)] == ["add"] * 4


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"text": " "}, "Write a message"),
        ({"role": "script", "text": "hello"}, "a script begins with"),
        ({"role": "script", "text": "[1]"}, "no conversation"),
        ({"limit": "0"}, "greater than or equal to 1"),
        ({"role": "robot"}, "valid choice"),
    ],
)
def test_a_refused_draft_keeps_its_text_and_says_why(operator_client, full, values, words):
    response = draft(operator_client, ADD, **values)
    assert response.status_code == 422
    assert words in response.content.decode()
    assert queries.memory(full).last_step == 3


def test_text_that_cannot_be_stored_is_refused(operator_client, full):
    response = draft(
        operator_client, ADD, role="script", text='[{"role":"user","content":"\\u0000"}]'
    )
    assert response.status_code == 422
    assert "NUL" in response.content.decode()
    assert queries.memory(full).last_step == 3


def test_there_is_no_composer_if_the_client_decides(operator_client, db):
    protocol.update_messages("order-7741", [UserMessage("a")])
    assert b"data-composer" not in operator_client.get("/c/order-7741/").content
    assert draft(operator_client).status_code == 422


def test_drafts_gather_until_they_are_added(operator_client, full):
    first = draft(operator_client, text="d")
    drafts = first.context["form"]["drafts"].value()
    page = draft(operator_client, text="e", role="ai", drafts=drafts).context["page"]
    assert [row.text for row in page.memory_pane.messages] == ["c", "d", "e"]
    assert page.caption.summary.startswith("Your 2 drafts arrived.")
    draft(operator_client, ADD, text="", drafts=drafts)
    assert [row.text for row in queries.window(full).rows] == ["b", "c", "d"]


def test_a_refusal_keeps_the_drafts(operator_client, full):
    drafts = draft(operator_client).context["form"]["drafts"].value()
    response = draft(operator_client, role="script", text="hello", drafts=drafts)
    assert response.status_code == 422
    assert response.context["page"].is_simulation
    assert response.context["form"]["drafts"].value() == drafts


def test_unreadable_drafts_are_refused(operator_client, full):
    response = draft(operator_client, drafts='[{"type": "ROBOT"}]')
    assert response.status_code == 422
    assert "These drafts cannot be read" in response.content.decode()


def test_a_simulation_can_start_at_a_past_step(operator_client, full):
    page = draft(operator_client, text="x", at="1").context["page"]
    assert [row.text for row in page.memory_pane.messages] == ["a", "x"]
    assert [row.row.text for row in page.history_pane.rows] == ["a", "x"]
    assert page.simulation.verdict.summary == "Fits. Nothing would leave."
    page = draft(operator_client, text="x", at="3").context["page"]
    assert [row.text for row in page.memory_pane.messages] == ["b", "c", "x"]
    empty = draft(operator_client, text="x", at="0").context["page"]
    assert [row.text for row in empty.memory_pane.messages] == ["x"]


def test_a_past_step_has_no_add_button(operator_client, full):
    live = operator_client.get("/c/order-7741/").content
    past = operator_client.get("/c/order-7741/?at=2").content
    assert b"data-composer" in live
    assert b"data-composer" in past
    assert b"/add/" in live
    assert b"/add/" not in past
    assert b"badge-sim" in past
    assert b"badge-sim" not in live


def test_the_history_shows_what_would_be_forgotten(operator_client, full):
    page = draft(operator_client).context["page"]
    assert page.history_pane.rows[0].tag == "forgotten in the simulation · capacity"
    assert page.history_pane.rows[0].leaves_now
    assert "is-draft" in page.history_pane.rows[-1].css
    (cell,) = [cell for cell in page.timeline.cells if cell.is_draft]
    assert cell.is_head


def test_a_simulation_is_saved_as_a_new_conversation(operator_client, full):
    services.set_messages(full, [UserMessage("c"), UserMessage("b")])
    foreseen = [
        row.text for row in draft(operator_client, at="4").context["page"].memory_pane.messages
    ]
    response = draft(operator_client, BRANCH, at="4", new_id="other/one")
    assert response["Location"] == "/c/other~2Fone/"
    assert [row.text for row in queries.window("other/one").rows] == foreseen == ["c", "b", "d"]
    assert [row.text for row in queries.history("other/one").rows] == ["a", "b", "c", "d"]
    assert queries.memory("other/one").labels == {"from": "order-7741 step 4"}
    assert queries.memory(full).last_step == 4


def test_it_is_saved_under_the_limit_that_was_tried(operator_client, full):
    draft(operator_client, BRANCH, new_id="two", limit="2")
    assert queries.memory("two").policy == MessageWindow(2)
    assert [row.text for row in queries.window("two").rows] == ["c", "d"]


@pytest.mark.parametrize(("new_id", "words"), [("", "a memory id"), ("order-7741", "exists")])
def test_an_invalid_id_for_a_branch_is_refused(operator_client, full, new_id, words):
    response = draft(operator_client, BRANCH, new_id=new_id)
    assert response.status_code == 422
    assert words in response.content.decode()
    assert queries.overview().total == 1


def test_an_unknown_step_is_refused(operator_client, full):
    response = draft(operator_client, at="9")
    assert response.status_code == 422
    assert "no step 9" in response.content.decode()


@pytest.mark.parametrize("url", [URL, ADD, BRANCH])
def test_only_posts_of_signed_in_users_are_accepted(operator_client, full, url):
    assert operator_client.get(url).status_code == 405
    assert Client().post(url, {"role": "user", "text": "d"}).status_code == 302
    assert Client(enforce_csrf_checks=True).post(url).status_code == 403
    assert queries.memory(full).last_step == 3


def test_an_unknown_conversation_is_not_found(operator_client):
    assert operator_client.post("/c/nobody/add/", {"text": "x"}).status_code == 404


def test_htmx_gets_the_live_page_after_an_add(operator_client, full):
    response = operator_client.post(
        ADD, {"role": "user", "text": "d"}, headers={"HX-Request": "true"}
    )
    assert response["HX-Push-Url"] == "/c/order-7741/"
    assert response.content.strip().startswith(b'<main id="main"')
