"""The window over HTTP: show, add, replace and clear."""

from __future__ import annotations

import pytest
from rest_framework import serializers

from chatmemory import AiMessage, UserMessage, queries, services
from chatmemory.api.responses import ChangeSerializer, EvictedSerializer
from chatmemory.services import protocol

from .said import URL, add, user


def test_it_adds_messages_and_returns_the_changes(api, memory_id):
    response = add(api, "a", "b", "c", "d")
    assert response.status_code == 201
    assert response.data["version"] == 4
    last = response.data["changes"][-1]
    assert last["seq"] == 4
    assert last["evicted"] == [
        {"seq": 1, "type": "USER", "tokens": 5, "reason": "CAPACITY", "because_seq": None}
    ]
    assert last["after"] == {"count": 3, "tokens": 15}


def test_an_ignored_message_has_no_step(api, memory_id):
    system = {"type": "SYSTEM", "text": "Be brief."}
    response = api.post(f"{URL}messages/", {"messages": [system, system]})
    assert [each["ignored"] for each in response.data["changes"]] == [False, True]


def test_it_reads_openai_messages(api, memory_id):
    body = {"messages": [{"role": "user", "content": "hi"}], "format": "openai_chat"}
    assert api.post(f"{URL}messages/", body).status_code == 201
    assert queries.window(memory_id).messages == [UserMessage("hi")]


@pytest.mark.parametrize(
    ("messages", "field"),
    [
        ([user("fine"), {"type": "USER"}], "messages[1]"),
        ([user("fine"), "text"], "messages[1]"),
        ([None], "messages[0]"),
        ("no list", "messages"),
        ([{"type": "SYSTEM", "text": "x", "foo": 1}], "messages[0]"),
    ],
)
def test_an_invalid_message_is_named_and_none_is_stored(api, memory_id, messages, field):
    response = api.post(f"{URL}messages/", {"messages": messages})
    assert response.status_code == 422
    assert response.data["field"] == field
    assert queries.memory(memory_id).last_step == 0


@pytest.mark.parametrize("bad", ["nul \x00", "\ud800"])
def test_unstorable_text_is_refused(api, memory_id, bad):
    raw = '{"messages":[{"type":"USER","contents":[{"type":"TEXT","text":%s}]}]}'
    escaped = "".join(f"\\u{ord(c):04x}" for c in bad)
    response = api.generic(
        "POST", f"{URL}messages/", raw % f'"{escaped}"', content_type="application/json"
    )
    assert response.status_code == 422
    assert queries.memory(memory_id).last_step == 0


def test_it_needs_a_policy(api, db):
    protocol.update_messages("order-7741", [UserMessage("a")])
    body = {"messages": [user("b")]}
    for answer, advice in (
        (add(api, "b"), "set a policy before adding to it"),
        (api.put(f"{URL}messages/", body), "set a policy before replacing its messages"),
        (api.post(f"{URL}messages/1/pin/"), "set a policy before pinning"),
        (api.post(f"{URL}simulate/", body), "set a policy before simulating, or give one to try"),
    ):
        assert (answer.status_code, answer.data["title"]) == (409, "Policy required")
        assert answer.data["detail"].endswith(f"'order-7741': {advice}")


def test_client_ids_make_a_retry_harmless(api, memory_id):
    for _ in range(2):
        assert add(api, "a", "b", client_ids=["1", None]).status_code == 201
    assert [row.text for row in queries.history(memory_id).rows] == ["a", "b", "b"]
    assert add(api, "other", client_ids=["1"]).status_code == 409
    assert add(api, "c", "d", client_ids=["1"]).status_code == 422
    assert add(api, "c", client_ids=[]).status_code == 422


def test_client_ids_are_taken_as_they_are(api, memory_id):
    added = add(api, "yes", "yes", client_ids=["turn 1", "turn 1 "])
    assert [each["ignored"] for each in added.data["changes"]] == [False, False]
    wrong = add(api, "c", "d", client_ids=["x", "y" * 256])
    assert wrong.json()["field"] == "client_ids[1]"


def test_it_shows_the_window_now_and_at_a_step(api, memory_id):
    add(api, "a", "b", "c", "d")
    now = api.get(f"{URL}messages/").json()
    assert now["seqs"] == [2, 3, 4]
    assert (now["load"], now["limit"]) == (3, 3)
    assert now["messages"][0] == user("b") | {"contents": [{"text": "b", "type": "TEXT"}]}
    then = api.get(f"{URL}messages/?at=2").json()
    assert then["seqs"] == [1, 2]
    assert api.get(f"{URL}messages/?at=0").json()["messages"] == []


@pytest.mark.parametrize(("query", "status"), [("?at=9", 404), ("?at=x", 422), ("?as=x", 422)])
def test_invalid_steps_and_formats_are_refused(api, memory_id, query, status):
    assert api.get(f"{URL}messages/{query}").status_code == status


def test_it_writes_openai_messages_and_lists_losses(api, memory_id):
    services.add(memory_id, [AiMessage("hi", thinking="hm")])
    answer = api.get(f"{URL}messages/?as=openai_chat").json()
    assert answer["messages"] == [{"role": "assistant", "content": "hi"}]
    assert answer["lost"] == [{"where": "message 1", "what": "thinking"}]


def test_it_sets_and_clears(api, memory_id):
    add(api, "a")
    response = api.put(f"{URL}messages/", {"messages": [user(word) for word in "wxyz"]})
    assert response.data["changes"][0]["after"]["count"] == 3
    response = api.delete(f"{URL}messages/")
    assert [left["reason"] for left in response.data["changes"][0]["evicted"]] == ["CLEARED"] * 3
    assert api.delete(f"{URL}messages/").data["changes"][0]["ignored"]
    assert queries.memory(memory_id).said_count == 5


def test_too_many_messages_at_a_time_are_refused(api, memory_id, settings):
    settings.CHATMEMORY = {"ADDED_MESSAGES": 2}
    answer = add(api, "a", "b", "c")
    assert (answer.status_code, answer.data["field"]) == (422, "messages")
    assert answer.data["detail"] == (
        'at most 2 messages at a time, the limit of CHATMEMORY["ADDED_MESSAGES"]: '
        "send several requests"
    )
    assert queries.memory(memory_id).last_step == 0
    assert add(api, "a", "b").status_code == 201
    assert (
        api.put(f"{URL}messages/", {"messages": [user(word) for word in "abc"]}).status_code == 200
    )


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("put", f"{URL}messages/"),
        ("post", f"{URL}simulate/"),
        ("put", "/api/v1/store/order-7741/"),
    ],
)
def test_what_cannot_be_sent_in_parts_is_not_told_to_be(api, memory_id, method, path):
    many = [user("a")] * 10_001
    answer = getattr(api, method)(path, many if "store" in path else {"messages": many})
    rule = 'at most 10,000 messages in all, the limit of CHATMEMORY["LISTED_MESSAGES"]'
    assert (answer.status_code, answer.data["detail"]) == (422, rule)
    assert queries.memory(memory_id).last_step == 0


def test_a_change_is_answered_as_its_fields_say(memory_id):
    """It is made without asking each field, and its document is made of the fields."""
    added = services.add(memory_id, [UserMessage(f"message {n}") for n in range(5)])
    for change in (*added, services.clear_messages(memory_id)):
        told = serializers.Serializer.to_representation(ChangeSerializer(), change)
        evicted = EvictedSerializer(change.evicted, many=True).data
        assert ChangeSerializer(change).data == told | {"evicted": evicted}
        assert list(ChangeSerializer(change).data) == list(told)
