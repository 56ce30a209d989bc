"""If-Match: a change of another version is refused, and answers carry the version."""

from __future__ import annotations

import pytest

from chatmemory.ledger.verification import verify
from chatmemory.reading import conversations
from chatmemory.reading.conversations import any_memory

from .messages import URL, add

STORE = "/api/v1/store/order-7741/"
CHANGES = [
    ("patch", URL, {"labels": {"a": "b"}}),
    ("delete", URL, None),
    ("post", f"{URL}messages/", {"messages": []}),
    ("put", f"{URL}messages/", {"messages": []}),
    ("delete", f"{URL}messages/", None),
    ("post", f"{URL}messages/1/pin/", None),
    ("delete", f"{URL}messages/1/pin/", None),
    ("post", f"{URL}messages/1/redact/", None),
    ("put", STORE, []),
    ("delete", STORE, None),
]
READS = ["", "messages/", "messages/?as=openai_chat", "messages/1/"]
WITHOUT = ["messages/?at=1", "history/", "steps/", "steps/1/"]


@pytest.mark.parametrize(("method", "url", "body"), CHANGES)
def test_every_change_checks_the_version_and_answers_it(api, memory_id, method, url, body):
    add(api, "a")
    answer = getattr(api, method)(url, body, headers={"If-Match": '"7"'})
    now = conversations.memory(memory_id)
    assert (answer.status_code, answer.data["title"]) == (412, "Version conflict")
    assert answer["ETag"] == f'"{now.version}"' == '"1"'
    current = answer.data["current"]
    assert (current["version"], current["window"]["count"]) == (1, now.window.count)
    done = getattr(api, method)(url, body, headers={"If-Match": '"1"'})
    assert done.status_code < 300
    if done.status_code < 204:
        assert done["ETag"] == f'"{conversations.memory(memory_id).version}"'


def test_answers_about_a_conversation_carry_its_version(api, memory_id):
    add(api, "a", "b")
    assert [api.get(URL + path)["ETag"] for path in READS] == ['"2"'] * len(READS)
    for path in WITHOUT:
        assert "ETag" not in api.get(f"{URL}{path}"), path


@pytest.mark.parametrize("path", ["messages/", "messages/?as=openai_chat", "messages/1/"])
def test_who_has_the_answer_of_a_version_is_not_sent_it_again(api, memory_id, path):
    add(api, "a")
    etag = api.get(URL + path)["ETag"]
    for header in (etag, f"W/{etag}", f'"7", {etag}', "*"):
        answer = api.get(URL + path, headers={"If-None-Match": header})
        assert (answer.status_code, answer.content, answer["ETag"]) == (304, b"", etag), header
    add(api, "b")
    answer = api.get(URL + path, headers={"If-None-Match": etag})
    assert (answer.status_code, answer["ETag"]) == (200, '"2"')


@pytest.mark.parametrize(
    "path", ["messages/?lint=openai", "messages/?at=1", "messages/9/", "", "history/", "incidents/"]
)
def test_an_answer_that_does_not_depend_on_the_version_alone_is_sent(api, memory_id, path):
    add(api, "a")
    answer = api.get(URL + path, headers={"If-None-Match": '"1"'})
    assert answer.status_code == (404 if "9" in path else 200)
    assert answer.content


@pytest.mark.parametrize(
    ("header", "status"), [("three", 422), ('"2', 422), ('W/"2"', 412), ('W/"3"', 200), ("*", 200)]
)
def test_a_version_may_be_weak(api, memory_id, header, status):
    add(api, "a", "b", "c")
    answer = api.patch(URL, {"labels": {"a": "b"}}, headers={"If-Match": header})
    assert answer.status_code == status
    assert conversations.memory(memory_id).labels == ({"a": "b"} if status == 200 else {})


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


def test_a_version_of_an_unknown_conversation(api):
    headers = {"If-Match": '"7"'}
    answer = api.put(STORE, [], headers=headers)
    assert (answer.status_code, answer.data["current"]) == (412, None)
    assert api.delete(STORE, headers=headers).status_code == 404
    assert not any_memory()
