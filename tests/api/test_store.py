"""The ChatMemoryStore protocol over HTTP."""

from __future__ import annotations

import pytest

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


@pytest.mark.parametrize("method", ["get", "put", "delete"])
@pytest.mark.parametrize(
    "path",
    [
        "store/support",
        "store/acme/7/",
        "store/a b/",
        "store/ü/",
        "store/a~2/",
        "store/suppor~74/",
        "memories/support",
    ],
)
def test_an_id_as_it_is_leads_to_no_conversation(api, db, method, path):
    """A client cuts `support#7/` to `support`, which must not be the conversation `support`."""
    protocol.update_messages("support", [UserMessage("hello")])
    response = getattr(api, method)(f"/api/v1/{path}", [])
    assert response.status_code == 404
    assert "such as order~237 for order#7" in response.json()["detail"]
    assert protocol.get_messages("support") == [UserMessage("hello")]
