"""A LangChain4j service: it decides its memory itself, and sends whole lists to the store.

`Service` makes random changes and compares the ledger with what it knows: which message was said at
which step, and which left for which reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

from chatmemory import (
    AiMessage,
    ChatMemoryStore,
    ChatMessage,
    MessageWindowChatMemory,
    SystemMessage,
    TokenWindowChatMemory,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    queries,
)
from chatmemory.core.estimators import count_tokens, estimator_for
from chatmemory.core.messages import text_of
from chatmemory.ledger.verification import verify
from chatmemory.services import protocol

from ..langchain4j import IsOver, Outcome, Said, add, explanations, lost_its_end

ESTIMATOR = estimator_for("gpt-4o")
OVERHEAD = 3


def call(name: str) -> AiMessage:
    return AiMessage(None, (ToolExecutionRequest(name, "find", "{}"),))


def result(name: str) -> ToolExecutionResultMessage:
    return ToolExecutionResultMessage(name, "find", "found")


SYSTEMS = [SystemMessage(text) for text in ("Be brief.", "Be kind.", "Be exact.")]
TALK = [
    *(
        UserMessage(text)
        for text in ("ok", "ok", "a", "b", "a sentence of quite a few tokens " * 3)
    ),
    *(AiMessage(text) for text in ("ok", "c")),
    *(call(name) for name in "12"),
    *(result(name) for name in "112"),
]


class PlainStore(ChatMemoryStore):
    """The three methods, as a remote client has them; `sent` are the lists of all updates."""

    def __init__(self) -> None:
        self.sent: list[list[ChatMessage]] = []

    def get_messages(self, memory_id):
        return protocol.get_messages(memory_id)

    def update_messages(self, memory_id, messages):
        self.sent.append(list(messages))
        protocol.update_messages(memory_id, messages)

    def delete_messages(self, memory_id):
        protocol.delete_messages(memory_id)


class HeldStore(PlainStore):
    """A store that gives the list that was read last, however old it is."""

    def __init__(self) -> None:
        super().__init__()
        self.held: list[ChatMessage] = []

    def read(self, memory_id: str) -> None:
        self.held = super().get_messages(memory_id)

    def get_messages(self, memory_id):
        return list(self.held)

    def update_messages(self, memory_id, messages):
        self.held = list(messages)
        super().update_messages(memory_id, messages)


class Service:
    """A client with one conversation. `untold` are the changes that lists do not tell."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.id = f"service-{seed}"
        self.store = PlainStore()
        self.counts_tokens = self.random.random() < 0.4
        self.keep_first = self.random.random() < 0.5
        self.limit = self._any_limit()
        self.memory = self._memory()
        protocol.update_messages(self.id, [])  # creates the conversation, without a step
        self.windows: dict[int, list[ChatMessage]] = {}
        self.tally: Counter[str] = Counter()
        self.untold: list[str] = []

    def run(self, changes: int) -> None:
        for _ in range(changes):
            self._change()
            self._expect_window()
        for step, window in self.windows.items():
            assert queries.window(self.id, step).messages == window
        assert verify(self.id) is None

    # Changes

    def _change(self) -> None:
        chance = self.random.random()
        if chance < 0.06:
            self.limit = self._any_limit()
        elif chance < 0.08:
            self.memory.clear()
        elif chance < 0.16:
            self._set(self._any_list())
        else:
            self._add(self._any_message())

    def _add(self, message: ChatMessage) -> None:
        """Add a message; where one add alone explains the list, the ledger must tell it."""
        old, said, sent = self._stays(), queries.said(self.id), len(self.store.sent)
        truth = add(old, Said("new", message), self._is_over, self._is_over, self.keep_first)
        step = self._last_step()
        self.memory.add(message)
        if len(self.store.sent) == sent:
            assert truth is None
            assert self._last_step() == step
            return
        new = self.store.sent[-1]
        self.tally["adds"] += 1
        if new == [each.message for each in old]:
            assert self._last_step() == step
            self._not_told("an equal list", old, new)
            return
        assert truth is not None
        found = explanations(old, new)
        is_seen = "new" in truth.keys
        if is_seen and lost_its_end(old, new):
            self._not_told("a list that only lost its end", old, new)
            return
        assert truth._replace(departures=_of_old(truth)) in found
        if len(found) > 1:
            self._not_told("several adds", old, new)
            self._expect_set()
            return
        self._expect_add(truth, message if is_seen else None)
        assert queries.said(self.id) == ([*said, message] if is_seen else said)

    def _set(self, messages: Sequence[ChatMessage]) -> None:
        old, said, step = self._stays(), queries.said(self.id), self._last_step()
        self.memory.set(messages)
        new = self.store.sent[-1]
        self.tally["sets"] += 1
        if new == [each.message for each in old]:
            assert self._last_step() == step
        elif len(explanations(old, new)) == 1:
            self._not_told("a set like an add", old, new)
            assert queries.step(self.id, step + 1).row.kind == "add"
        else:
            self._expect_set()
            self._expect_new_messages_said(old, said, new)

    # Expectations

    def _expect_add(self, truth: Outcome, arrival: ChatMessage | None) -> None:
        self.tally["told adds"] += 1
        change = queries.step(self.id, self._last_step()).change
        assert change.kind == "add"
        assert {(each.seq, str(each.reason)) for each in change.evicted} == _of_old(truth)
        arrived = [queries.message(self.id, each.seq).message for each in change.arrived]
        assert arrived == ([] if arrival is None else [arrival])

    def _expect_set(self) -> None:
        change = queries.step(self.id, self._last_step()).change
        assert change.kind == "set"
        assert {str(each.reason) for each in change.evicted} <= {"SET"}

    def _expect_new_messages_said(
        self, old: Sequence[Said], said: list[ChatMessage], new: Sequence[ChatMessage]
    ) -> None:
        """What was never said is said, unless a message of the talk that stayed is behind it."""
        known = [each.message for each in old]
        stayed = [j for j, message in enumerate(new) if message in known]
        last = max((j for j in stayed if not isinstance(new[j], SystemMessage)), default=-1)
        told = queries.said(self.id)
        assert told[: len(said)] == said
        for message in new[last + 1 :]:
            assert message in told

    def _expect_window(self) -> None:
        step = self._last_step()
        self.windows[step] = protocol.get_messages(self.id)
        assert queries.window(self.id).messages == self.windows[step]

    def _not_told(self, why: str, old: Sequence[Said], new: list[ChatMessage]) -> None:
        self.tally[why] += 1
        texts = [[text_of(message) for message in each] for each in ([e.message for e in old], new)]
        self.untold.append(f"{self.id}, {why}: {texts[0]} -> {texts[1]}")

    # State

    def _stays(self) -> list[Said]:
        """The window before a change, each message with its seq."""
        return [Said(row.seq, row.message) for row in queries.window(self.id).rows]

    def _last_step(self) -> int:
        return queries.memory(self.id).last_step

    @property
    def _is_over(self) -> IsOver:
        return lambda window: self._load(window) > self.limit

    def _load(self, window: Sequence[ChatMessage]) -> int:
        if not self.counts_tokens:
            return len(window)
        tokens = sum(count_tokens(ESTIMATOR, message) for message in window)
        return tokens + OVERHEAD if window else 0

    def _memory(self) -> MessageWindowChatMemory | TokenWindowChatMemory:
        if self.counts_tokens:
            return TokenWindowChatMemory(
                self.id, lambda _: self.limit, ESTIMATOR, self.store, self.keep_first
            )
        return MessageWindowChatMemory(self.id, lambda _: self.limit, self.store, self.keep_first)

    # What a service does at random

    def _any_limit(self) -> int:
        return self.random.randint(20, 70) if self.counts_tokens else self.random.randint(2, 7)

    def _any_message(self) -> ChatMessage:
        return self.random.choice(SYSTEMS if self.random.random() < 0.2 else TALK)

    def _any_list(self) -> list[ChatMessage]:
        """Part of the window, in order or not, with other messages between."""
        kept = [said.message for said in self._stays() if self.random.random() < 0.6]
        others = [self._any_message() for _ in range(self.random.randint(0, 3))]
        if self.random.random() < 0.4:
            return [*kept, *others]
        mixed = [*kept, *others]
        self.random.shuffle(mixed)
        return mixed


def _of_old(truth: Outcome) -> frozenset[tuple[object, str]]:
    return frozenset(each for each in truth.departures if each[0] != "new")
