"""The memories with a limit. Each memory holds one conversation. Names and rules follow
LangChain4j.

    memory = MessageWindowChatMemory(id="order-7741", max_messages=20)
    memory.add(SystemMessage("Be brief."), UserMessage("Where is my parcel?"))
    memory.messages()

`MessageWindowChatMemory` counts messages, `TokenWindowChatMemory` tokens and `TurnWindowChatMemory`
turns; otherwise they work alike.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Unpack

from chatmemory.memories.memory import ChatMemory, Limit
from chatmemory.messages.estimators import (
    OpenAiTokenCountEstimator,
    TokenCountEstimator,
    count_overhead,
    family_of,
)
from chatmemory.windows.policies import (
    DEFAULT_ESTIMATOR,
    MessageWindow,
    Policy,
    TokenWindow,
    TokenWindowOptions,
    TurnWindow,
    WindowOptions,
)
from chatmemory.windows.store import ChatMemoryStore


class _LimitedChatMemory(ChatMemory):
    """A memory whose policy depends only on the limit. A changed limit makes a new policy."""

    _policy: Policy | None = None

    def policy(self) -> Policy:
        limit, policy = self.current_limit(), self._policy
        # Not `!=`, since True equals 1 and is no limit
        if policy is None or policy.limit is not limit:
            policy = self._policy = self._policy_of(limit)
        return policy

    @abstractmethod
    def _policy_of(self, limit: int) -> Policy:
        """Return the policy with this limit. Raises InvalidValue."""


class MessageWindowChatMemory(_LimitedChatMemory):
    """A memory of the last `max_messages` messages.

    - A leading system message stays. An equal system message is ignored; a different system message
      replaces it.
    - If the window is full, the oldest message other than the leading system message is evicted.
    - The results of a tool call leave with the message that called the tool.
    - `max_messages`: an int, or a function that takes the memory id and is called on every use.

    Source of the rules: LangChain4j's MessageWindowChatMemory.
    """

    _limit_name = "max_messages"

    def __init__(
        self,
        id: str = "default",
        max_messages: Limit = 20,
        store: ChatMemoryStore | None = None,
        always_keep_system_message_first: bool = False,
        **options: Unpack[WindowOptions],
    ) -> None:
        super().__init__(id, max_messages, store, None, always_keep_system_message_first, **options)

    def _policy_of(self, limit: int) -> Policy:
        return MessageWindow(
            limit,
            estimator=estimator_name(self._estimator) if self._estimator else DEFAULT_ESTIMATOR,
            **self._options,
        )


class TokenWindowChatMemory(_LimitedChatMemory):
    """A memory of the latest messages that together have at most `max_tokens` tokens. No message is
    shortened.

    - The rules for system messages and tool results are those of MessageWindowChatMemory.
    - A message larger than the limit is evicted at once, and so are all messages before it, except
      a leading system message.
    - `max_tokens`: an int, or a function that takes the memory id and is called on every use.
    - The counts of the estimator must add up: the count of a list is the count of an empty list
      plus the counts of the messages. Each message is counted once.

    Source of the rules: LangChain4j's TokenWindowChatMemory.
    """

    _limit_name = "max_tokens"

    def __init__(
        self,
        id: str = "default",
        max_tokens: Limit = 1000,
        estimator: TokenCountEstimator | None = None,
        store: ChatMemoryStore | None = None,
        always_keep_system_message_first: bool = False,
        **options: Unpack[TokenWindowOptions],
    ) -> None:
        self._token_estimator = estimator or OpenAiTokenCountEstimator(DEFAULT_ESTIMATOR)
        keeps_first = always_keep_system_message_first
        super().__init__(id, max_tokens, store, self._token_estimator, keeps_first, **options)

    def _policy_of(self, limit: int) -> Policy:
        return TokenWindow(
            limit,
            estimator=estimator_name(self._token_estimator),
            **self._options,
            fixed_overhead=count_overhead(self._token_estimator),
        )


class TurnWindowChatMemory(_LimitedChatMemory):
    """A memory of the last `max_turns` turns. A turn is a user message and all messages up to the
    next user message.

    - If a new user message begins a turn beyond the limit, the oldest turn leaves as a whole.
    - The rules for system messages and tool results are those of MessageWindowChatMemory.
    - `max_turns`: an int, or a function that takes the memory id and is called on every use.
    """

    _limit_name = "max_turns"

    def __init__(
        self,
        id: str = "default",
        max_turns: Limit = 10,
        store: ChatMemoryStore | None = None,
        always_keep_system_message_first: bool = False,
        **options: Unpack[WindowOptions],
    ) -> None:
        super().__init__(id, max_turns, store, None, always_keep_system_message_first, **options)

    def _policy_of(self, limit: int) -> Policy:
        return TurnWindow(
            limit,
            estimator=estimator_name(self._estimator) if self._estimator else DEFAULT_ESTIMATOR,
            **self._options,
        )


def estimator_name(estimator: TokenCountEstimator) -> str:
    """Return the name that a policy stores for an estimator: its `model_name`, or else its
    `family`, or else a name made from its class. Estimators of one family count alike.
    """
    return getattr(estimator, "model_name", None) or family_of(estimator)
