"""If-Match: a change of another version is refused."""

from __future__ import annotations

import pytest

from chatmemory import queries
from chatmemory.ledger.verification import verify

from .said import URL, add, user


def test_it_checks_the_version(api, memory_id):
    body = {"messages": [user("a")]}
    headers = {"If-Match": '"3"'}
    answer = api.post(f"{URL}messages/", body, headers=headers)
    assert answer.status_code == 412
    version = queries.memory(memory_id).version
    assert answer["ETag"] == f'"{version}"'
    assert answer.data["current"]["version"] == version
    assert answer.data["current"]["window"]["count"] == queries.memory(memory_id).window.count
    headers = {"If-Match": '"0"'}
    assert api.post(f"{URL}messages/", body, headers=headers).status_code == 201
    headers = {"If-Match": "three"}
    assert api.post(f"{URL}messages/", body, headers=headers).status_code == 422


def test_a_weak_version_is_checked_too(api, memory_id):
    add(api, "a", "b", "c")
    body = {"labels": {"a": "b"}}
    assert api.patch(URL, body, headers={"If-Match": 'W/"2"'}).status_code == 412
    assert api.patch(URL, body, headers={"If-Match": 'W/"3"'}).status_code == 200
    assert queries.memory(memory_id).labels == {"a": "b"}


def test_the_first_policy_of_a_conversation_is_a_version(api):
    api.post("/api/v1/memories/", {"id": "order-7741", "policy": None})
    headers = {"If-Match": '"0"'}
    first = {"policy": {"kind": "message_window", "max_messages": 3}}
    second = {"policy": {"kind": "token_window", "max_tokens": 9}}
    answer = api.patch(URL, first, headers=headers)
    assert (answer.status_code, answer["ETag"]) == (200, '"1"')
    assert api.patch(URL, second, headers=headers).status_code == 412
    (step,) = api.get(f"{URL}steps/").data["steps"]
    assert (step["kind"], step["policy"]["max_messages"]) == ("policy", 3)
    assert verify("order-7741") is None


CHANGES = [
    ("patch", URL, {"labels": {"a": "b"}}),
    ("delete", URL, None),
    ("post", f"{URL}messages/", {"messages": []}),
    ("put", f"{URL}messages/", {"messages": []}),
    ("delete", f"{URL}messages/", None),
    ("post", f"{URL}messages/1/redact/", None),
    ("put", "/api/v1/store/order-7741/", []),
    ("delete", "/api/v1/store/order-7741/", None),
]


@pytest.mark.parametrize(("method", "url", "body"), CHANGES)
def test_every_change_checks_the_version(api, memory_id, method, url, body):
    add(api, "a")
    answer = getattr(api, method)(url, body, headers={"If-Match": '"7"'})
    assert answer.status_code == 412
    assert answer.data["current"]["version"] == queries.memory(memory_id).version == 1
    assert getattr(api, method)(url, body, headers={"If-Match": '"1"'}).status_code < 300


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("get", ""),
        ("patch", ""),
        ("get", "messages/"),
        ("get", "messages/?as=openai_chat"),
        ("post", "messages/"),
        ("put", "messages/"),
        ("delete", "messages/"),
        ("get", "messages/1/"),
        ("post", "messages/2/pin/"),
        ("delete", "messages/2/pin/"),
        ("post", "messages/1/redact/"),
    ],
)
def test_answers_about_a_conversation_carry_its_version(api, memory_id, method, path):
    add(api, "a", "b")
    bodies = {"messages/": {"messages": [user("c")]}, "": {"labels": {"a": "b"}}}
    body = bodies.get(path) if method in ("post", "put", "patch") else None
    answer = getattr(api, method)(f"{URL}{path}", body)
    assert answer.status_code < 300
    assert answer["ETag"] == f'"{queries.memory(memory_id).version}"'


def test_a_window_of_the_past_and_lists_carry_no_version(api, memory_id):
    add(api, "a", "b")
    for path in ("messages/?at=1", "history/", "steps/", "steps/1/"):
        assert "ETag" not in api.get(f"{URL}{path}"), path


def test_a_version_of_an_unknown_conversation(api):
    url, headers = "/api/v1/store/nobody/", {"If-Match": '"7"'}
    answer = api.put(url, [], headers=headers)
    assert (answer.status_code, answer.data["current"]) == (412, None)
    assert api.delete(url, headers=headers).status_code == 404
    assert api.get("/api/v1/memories/nobody/").status_code == 404
