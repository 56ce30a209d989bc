"""Recall over HTTP: of stored conversations and of conversations that are sent."""

from __future__ import annotations

import pytest

from chatmemory import AiMessage, UserMessage, services
from chatmemory.access.tokens import create_token
from chatmemory.reading.conversations import any_memory
from chatmemory.reading.finding import MemoryFilter
from chatmemory.windows.policies import MessageWindow
from inspector.rooms.lab import stored as stored_reads
from inspector.rooms.lab.stored import recall_of_stored
from tests.conversations import create_and_add

SAID = [UserMessage("Order A-1182."), AiMessage("Yes?"), UserMessage("Hm"), AiMessage("A-1182")]

USER = {"type": "USER", "contents": [{"type": "TEXT", "text": "a"}]}


@pytest.fixture
def conversations(db):
    for memory_id, label in (("acme/1", "a"), ("acme/2", "b"), ("other", "a")):
        create_and_add(memory_id, MessageWindow(20), SAID, {"team": label})


def rows(response):
    return [(row["policy"], row["conversations"], row["held"]) for row in response.data["results"]]


def test_stored_conversations_are_chosen_by_label_and_prefix(api, conversations):
    counts = {"": 3, "&label=team:a": 2, "&prefix=acme/": 2, "&prefix=acme/&label=team:a": 1}
    for query, count in counts.items():
        found = api.get(f"/api/v1/recall/?policies=message_window:2,everything{query}")
        assert rows(found) == [("message_window:2", count, 0), ("everything", count, count)]


def test_a_token_with_a_prefix_counts_only_its_own(api, conversations):
    secret = create_token("acme", prefix="acme/")
    api.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    counts = {"": 2, "acme/": 2, "acme/2": 1, "a": 2, "other": 0, "ACME": 0}
    for prefix, count in counts.items():
        found = api.get(f"/api/v1/recall/?policies=everything&prefix={prefix}")
        assert rows(found) == [("everything", count, count)], prefix


def test_conversations_that_are_sent_are_not_stored(api):
    said = [{"role": "user", "content": "A-1182"}, {"role": "assistant", "content": "A-1182!"}]
    body = {"conversations": [said, said], "format": "openai_chat", "policies": "message_window:1"}
    (row,) = api.post("/api/v1/recall/", body).data["results"]
    assert (row["conversations"], row["recalls"], row["held"], row["calls"]) == (2, 2, 2, 2)
    assert not any_memory()


@pytest.mark.parametrize(
    ("policies", "words"),
    [
        ("", "blank"),
        (",".join(["everything"] * 11), "at most 10 policies"),
        ("low_water=0.6", "before the first policy"),
        ("everything,estimator=gpt-4o", "has no options"),
        ("message_window:0", "greater than zero"),
        ("message_window:2,colour=red", "no option"),
        ("token_window:5,estimator=nobody", "nobody"),
    ],
)
def test_policies_that_do_not_exist_are_refused(api, policies, words):
    response = api.get("/api/v1/recall/", {"policies": policies})
    assert response.status_code == 422
    assert response.data["field"] == "policies"
    assert words in response.data["detail"]


MANY = 'a request can have at most 10,000 messages, the limit of CHATMEMORY["LISTED_MESSAGES"]'


@pytest.mark.parametrize(
    ("conversations", "field", "words"),
    [
        ([[USER] * 10_001], "conversations[0]", MANY),
        ([[USER] * 6_000] * 2, "conversations[1]", MANY),
        (
            {},
            "conversations",
            "must be a list of conversations, and each conversation a list of messages",
        ),
        (
            "",
            "conversations",
            "must be a list of conversations, and each conversation a list of messages",
        ),
    ],
)
def test_conversations_are_lists_of_10000_messages_in_all(api, conversations, field, words):
    body = {"conversations": conversations, "policies": "everything"}
    response = api.post("/api/v1/recall/", body)
    assert (response.status_code, response.data["field"]) == (422, field)
    assert response.data["detail"] == words


def test_a_message_that_cannot_be_read_is_named(api):
    body = {"conversations": [[], [{"type": "NOBODY"}]], "policies": "everything"}
    response = api.post("/api/v1/recall/", body)
    assert (response.status_code, response.data["field"]) == (422, "conversations[1][0]")


def test_a_large_question_is_refused(api, conversations, monkeypatch):
    monkeypatch.setattr("inspector.rooms.lab.api.READ_AT_ONCE", 11)
    response = api.get("/api/v1/recall/?policies=everything")
    assert response.status_code == 422
    assert "have 12 messages" in response.data["detail"]


def test_a_conversation_that_is_deleted_meanwhile_is_left_out(conversations, monkeypatch):
    histories = stored_reads.recall_history

    def deleted_first(memory_id, *arguments, **more):
        if memory_id == "acme/2":
            services.delete(memory_id)
        return histories(memory_id, *arguments, **more)

    monkeypatch.setattr(stored_reads, "recall_history", deleted_first)
    (found,) = recall_of_stored(MemoryFilter(), [None]).rows
    assert found.conversations == 2
