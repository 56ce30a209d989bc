"""Any sequence of operations on the Django store does what LangChain4j's rule does to lists."""

from __future__ import annotations

from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from chatmemory import (
    AiMessage,
    CustomMessage,
    MessageWindow,
    MessageWindowChatMemory,
    SystemMessage,
    TokenWindow,
    TokenWindowChatMemory,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    services,
)
from chatmemory.ledger.validation import check_policy
from chatmemory.ledger.verification import verify
from chatmemory.messages.estimators import count_tokens, estimator_for
from chatmemory.reading import history, windows
from chatmemory.stores.database import DjangoChatMemoryStore

from ..langchain4j import Identified, add, trimmed
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
operations = st.one_of(
    st.tuples(st.sampled_from(["add", "add_through_a_memory"]), messages),
    st.tuples(st.sampled_from(["add_several", "set", "update_window"]), lists),
    st.tuples(st.just("slide"), st.tuples(messages, st.integers(0, 3))),
    st.tuples(st.just("change_policy"), policies),
    st.tuples(st.sampled_from(["clear", "delete_window"]), st.none()),
)


class Conversation:
    """A stored conversation, and what LangChain4j's lists would be.

    `stored` is the content of the store, `seen` the result of reading at each step.
    """

    def __init__(self) -> None:
        self.id = f"fuzz-{next(NUMBERS)}"
        self.store = DjangoChatMemoryStore()
        self.policy = MessageWindow(4)
        services.create(self.id, self.policy)
        self.stored: list[Identified] = []
        self.said: list = []
        self.seen: dict[int, list] = {0: []}

    def load(self, window) -> int:
        if isinstance(self.policy, MessageWindow):
            return len(window)
        estimator = estimator_for(self.policy.estimator)
        tokens = sum(count_tokens(estimator, message) for message in window)
        return tokens + FIXED_OVERHEAD if window else 0

    def is_over(self, window) -> bool:
        return self.load(window) > self.policy.limit

    def make(self, name: str, value) -> None:
        getattr(self, name)(value)
        assert self.store.get_messages(self.id) == [each.message for each in self.stored]
        view = windows.window(self.id)
        assert view.messages == [each.message for each in trimmed(self.stored, self.is_over)]
        if not isinstance(self.policy, MessageWindow):
            assert view.load == self.load(view.messages)
        self.seen[view.step] = view.messages
        said = history.all_messages(self.id)
        assert said[: len(self.said)] == self.said, "history only grows"
        self.said = said

    def finish(self) -> None:
        for step, window in self.seen.items():
            assert windows.window(self.id, step).messages == window, step
        assert verify(self.id) is None
        services.delete(self.id)

    def add(self, message) -> None:
        services.add(self.id, [message])
        self._added(message)

    def add_through_a_memory(self, message) -> None:
        self._memory().add(message)
        self._added(message)

    def add_several(self, batch) -> None:
        services.add(self.id, batch)
        for message in batch:
            self._added(message)

    def set(self, batch) -> None:
        services.set_messages(self.id, batch)
        self.stored = trimmed(new(batch), self.is_over)

    def clear(self, _) -> None:
        services.clear_messages(self.id)
        self.stored = []

    def change_policy(self, policy) -> None:
        services.change(self.id, policy=policy)
        self.policy = check_policy(policy)

    def update_window(self, batch) -> None:
        self.store.update_messages(self.id, batch)
        self.stored = new(batch)

    def slide(self, value) -> None:
        message, dropped = value
        self.update_window([*(each.message for each in self.stored[dropped:]), message])

    def delete_window(self, _) -> None:
        self.store.delete_messages(self.id)
        self.stored = []

    def _memory(self):
        policy, options = self.policy, {"id": self.id, "store": self.store}
        options["always_keep_system_message_first"] = policy.always_keep_system_message_first
        if isinstance(policy, MessageWindow):
            return MessageWindowChatMemory(max_messages=policy.limit, **options)
        estimator = estimator_for(policy.estimator)
        return TokenWindowChatMemory(max_tokens=policy.limit, estimator=estimator, **options)

    def _added(self, message) -> None:
        (said,) = new([message])
        first = self.policy.always_keep_system_message_first
        outcome = add(self.stored, said, self.is_over, self.is_over, first)
        if outcome is not None:
            known = {each.key: each for each in [*self.stored, said]}
            self.stored = [known[key] for key in outcome.keys]


def new(batch) -> list[Identified]:
    return [Identified(next(NUMBERS), message) for message in batch]


def test_any_sequence_of_operations_does_what_the_lists_do(db):
    @settings_of(25)
    @given(st.lists(operations, min_size=5, max_size=20))
    def any_sequence(made):
        conversation = Conversation()
        for name, value in made:
            conversation.make(name, value)
        conversation.finish()

    search(any_sequence)
