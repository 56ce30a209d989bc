"""Replay the operation sequences that LangChain4j's Java classes printed; see FORMAT.md."""

from __future__ import annotations

import json
import math
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from asgiref.sync import async_to_sync, sync_to_async

from chatmemory import (
    ChatMemory,
    ChatMemoryStore,
    CustomMessage,
    MessageWindowChatMemory,
    SystemMessage,
    TextContent,
    TokenWindowChatMemory,
    ToolExecutionResultMessage,
    UserMessage,
    message_from_json,
)
from chatmemory.messages.message import AiMessage, ChatMessage
from chatmemory.windows.transitions import Change

FOLDER = Path(__file__).parent


RECOVERY = "recovery_vectors.json"
Sequences = list[dict[str, Any]]


@cache
def vectors(name: str = "vectors.json") -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((FOLDER / name).read_text())
    return loaded


@cache
def pool(name: str) -> list[ChatMessage]:
    compact = {"ensure_ascii": False, "separators": (",", ":")}
    return [message_from_json(json.dumps(line, **compact)) for line in vectors(name)["pool"]]


def sequences() -> Sequences:
    """All sequences except those with null messages, which Python's types exclude."""
    return [each for each in vectors()["sequences"] if "null" not in each.get("tags", ())]


def recoveries() -> Sequences:
    """All sequences of memories that recover interrupted tool calls."""
    found: Sequences = vectors(RECOVERY)["sequences"]
    return found


def sample(every: int, of: Callable[[], Sequences] = sequences) -> Sequences:
    """Every so many sequences of each tag and kind of memory, the same in every run."""
    groups: dict[tuple[str, ...], Sequences] = defaultdict(list)
    for each in of():
        groups[group_of(each)].append(each)
    return [each for group in groups.values() for each in group[::every]]


def group_of(sequence: dict[str, Any]) -> tuple[str, ...]:
    """The kind of the memory and the tags of a sequence; a random sequence has no tags."""
    return (sequence["cfg"]["kind"], *sequence.get("tags", ()))


def has_no_twin(operation: dict[str, Any]) -> bool:
    """Whether it is `set()` without arguments: Python's `set` takes one iterable."""
    return operation["o"] == "set_var" and not operation["l"]


class TableEstimator:
    """The deterministic estimator of FORMAT.md."""

    def __init__(self, per_message: int, per_request: int, div: int, strict: bool) -> None:
        self.per_message, self.per_request = per_message, per_request
        self.div, self.strict = div, strict

    def estimate_token_count_in_text(self, text: str | None) -> int:
        return math.ceil(len(text) / self.div) if text else 0

    def estimate_token_count_in_messages(self, messages: Iterable[ChatMessage]) -> int:
        return self.per_request + sum(map(self.estimate_token_count_in_message, messages))

    def estimate_token_count_in_message(self, message: ChatMessage) -> int:
        text = self.estimate_token_count_in_text
        cost = self.per_message
        match message:
            case SystemMessage():
                return cost + text(message.text)
            case UserMessage():
                name = 0 if message.name is None else 1 + text(message.name)
                return cost + name + sum(map(self._content, message.contents))
            case AiMessage():
                calls = message.tool_execution_requests
                return (
                    cost
                    + text(message.text)
                    + sum(7 + text(call.name) + text(call.arguments) for call in calls)
                )
            case ToolExecutionResultMessage():
                return cost + sum(map(self._content, message.contents)) + text(message.tool_name)
        assert isinstance(message, CustomMessage)
        if self.strict:
            raise ValueError("unsupported message")
        return cost + 5

    def _content(self, content: object) -> int:
        if isinstance(content, TextContent):
            return self.estimate_token_count_in_text(content.text)
        if self.strict:
            raise ValueError("unsupported content")
        return 85


class Limit:
    """A limit provider whose limits are defined by the sequence."""

    def __init__(self, value: int | None) -> None:
        self.value = value
        self.queue: deque[int | None] = deque()

    def __call__(self, memory_id: str) -> int | None:
        return self.queue.popleft() if self.queue else self.value


class RecordingStore(ChatMemoryStore):
    """A store with the three plain methods of another; it counts calls and can fail."""

    def __init__(self, inner: ChatMemoryStore) -> None:
        self.inner = inner
        self.estimator = getattr(inner, "estimator", None)
        self.fail_get = self.fail_update = False
        self.start()

    def start(self) -> None:
        self.calls = [0, 0, 0]
        self.updates: list[list[ChatMessage]] = []

    def get_messages(self, memory_id: str) -> list[ChatMessage]:
        self.calls[0] += 1
        if self.fail_get:
            self.fail_get = False
            raise RuntimeError("store read failed")
        return self.inner.get_messages(memory_id)

    def update_messages(self, memory_id: str, messages: Sequence[ChatMessage]) -> None:
        self.calls[1] += 1
        self.updates.append(list(messages))
        if self.fail_update:
            self.fail_update = False
            raise RuntimeError("store write failed")
        self.inner.update_messages(memory_id, messages)

    def delete_messages(self, memory_id: str) -> None:
        self.calls[2] += 1
        self.inner.delete_messages(memory_id)

    async def to_thread(self, call: Callable[..., Any], *args: Any) -> Any:
        return await sync_to_async(call)(*args)


class FailingTransactStore(RecordingStore):
    """The same with `transact`, where a failing read or write does not change the store."""

    def transact(self, memory_id: str, decide: Any) -> Any:
        return self.inner.transact(memory_id, self.observed(decide))  # type: ignore[attr-defined]

    def transact_all(self, memory_id: str, decisions: Sequence[Any]) -> Any:
        observed = [self.observed(decide) for decide in decisions]
        return self.inner.transact_all(memory_id, observed)  # type: ignore[attr-defined]

    def observed(self, decide: Any) -> Any:
        def observed(window: Any) -> Any:
            transition = decide(window)
            if self.fail_get and transition.change is Change.ADD:
                self.fail_get = False
                raise RuntimeError("store read failed")
            if self.fail_update and not transition.ignored:
                self.fail_update = False
                raise RuntimeError("store write failed")
            return transition

        return observed


class Replay:
    """A sequence on a store; `run` raises AssertionError at the first difference."""

    def __init__(
        self, sequence: dict[str, Any], store: RecordingStore, memory_id: str = "default"
    ) -> None:
        self.sequence, self.store, self.id = sequence, store, memory_id
        config = sequence["cfg"]
        self.recovers: bool = config.get("auto_recover_orphaned_tool_messages", False)
        messages = pool(RECOVERY if self.recovers else "vectors.json")
        self.messages = [messages[i] for i in sequence["use"]]
        self.limit = Limit(config["max"])
        self.content = self.decode(config.get("init", ""))
        if "init" in config:
            store.inner.update_messages(memory_id, self.content)
        self.memory = self.build(config)

    def build(self, config: dict[str, Any]) -> ChatMemory:
        limit: Any = self.limit if config["dynamic"] else config["max"]
        options: dict[str, Any] = {"store": self.store}
        if config["keep_first"] is not None:
            options["always_keep_system_message_first"] = config["keep_first"]
        if self.recovers:
            options["auto_recover_orphaned_tool_messages"] = True
        if config["kind"] == "message":
            return MessageWindowChatMemory(self.id, limit, **options)
        return TokenWindowChatMemory(self.id, limit, TableEstimator(**config["est"]), **options)

    def decode(self, items: str) -> list[ChatMessage]:
        positions: list[int] = []
        for item in items.split():
            first, _, last = item.partition("-")
            positions += range(int(first), int(last or first) + 1)
        return [self.messages[position] for position in positions]

    def run(self) -> int:
        """Replay every operation and return the number of comparisons."""
        compared = 0
        for number, operation in enumerate(self.sequence["ops"]):
            if has_no_twin(operation):
                continue
            self.check(operation, f"{self.sequence['id']} operation {number} {operation}")
            compared += 1
        return compared

    def check(self, operation: dict[str, Any], where: str) -> None:
        self.store.start()
        raised = self.perform(operation)
        expected = operation["x"][1] if "x" in operation else None
        assert raised == expected, where
        lists = [self.decode(each) for each in operation.get("u", ())]
        if not isinstance(self.store, FailingTransactStore):
            assert self.store.calls == operation["c"][:3], where
            assert self.store.updates == lists, where
        if operation["o"] == "clear":
            self.content = []
        accepted = lists[:-1] if operation.get("rej") else lists
        if accepted:
            self.content = accepted[-1]
        self.probe(operation, where)

    def perform(self, operation: dict[str, Any]) -> str | None:
        try:
            self.call(operation)
        except (ValueError, RuntimeError) as error:
            return str(error)
        return None

    def call(self, operation: dict[str, Any]) -> None:
        memory = self.memory
        match operation["o"]:
            case "add":
                memory.add(self.messages[operation["i"]])
            case "add_all":
                memory.extend(iter(self.decode(operation["l"])))
            case "add_var":
                messages = self.decode(operation["l"])
                if messages:
                    memory.add(*messages)
            case "set" | "set_var":
                memory.set(self.decode(operation["l"]))
            case "set_iter":
                memory.set(iter(self.decode(operation["l"])))
            case "clear":
                memory.clear()
            case "add_async":
                async_to_sync(memory.aextend)(self.decode(operation["l"]))
            case "set_async":
                async_to_sync(memory.aset)(self.decode(operation["l"]))
            case "read_async":
                async_to_sync(memory.amessages)()
            case "read":
                memory.messages()
            case "limit":
                self.limit.value = operation["n"]
            case "limit_queue":
                self.limit.queue = deque(operation["q"])
            case "ext":
                self.content = self.decode(operation["l"])
                self.store.inner.update_messages(self.id, self.content)
            case "fail_get":
                self.store.fail_get = True
            case "fail_update":
                self.store.fail_update = True
            case unknown:
                raise AssertionError(unknown)

    def probe(self, operation: dict[str, Any], where: str) -> None:
        """Return the result of a read, without using the queue or the flags of the sequence."""
        queue, self.limit.queue = self.limit.queue, deque()
        flags = self.store.fail_get, self.store.fail_update
        self.store.fail_get = self.store.fail_update = False
        try:
            if "mx" in operation:
                assert self.perform({"o": "read"}) == operation["mx"][1], where
            else:
                seen = operation["m"]
                expected = self.content if seen == "=" else self.decode(seen)
                assert self.memory.messages() == expected, where
        finally:
            self.limit.queue = queue
            self.store.fail_get, self.store.fail_update = flags
