"""Any sequence of operations on the Django store matches a model of plain lists."""

from __future__ import annotations

from itertools import count

import pytest
from django.db import connection
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as run

from chatmemory import (
    AiMessage,
    CustomMessage,
    MessageWindowChatMemory,
    SystemMessage,
    TokenWindowChatMemory,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    queries,
    services,
)
from chatmemory.core.estimators import count_tokens, estimator_for
from chatmemory.core.policies import MessageWindow, TokenWindow
from chatmemory.ledger.verification import verify
from chatmemory.services.validation import check_policy
from chatmemory.stores.database import DjangoChatMemoryStore

from .budget import search, settings_of

FIXED_OVERHEAD = 3
NUMBERS = count()

words = st.sampled_from(["a", "b", "c", "a longer sentence that costs a few tokens more"])
messages = st.one_of(
    st.builds(UserMessage, words),
    st.builds(SystemMessage, words),
    st.builds(AiMessage, words),
    st.builds(lambda call: AiMessage(None, (ToolExecutionRequest(call, "find", "{}"),)), words),
    st.builds(lambda call: ToolExecutionResultMessage(call, "find", "found"), words),
    st.just(CustomMessage({"a": 1})),
)
lists = st.lists(messages, max_size=6)
kinds = st.sampled_from([(MessageWindow, 1, 6), (TokenWindow, 4, 60)])
policies = kinds.flatmap(
    lambda kind: st.builds(
        kind[0],
        st.integers(kind[1], kind[2]),
        estimator=st.sampled_from(["gpt-4o", "gpt-4"]),
        always_keep_system_message_first=st.booleans(),
    )
)


def load(window: list, policy) -> int:
    if isinstance(policy, MessageWindow):
        return len(window)
    estimator = estimator_for(policy.estimator)
    tokens = sum(count_tokens(estimator, message) for message in window)
    return tokens + FIXED_OVERHEAD if window else 0


def trimmed(window: list, policy) -> list:
    """Evict as LangChain4j's ensureCapacity does."""
    kept = list(window)
    while policy and load(kept, policy) > policy.limit:
        place = int(isinstance(kept[0], SystemMessage))
        if place == len(kept):
            break
        evicted = kept.pop(place)
        while evicted.has_tool_execution_requests and place < len(kept):
            if not isinstance(kept[place], ToolExecutionResultMessage):
                break
            kept.pop(place)
    return kept


class Conversation(RuleBasedStateMachine):
    """`stored` is the content of the store, `seen` the result of reading at each step."""

    def __init__(self) -> None:
        super().__init__()
        self.id = f"fuzz-{next(NUMBERS)}"
        self.policy = MessageWindow(4)
        services.create(self.id, self.policy)
        self.store = DjangoChatMemoryStore()
        self.stored: list = []
        self.seen: dict[int, list] = {0: []}
        self.said: list = []

    @property
    def window(self) -> list:
        return trimmed(self.stored, self.policy)

    @rule(message=messages)
    def add(self, message):
        services.add(self.id, [message])
        self._added(message)

    @rule(batch=lists)
    def add_several(self, batch):
        services.add(self.id, batch)
        for message in batch:
            self._added(message)

    @rule(message=messages)
    def add_through_a_memory(self, message):
        self._memory().add(message)
        self._added(message)

    @rule(batch=lists)
    def set(self, batch):
        services.set_messages(self.id, batch)
        self.stored = trimmed(batch, self.policy)

    @rule()
    def clear(self):
        services.clear_messages(self.id)
        self.stored = []

    @rule(policy=policies)
    def change_policy(self, policy):
        services.change(self.id, policy=policy)
        self.policy = check_policy(policy)

    @rule(batch=lists)
    def update_window(self, batch):
        self.store.update_messages(self.id, batch)
        self.stored = list(batch)

    @precondition(lambda self: self.stored)
    @rule(message=messages, dropped=st.integers(0, 3))
    def slide(self, message, dropped):
        self.update_window([*self.stored[dropped:], message])

    @rule()
    def delete_window(self):
        self.store.delete_messages(self.id)
        self.stored = []

    @rule()
    def reopen(self):
        connection.close()
        self.store = DjangoChatMemoryStore()

    @invariant()
    def reads_as_the_model(self):
        assert self.store.get_messages(self.id) == self.stored
        view = queries.window(self.id)
        assert view.messages == self.window
        if not isinstance(self.policy, MessageWindow):
            assert view.load == load(self.window, self.policy)
        self.seen[view.step] = self.window

    @invariant()
    def history_only_grows(self):
        said = queries.said(self.id)
        assert said[: len(self.said)] == self.said
        self.said = said

    def teardown(self):
        for step, window in self.seen.items():
            assert queries.window(self.id, step).messages == window, step
        assert verify(self.id) is None
        services.delete(self.id)

    def _memory(self):
        policy = self.policy
        options = {
            "id": self.id,
            "store": self.store,
            "always_keep_system_message_first": policy.always_keep_system_message_first,
        }
        if isinstance(policy, MessageWindow):
            return MessageWindowChatMemory(max_messages=policy.limit, **options)
        estimator = estimator_for(policy.estimator)
        return TokenWindowChatMemory(max_tokens=policy.limit, estimator=estimator, **options)

    def _added(self, message) -> None:
        """Add as LangChain4j does."""
        window = self.window
        if isinstance(message, SystemMessage):
            old = next((each for each in window if isinstance(each, SystemMessage)), None)
            if old == message:
                return
            if old is not None:
                window.remove(old)
        is_first = isinstance(message, SystemMessage)
        is_first = is_first and self.policy.always_keep_system_message_first
        window.insert(0 if is_first else len(window), message)
        self.stored = trimmed(window, self.policy)


@pytest.mark.django_db(transaction=True)
def test_any_sequence_of_operations_does_what_the_model_does():
    search(lambda: run(Conversation, settings=settings_of(15, stateful_step_count=20)))
