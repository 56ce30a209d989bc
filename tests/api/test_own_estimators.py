"""Conversations whose estimator is known to the library that made them, and not to the server."""

from __future__ import annotations

import pytest

from chatmemory import TokenWindowChatMemory, UserMessage, queries
from chatmemory.ledger.verification import verify
from chatmemory.stores.database import DjangoChatMemoryStore

from ..a_program import LettersEstimator

URL = "/api/v1/memories/own/"
BODY = {"messages": [{"type": "AI", "text": "hello"}]}


@pytest.fixture
def own(db) -> TokenWindowChatMemory:
    memory = TokenWindowChatMemory("own", 20, LettersEstimator(), DjangoChatMemoryStore())
    memory.add(UserMessage("one"), UserMessage("two"))
    return memory


@pytest.mark.parametrize(
    ("method", "path"), [("post", "messages/"), ("put", "messages/"), ("post", "simulate/")]
)
def test_what_needs_the_estimator_is_refused_for_now(api, own, method, path):
    response = getattr(api, method)(URL + path, BODY)
    assert response.status_code == 409
    assert response.data["type"] == "urn:chatmemory:policy-unavailable"
    assert "the tokens of 'own' are counted by 'custom:" in response.data["detail"]
    assert "not installed here" in response.data["detail"]
    assert queries.memory("own").version == 2


def test_an_estimator_that_a_client_names_is_its_mistake(api, own):
    policy = {"kind": "token_window", "max_tokens": 20, "estimator": "letters"}
    response = api.patch(URL, {"policy": policy})
    assert response.status_code == 422
    assert "'letters'" in response.data["detail"]


def test_another_policy_lets_it_go_on_and_the_library_can(api, own):
    assert api.get(f"{URL}messages/").status_code == 200
    policy = {"kind": "message_window", "max_messages": 2}
    assert api.patch(URL, {"policy": policy}).status_code == 200
    assert api.post(f"{URL}messages/", BODY).status_code == 201
    own.add(UserMessage("three"))
    assert len(own.messages()) == 3
    assert verify("own") is None
