"""Client ids, errors and losses of a request name its messages as they were sent."""

from __future__ import annotations

import pytest

from chatmemory import TokenWindow, queries, services

from .said import URL

BLANK = {"role": "system", "content": ""}
CALL = {"from": "function_call", "value": '{"name": "find", "arguments": {}}'}


def said(text: str) -> dict:
    return {"role": "user", "content": text}


def openai(*messages: dict, **more) -> dict:
    return {"messages": list(messages), "format": "openai_chat", **more}


def stored(memory_id: str) -> list[tuple[str, str | None]]:
    return [(row.text, row.client_id) for row in queries.history(memory_id).rows]


def test_a_client_id_belongs_to_the_message_that_it_was_sent_for(api, memory_id):
    body = openai(BLANK, said("a"), BLANK, said("b"), client_ids=["s", "1", None, "2"])
    for _ in range(2):
        assert api.post(f"{URL}messages/", body).status_code == 201
    assert stored(memory_id) == [("a", "1"), ("b", "2")]


def test_there_are_as_many_client_ids_as_messages_were_sent(api, memory_id):
    answer = api.post(f"{URL}messages/", openai(BLANK, said("a"), client_ids=["s"]))
    assert (answer.status_code, answer.data["field"]) == (422, "client_ids")
    assert "for each of the 2 messages" in answer.data["detail"]
    assert stored(memory_id) == []


@pytest.mark.parametrize(
    ("sent", "format"), [(said("a"), "openai_chat"), ({"from": "human", "value": "a"}, "sharegpt")]
)
def test_messages_of_another_format_are_told_its_name(api, memory_id, sent, format):
    for method, path in (("post", "messages"), ("put", "messages"), ("post", "simulate")):
        answer = getattr(api, method)(f"{URL}{path}/", {"messages": [sent]})
        assert (answer.status_code, answer.data["field"]) == (422, "messages[0]")
        assert f'"format": "{format}"' in answer.data["detail"]
    answer = api.put("/api/v1/store/order-7741/", [sent])
    assert answer.status_code == 422
    assert "format" not in answer.data["detail"]


def test_of_several_that_make_one_message_the_first_client_id_is_stored(api, memory_id):
    sent = [{"from": "gpt", "value": "I look."}, CALL, {"from": "human", "value": "ok"}]
    body = {"messages": sent, "format": "sharegpt", "client_ids": ["1", "2", "3"]}
    for _ in range(2):
        assert api.post(f"{URL}messages/", body).status_code == 201
    assert stored(memory_id) == [("I look.\nfind({})", "1"), ("ok", "3")]


@pytest.mark.parametrize(("method", "path"), [("post", "messages"), ("post", "simulate")])
def test_a_message_that_is_too_large_is_named_as_it_was_sent(api, db, method, path):
    services.create("order-7741", TokenWindow(30, oversized="reject"))
    answer = getattr(api, method)(f"{URL}{path}/", openai(BLANK, said("word " * 99)))
    assert (answer.status_code, answer.data["title"]) == (422, "Oversized message")
    assert answer.data["field"] == "messages[1]"
    assert answer.data["detail"].startswith("message 2: ")


def test_client_ids_are_a_list(api, memory_id):
    answer = api.post(f"{URL}messages/", openai(said("a"), client_ids={}))
    assert (answer.status_code, answer.data["field"]) == (422, "client_ids")
    assert answer.data["detail"] == "must be a list of strings and nulls"


@pytest.mark.parametrize(("method", "path"), [("put", "messages"), ("post", "simulate")])
def test_client_ids_are_refused_where_none_are_stored(api, memory_id, method, path):
    answer = getattr(api, method)(f"{URL}{path}/", openai(said("a"), client_ids=["1"]))
    assert (answer.status_code, answer.data["field"]) == (422, "client_ids")
    assert answer.data["detail"].startswith("unknown member")
    assert stored(memory_id) == []


@pytest.mark.parametrize(
    ("method", "path"), [("post", "messages"), ("put", "messages"), ("post", "simulate")]
)
def test_what_could_not_be_read_is_answered(api, memory_id, method, path):
    parts = [{"type": "text", "text": "look"}, {"type": "video", "x": 1}]
    body = openai(BLANK, {"role": "user", "content": parts}, said("a"))
    assert getattr(api, method)(f"{URL}{path}/", body).json()["lost"] == [
        {"where": "message 1", "what": "a blank system message"},
        {"where": "message 2", "what": "a part of type 'video'"},
    ]
    whole = getattr(api, method)(f"{URL}{path}/", openai(said("b")))
    assert whole.json()["lost"] == []


def test_of_very_many_losses_the_first_are_answered(api, memory_id):
    answer = api.post(f"{URL}messages/", openai(*[BLANK] * 300, said("a")))
    assert len(answer.json()["lost"]) == 200


def test_a_retry_after_a_redaction_adds_nothing(api, memory_id):
    body = openai(said("secret"), said("b"), client_ids=["1", "2"])
    assert api.post(f"{URL}messages/", body).status_code == 201
    services.redact(memory_id, 1)
    again = api.post(f"{URL}messages/", body)
    assert again.status_code == 201
    assert [(each["seq"], each["ignored"]) for each in again.data["changes"]] == [
        (1, True),
        (2, True),
    ]
    assert stored(memory_id) == [("[redacted #1]", "1"), ("b", "2")]
    other = openai({"role": "assistant", "content": "secret"}, client_ids=["1"])
    assert api.post(f"{URL}messages/", other).data["title"] == "Duplicate client id"


@pytest.mark.parametrize(
    ("turn", "why"),
    [
        ({"role": "user"}, "content is missing"),
        ({"role": "assistant", "content": [{"type": "tool_use"}]}, "no part of its content"),
    ],
)
def test_a_message_of_which_nothing_can_be_read_is_refused(api, memory_id, turn, why):
    for method, path in (("post", "messages"), ("put", "messages"), ("post", "simulate")):
        answer = getattr(api, method)(f"{URL}{path}/", openai(said("a"), turn))
        assert (answer.status_code, answer.data["field"]) == (422, "messages[1]")
        assert why in answer.data["detail"]
    assert stored(memory_id) == []
