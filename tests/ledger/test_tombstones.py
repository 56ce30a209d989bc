"""A redacted message keeps its token count in every list; a copy of it is a new message."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import (
    AiMessage,
    ChatMemory,
    ChatMessage,
    MessageWindow,
    MessageWindowChatMemory,
    TokenWindow,
    UserMessage,
    services,
)
from chatmemory.ledger.protocol import get_messages, update_messages
from chatmemory.ledger.verification import verify
from chatmemory.messages.codec import messages_from_json, messages_to_json
from chatmemory.reading import windows
from chatmemory.stores.database import DjangoChatMemoryStore

from ..conversations import create_and_add
from ..properties import examples

pytestmark = pytest.mark.database

LONG = UserMessage("a sentence of quite a few words " * 10)
X, OK = UserMessage("x"), AiMessage("ok")


def as_sent(messages: list[ChatMessage]) -> list[ChatMessage]:
    """Messages as they come over the network: they remember no counts."""
    return list(messages_from_json(messages_to_json(messages)))


def tokens() -> dict[int, int]:
    return {row.seq: row.tokens for row in windows.window("m").rows}


@pytest.fixture
def window(db) -> list[ChatMessage]:
    """Four messages under a policy; the first one is redacted."""
    create_and_add("m", MessageWindow(10), [LONG, OK, X, AiMessage("yes")])
    services.redact("m", 1)
    return as_sent(get_messages("m"))


def set_by_service(messages: list[ChatMessage]) -> None:
    services.set_messages("m", messages)


def set_by_client(messages: list[ChatMessage]) -> None:
    update_messages("m", messages)


def memory() -> ChatMemory:
    return MessageWindowChatMemory("m", 10, DjangoChatMemoryStore())


def test_a_redacted_message_that_returns_under_another_estimator_is_counted_by_it(window):
    counted = tokens()[1]
    services.set_messages("m", window[1:])
    services.change("m", policy=MessageWindow(10, estimator="gpt-4"))
    services.set_messages("m", window)
    assert tokens()[1] < counted
    assert verify("m") is None


def test_what_a_list_leaves_out_is_decided_with_the_tokens_of_redacted_messages(window):
    before = tokens()
    services.change("m", policy=TokenWindow(sum(before.values()) + 3))
    services.set_messages("m", [*window[1:], window[0], UserMessage("new")])
    assert 2 not in tokens()
    assert tokens()[1] == before[1]
    assert verify("m") is None


def test_a_redacted_message_that_was_read_is_new_when_it_is_added(window):
    memory().add(get_messages("m")[0])
    assert tokens()[5] < tokens()[1]
    update_messages("m", [*get_messages("m"), get_messages("m")[0]])
    assert tokens()[6] == tokens()[5]
    assert verify("m") is None


lists = st.lists(st.integers(0, 4), max_size=7)


@examples(30)
@given(st.lists(st.tuples(st.booleans(), lists), min_size=1, max_size=5))
def test_any_lists_keep_the_counts_and_are_verified(db, changes):
    create_and_add("m", TokenWindow(200), [LONG, OK, X, LONG, AiMessage("yes")])
    services.redact("m", 1)
    services.redact("m", 4)
    counted, known = tokens(), as_sent(get_messages("m"))
    for by_client, places in changes:
        put = set_by_client if by_client else set_by_service
        put([known[place] for place in places])
        assert all(counted.get(seq, count) == count for seq, count in tokens().items())
    assert verify("m") is None
    services.delete("m")
