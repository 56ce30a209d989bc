"""A history as recall reads it: the places of its messages, and the facts that they mention."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from chatmemory.core.estimators import TokenCountEstimator, count_overhead, count_tokens
from chatmemory.core.loads import Loads
from chatmemory.core.messages import AiMessage, ChatMessage, MessageType
from chatmemory.core.recall.facts import NO_WORDS, Words, facts_of
from chatmemory.core.window import Entry


@dataclass(frozen=True)
class History:
    """What was said, in order. An entry's key is its position, from 0.

    `requests` are the numbers of tool calls. `overhead` is the fixed cost of a request in tokens.
    `numbers` are the numbers of the messages.
    """

    entries: Sequence[Entry]
    requests: Sequence[int]
    facts: Sequence[frozenset[str]]
    overhead: int
    numbers: Sequence[int]

    def __len__(self) -> int:
        return len(self.entries)

    @cached_property
    def tokens(self) -> list[int]:
        return [entry.tokens for entry in self.entries]

    @cached_property
    def loads(self) -> Loads:
        return Loads(self.entries)


def history_of(
    messages: Iterable[ChatMessage], estimator: TokenCountEstimator, words: Words = NO_WORDS
) -> History:
    """Return the history of messages, each counted by the estimator."""
    said = list(messages)
    tokens = [count_tokens(estimator, message) for message in said]
    overhead = count_overhead(estimator)
    return history_from(said, tokens, overhead, range(1, len(said) + 1), words)


def history_from(
    said: Sequence[ChatMessage],
    tokens: Sequence[int],
    overhead: int,
    numbers: Sequence[int],
    words: Words = NO_WORDS,
) -> History:
    """Return the history of messages whose tokens are known."""
    entries = [
        Entry(
            message.type,
            message.has_tool_execution_requests,
            tokens[position],
            message if message.type is MessageType.SYSTEM else None,
            key=position,
        )
        for position, message in enumerate(said)
    ]
    requests = [
        len(message.tool_execution_requests) if isinstance(message, AiMessage) else 0
        for message in said
    ]
    facts = [facts_of(message, words) for message in said]
    return History(entries, requests, facts, overhead, numbers)
