"""The ChatMemoryStore protocol over HTTP."""

from __future__ import annotations

from chatmemory import SystemMessage, UserMessage, queries
from chatmemory.services import protocol

from .said import user


def test_the_store_protocol(api, db):
    url = "/api/v1/store/support/"
    assert api.get(url).json() == []
    assert not queries.any_memory()
    messages = [{"text": "Be brief.", "type": "SYSTEM"}, user("hello")]
    assert api.put(url, messages).status_code == 204
    assert api.get(url).json()[0] == messages[0]
    assert protocol.get_messages("support") == [SystemMessage("Be brief."), UserMessage("hello")]
    assert api.delete(url).status_code == 204
    assert api.get(url).json() == []
    assert queries.memory("support").said_count == 2
    assert api.put(url, [messages[0], {"type": "X"}]).data["field"] == "[1]"
