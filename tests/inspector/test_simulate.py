from __future__ import annotations

import pytest
from django.test import Client

from chatmemory import (
    AiMessage,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    queries,
    services,
)
from chatmemory.core.exceptions import InvalidValue
from chatmemory.core.policies import MessageWindow
from inspector.forms import read_draft

URL = "/c/order-7741/simulate/"
ADD = "/c/order-7741/add/"


@pytest.fixture
def full(memory_id) -> str:
    services.add(memory_id, [UserMessage(word) for word in "abc"])
    return memory_id


def draft(client, url=URL, **values):
    return client.post(url, {"role": "user", "text": "d", **values})


def test_a_preview_shows_what_would_leave_and_saves_nothing(operator_client, full):
    page = draft(operator_client).context["page"]
    assert page.is_simulation
    assert [row.text for row in page.window.rows] == ["b", "c", "d"]
    assert [ghost.seq for ghost in page.ghosts.rows] == [1]
    assert page.verdict.words == "Would evict. 1 message: #1"
    assert queries.memory(full).steps == 3


def test_a_preview_is_unmistakable(operator_client, full):
    html = draft(operator_client).content.decode()
    assert "Simulation from step 3." in html
    assert "Nothing here is saved" in html
    assert "Would leave" in html
    assert "Your draft arrived" in html


def test_the_preview_comes_true(operator_client, full):
    script = "user: one\ncall: find(7)\nresult: found\nai: two"
    page = draft(operator_client, role="script", text=script).context["page"]
    foreseen = [row.text for row in page.window.rows]
    response = draft(operator_client, ADD, role="script", text=script)
    assert response["Location"] == "/c/order-7741/"
    assert [row.text for row in queries.window(full).rows] == foreseen
    assert queries.step(full, 7).step.actor == "operator"


def test_moving_the_limit_shows_what_would_leave(operator_client, full):
    page = draft(operator_client, text="", limit="1").context["page"]
    assert [row.text for row in page.window.rows] == ["c"]
    assert [row.seq for row in page.hidden] == [1, 2]
    assert queries.memory(full).policy == MessageWindow(3)


def test_a_limit_and_a_draft_are_put_in_force_together(operator_client, full):
    draft(operator_client, ADD, limit="2")
    assert queries.memory(full).policy == MessageWindow(2)
    assert [row.text for row in queries.window(full).rows] == ["c", "d"]


def test_the_same_limit_is_no_change(operator_client, full):
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
    assert queries.memory(full).steps == 3


def test_text_that_cannot_be_stored_is_refused(operator_client, full):
    response = draft(
        operator_client, ADD, role="script", text='[{"role":"user","content":"\\u0000"}]'
    )
    assert response.status_code == 422
    assert "NUL" in response.content.decode()
    assert queries.memory(full).steps == 3


def test_where_the_client_decides_there_is_no_composer(operator_client, db):
    services.update_window("order-7741", [UserMessage("a")])
    assert b"data-composer" not in operator_client.get("/c/order-7741/").content
    assert draft(operator_client).status_code == 422


def test_in_the_past_there_is_no_composer(operator_client, full):
    assert b"data-composer" in operator_client.get("/c/order-7741/").content
    assert b"data-composer" not in operator_client.get("/c/order-7741/?at=2").content


@pytest.mark.parametrize("url", [URL, ADD])
def test_only_posts_of_signed_in_readers_count(operator_client, full, url):
    assert operator_client.get(url).status_code == 405
    assert Client().post(url, {"role": "user", "text": "d"}).status_code == 302
    assert Client(enforce_csrf_checks=True).post(url).status_code == 403
    assert queries.memory(full).steps == 3


def test_an_unknown_conversation_is_not_found(operator_client):
    assert operator_client.post("/c/nobody/add/", {"text": "x"}).status_code == 404


def test_htmx_gets_the_live_page_after_an_add(operator_client, full):
    response = operator_client.post(
        ADD, {"role": "user", "text": "d"}, headers={"HX-Request": "true"}
    )
    assert response["HX-Push-Url"] == "/c/order-7741/"
    assert response.content.strip().startswith(b'<main id="main"')


def test_scripts_are_read_line_by_line():
    script = (
        'system: Be brief.\nuser: first\n  second\ncall: find({"id": 7})\nresult: found\nAI: ok'
    )
    assert read_draft("script", script) == [
        SystemMessage("Be brief."),
        UserMessage("first\n  second"),
        AiMessage(None, (ToolExecutionRequest(None, "find", '{"id": 7}'),)),
        ToolExecutionResultMessage(None, "find", "found"),
        AiMessage("ok"),
    ]


def test_scripts_may_be_transcripts():
    assert read_draft("script", '[{"role":"user","content":"hi"}]') == [UserMessage("hi")]


@pytest.mark.parametrize("bad", ["hello", "{", "[]"])
def test_scripts_that_are_none_are_refused(bad):
    with pytest.raises(InvalidValue):
        read_draft("script", bad)
