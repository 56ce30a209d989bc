"""Simulations over HTTP store nothing."""

from __future__ import annotations

from chatmemory import MessageWindow
from chatmemory.reading import conversations
from tests.api.messages import URL, add, user


def test_a_simulation_changes_nothing(api, memory_id):
    add(api, "a", "b", "c")
    body = {"messages": [user("d")], "policy": {"kind": "message_window", "max_messages": 2}}
    answer = api.post(f"{URL}simulate/", body).json()
    assert [left["seq"] for left in answer["changes"][0]["evicted"]] == [1, 2]
    assert answer["window"] == {"count": 2, "tokens": 10}
    assert conversations.memory(memory_id).last_step == 3
    assert conversations.memory(memory_id).policy == MessageWindow(3)


def test_a_simulation_can_start_at_any_step(api, memory_id):
    api.post(f"{URL}messages/", {"messages": [user("a"), user("b")]})
    body = {"messages": [user("x")], "at": 1}
    assert api.post(f"{URL}simulate/", body).json()["window"]["count"] == 2
    assert api.post(f"{URL}simulate/", body | {"at": 0}).json()["window"]["count"] == 1
    assert api.post(f"{URL}simulate/", body | {"at": 3}).status_code == 404


def test_no_policy_is_named_before_a_first_step_that_changed_it(api, memory_id):
    api.patch(URL, {"policy": {"kind": "token_window", "max_tokens": 9}})
    before, after = (api.get(f"{URL}messages/?at={step}").json() for step in (0, 1))
    assert (before["policy"], before["limit"], before["load"]) == (None, None, None)
    assert after["policy"]["max_tokens"] == 9
    body = {"messages": [user("a")], "at": 0}
    answer = api.post(f"{URL}simulate/", body)
    assert (answer.status_code, answer.data["title"]) == (409, "Policy required")
    assert answer.data["detail"] == (
        "the policy of 'order-7741' at step 0 is not recorded: give a policy to try"
    )
    policy = {"kind": "message_window", "max_messages": 3}
    answer = api.post(f"{URL}simulate/", body | {"policy": policy})
    assert answer.json()["window"]["count"] == 1


def test_very_many_messages_are_counted_anew_only_if_asked(api, memory_id, monkeypatch):
    monkeypatch.setattr("chatmemory.reading.simulation.RECOUNTED_AT_ONCE", 2)
    add(api, "a", "b", "c")
    policy = {"kind": "token_window", "max_tokens": 12, "estimator": "gpt-4"}
    body = {"messages": [user("d")], "policy": policy}
    answer = api.post(f"{URL}simulate/", body)
    assert (answer.status_code, answer.data["title"]) == (422, "Long recount")
    assert answer.data["field"] == "recount"
    assert "all 3 messages in memory" in answer.data["detail"]
    assert api.post(f"{URL}simulate/", body | {"recount": True}).json()["changes"]
    assert api.post(f"{URL}simulate/", body | {"at": 2}).status_code == 200
