"""Simulations over HTTP store nothing."""

from __future__ import annotations

from chatmemory import queries
from chatmemory.core.policies import MessageWindow

from .said import URL, add, user


def test_a_simulation_changes_nothing(api, memory_id):
    add(api, "a", "b", "c")
    body = {"messages": [user("d")], "policy": {"kind": "message_window", "max_messages": 2}}
    answer = api.post(f"{URL}simulate/", body).data
    assert [left["seq"] for left in answer["changes"][0]["evicted"]] == [1, 2]
    assert answer["window"] == {"count": 2, "tokens": 10}
    assert queries.memory(memory_id).last_step == 3
    assert queries.memory(memory_id).policy == MessageWindow(3)


def test_a_simulation_can_start_at_any_step(api, memory_id):
    api.post(f"{URL}messages/", {"messages": [user("a"), user("b")]})
    body = {"messages": [user("x")], "at": 1}
    assert api.post(f"{URL}simulate/", body).data["window"]["count"] == 2
    assert api.post(f"{URL}simulate/", body | {"at": 0}).data["window"]["count"] == 1
    assert api.post(f"{URL}simulate/", body | {"at": 3}).status_code == 404


def test_very_many_messages_are_counted_anew_only_if_asked(api, memory_id, monkeypatch):
    monkeypatch.setattr("chatmemory.queries.simulation.RECOUNTED_AT_ONCE", 2)
    add(api, "a", "b", "c")
    policy = {"kind": "token_window", "max_tokens": 12, "estimator": "gpt-4"}
    body = {"messages": [user("d")], "policy": policy}
    answer = api.post(f"{URL}simulate/", body)
    assert (answer.status_code, answer.data["title"]) == (422, "Long recount")
    assert answer.data["field"] == "recount"
    assert "all 3 messages in memory" in answer.data["detail"]
    assert api.post(f"{URL}simulate/", body | {"recount": True}).data["changes"]
    assert api.post(f"{URL}simulate/", body | {"at": 2}).status_code == 200
