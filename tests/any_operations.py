"""Any operations on a conversation in any order, decided by a seed, with a verification after each.

A verification that contradicts what only the services did is an *accusation*: there must be none.
At the end of each run the conversation and its branches are exported and imported again, which
verifies them once more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from io import BytesIO
from random import Random
from typing import Any

from django.db import transaction

from chatmemory import (
    AiMessage,
    ChatMessage,
    CustomMessage,
    MessageWindow,
    MessageWindowChatMemory,
    Policy,
    SystemMessage,
    TokenWindow,
    TokenWindowChatMemory,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    TurnWindow,
    UserMessage,
    services,
)
from chatmemory.exceptions import ChatMemoryError
from chatmemory.ledger import protocol
from chatmemory.ledger.verification import verify
from chatmemory.lint import PROVIDERS
from chatmemory.messages.message import with_attributes
from chatmemory.models import AuditEntry, Memory, Message, Step
from chatmemory.reading import windows
from chatmemory.stores.database import DjangoChatMemoryStore
from chatmemory.windows.compaction import summary_message
from inspector.rooms.repairs.writes import undo_repair
from inspector.rooms.transfer.archives import import_archive
from inspector.rooms.transfer.exports import archive_lines

ID, BRANCH = "m", "m-branch"
ORDERS = ("A-1182", "B-7001", "C-4410", "D-9", "2024-05-17", "cmd/hooks2.go")
LONG = ("The parcel A-1182 was seen in Porto. ", "Nobody has seen B-7001 today, ask again. ")
ATTRIBUTES: Sequence[dict[str, Any]] = ({}, {"a": 1}, {"a": 2, "b": "\N{SLOTH}"})


def any_message(random: Random) -> ChatMessage:
    """Return a message; calls and their results are frequent, and some results are long."""
    words = random.choice(["a", "b", "yes", "a longer sentence that costs a few tokens more"])
    if random.random() < 0.5:
        words += f" order: {random.choice(ORDERS)}"
    attributes, call = random.choice(ATTRIBUTES), random.choice("xyz")
    match random.choices(range(7), [4, 1, 3, 4, 6, 1, 1])[0]:
        case 0:
            return UserMessage(words, attributes=attributes)
        case 1:
            return SystemMessage(words, attributes)
        case 2:
            return AiMessage(words, attributes=attributes)
        case 3:
            calls = [
                ToolExecutionRequest(each, "find", "{}") for each in dict.fromkeys([call, "x"])
            ]
            return AiMessage(None, tuple(calls[: random.randint(1, 2)]), attributes=attributes)
        case 4:
            text = random.choice(LONG) * random.randint(1, 6)
            is_error = random.choice([None, False, True])
            return ToolExecutionResultMessage(call, "find", text, is_error, attributes=attributes)
        case 5:
            return CustomMessage({"a": words})
    return summary_message(f"They said {words}.")


def some_messages(random: Random, most: int = 4) -> list[ChatMessage]:
    return [any_message(random) for _ in range(random.randint(1, most))]


def any_policy(random: Random) -> Policy:
    """Return a policy of each installed kind, with any options, often one that clears results."""
    options: dict[str, Any] = {
        "estimator": random.choice(["gpt-4o", "gpt-4o", "gpt-4"]),
        "snap_to_user": random.random() < 0.2,
        "free_system": random.random() < 0.2,
        "meters_only": random.random() < 0.1,
        "always_keep_system_message_first": random.random() < 0.2,
        "oversized": random.choice(["evict", "evict", "keep", "reject"]),
        "low_water": random.choice(["1", "1", "0.6"]),
    }
    match random.choices(["messages", "turns", "tokens"], [2, 2, 5])[0]:
        case "messages":
            return MessageWindow(random.randint(2, 8), **options)
        case "turns":
            limit = random.randint(1 if options["low_water"] == "1" else 2, 3)
            return TurnWindow(limit, **options)
    if random.random() < 0.5:
        options["low_water"] = random.choice(["0.3", "0.5", "0.6"])
        options["index_terms"] = random.choice([1, 5, 50])
    return TokenWindow(random.randint(30, 220), clear_tool_results=random.randint(0, 2), **options)


@dataclass
class Conversation:
    """A conversation to which operations happen. `made` are those that were not refused.

    `recovers` is by what chance a policy recovers interrupted calls, decided beside `random`.
    """

    random: Random
    id: str = ID
    made: list[str] = field(default_factory=list)
    recovers: float = 0
    beside: Random = field(default_factory=lambda: Random(0))

    def begin(self) -> None:
        services.create(self.id, self.any_policy(), {"team": "red"})

    def any_policy(self) -> Policy:
        recovers = self.beside.random() < self.recovers
        return replace(any_policy(self.random), auto_recover_orphaned_tool_messages=recovers)

    @property
    def listed(self) -> list[ChatMessage]:
        return list(windows.window(self.id).messages)

    def contradiction(self) -> str:
        """Return what else contradicts the operations at their end; "" if nothing does."""
        return ""

    def seq_in_memory(self) -> int:
        return self.random.choice([row.seq for row in windows.window(self.id).rows] or [1])

    def any_seq(self) -> int:
        """Return the number of a message of the history, preferably one that is in memory."""
        if self.random.random() < 0.7:
            return self.seq_in_memory()
        return self.random.randint(1, max(1, Memory.objects.get(pk=self.id).last_seq))

    def operate(self) -> bool:
        """Do something. Return False if it was refused, as by a policy that rejects a message."""
        operation = self.random.choices(list(OPERATIONS), list(OPERATIONS.values()))[0]
        try:
            with transaction.atomic():
                operation(self)
        except ChatMemoryError:
            return False
        self.made.append(operation.__name__)
        return True


def add(it: Conversation) -> None:
    services.add(it.id, some_messages(it.random), actor="ada")


def add_with_client_ids(it: Conversation) -> None:
    """A client repeats itself now and then."""
    known = it.random.choice(["k1", "k2", None])
    services.add(it.id, [services.NewMessage(any_message(it.random), client_id=known)])


def add_by_the_library(it: Conversation) -> None:
    """A memory of the library puts its own policy in force, and clears results by it."""
    memory = TokenWindowChatMemory(
        it.id,
        it.random.randint(90, 200),
        store=DjangoChatMemoryStore(),
        clear_tool_results=it.random.randint(0, 2),
        low_water=0.6,
        index_terms=it.random.choice([0, 5, 50]),
    )
    memory.add(*some_messages(it.random, 3))


def change_and_add(it: Conversation) -> None:
    services.change_and_add(it.id, some_messages(it.random, 2), policy=it.any_policy())


def make_anew(it: Conversation) -> None:
    services.delete(it.id)
    it.begin()


def several_in_one_transaction(it: Conversation) -> None:
    with services.atomic():
        services.add(it.id, some_messages(it.random, 2))
        services.pin(it.id, it.seq_in_memory())
        services.add(it.id, some_messages(it.random, 2))


def set_list(it: Conversation) -> None:
    listed = it.listed
    kept = it.random.sample(listed, it.random.randint(0, len(listed)))
    services.set_messages(it.id, [*kept, *some_messages(it.random, 3)])


def list_of_a_client(it: Conversation) -> None:
    """A client slides, reorders, drops or repeats its list, or puts something between."""
    listed = it.listed
    match it.random.randint(0, 4):
        case 0:
            listed = [*listed[it.random.randint(0, 2) :], *some_messages(it.random, 2)]
        case 1:
            it.random.shuffle(listed)
        case 2:
            listed = listed[: it.random.randint(0, len(listed))]
        case 3:
            listed.insert(it.random.randint(0, len(listed)), any_message(it.random))
        case 4:
            listed = [*listed, *listed[-1:]]
    protocol.update_messages(it.id, listed)


def summary_in_a_clients_list(it: Conversation) -> None:
    listed = it.listed
    system = listed[:1] if listed and isinstance(listed[0], SystemMessage) else []
    cut = it.random.randint(len(system), len(listed))
    text = f"They said {it.random.choice('abc')}."
    summary = it.random.choice([summary_message, UserMessage])(text)
    protocol.update_messages(it.id, [*system, summary, *listed[cut:]])


def attributes_of_a_client(it: Conversation) -> None:
    changed = [_with_other_attributes(it, each) for each in it.listed]
    it.random.choice([services.set_messages, protocol.update_messages])(it.id, changed)


def _with_other_attributes(it: Conversation, message: ChatMessage) -> ChatMessage:
    if isinstance(message, CustomMessage) or it.random.random() < 0.5:
        return message
    return with_attributes(message, it.random.choice(ATTRIBUTES))


def returning(it: Conversation) -> None:
    """A client lists a message again that was said earlier."""
    old = windows.window(it.id, it.random.randint(0, Memory.objects.get(pk=it.id).last_step))
    back = list(old.messages)[:3]
    put = it.random.choice([services.set_messages, protocol.update_messages])
    put(it.id, [*back, *it.listed])


def policy(it: Conversation) -> None:
    services.change(it.id, policy=it.any_policy())


def labels(it: Conversation) -> None:
    services.label([it.id], "team", it.random.choice(["red", "blue"]))


def pin(it: Conversation) -> None:
    services.pin(it.id, it.seq_in_memory())


def unpin(it: Conversation) -> None:
    pinned = [row.seq for row in windows.window(it.id).rows if row.pinned]
    services.unpin(it.id, it.random.choice(pinned or [1]))


def clear(it: Conversation) -> None:
    services.clear_messages(it.id)


def redact(it: Conversation) -> None:
    branches = list(Memory.objects.filter(branched_from=it.id).values_list("pk", flat=True))
    summaries: Any = it.random.choice([(), True])
    services.redact(it.id, it.any_seq(), branches=branches, summaries=summaries, actor="ada")


def redact_a_result(it: Conversation) -> None:
    rows = Message.objects.filter(memory=it.id, type="TOOL_EXECUTION_RESULT", redacted_step=None)
    services.redact(it.id, it.random.choice([*rows.values_list("seq", flat=True)] or [1]))


def compact(it: Conversation) -> None:
    services.compact(it.id, "They said a.", keep_last=it.random.randint(0, 3))


def compact_by_the_library(it: Conversation) -> None:
    memory = MessageWindowChatMemory(
        it.id, max_messages=it.random.randint(3, 6), store=DjangoChatMemoryStore()
    )
    memory.add(*some_messages(it.random, 2))
    memory.compact("They said b.", keep_last=it.random.randint(0, 3))


def repair(it: Conversation) -> None:
    services.repair(it.id, it.random.choice(list(PROVIDERS)))


def undo(it: Conversation) -> None:
    repairs = Step.objects.filter(memory=it.id, kind=Step.Kind.REPAIR).values_list("n", flat=True)
    undo_repair(it.id, it.random.choice([*repairs] or [1]))


def branch(it: Conversation) -> None:
    """Leave the conversation, and go on with a branch of one of its steps."""
    last = Memory.objects.get(pk=it.id).last_step
    new = BRANCH if it.id == ID else f"{it.id}-"
    at, other = (
        it.random.randint(max(0, last - 8), last),
        it.random.choice([None, it.any_policy()]),
    )
    services.branch(it.id, new[:40], some_messages(it.random, 2), at=at, policy=other)
    if it.random.random() < 0.5:
        it.id = new[:40]


OPERATIONS: dict[Callable[[Conversation], None], float] = {
    add: 30,
    add_with_client_ids: 2,
    add_by_the_library: 3,
    change_and_add: 2,
    make_anew: 0.3,
    several_in_one_transaction: 4,
    set_list: 3,
    list_of_a_client: 7,
    summary_in_a_clients_list: 4,
    attributes_of_a_client: 4,
    returning: 3,
    policy: 7,
    labels: 1,
    pin: 6,
    unpin: 4,
    clear: 1,
    redact: 6,
    redact_a_result: 6,
    compact: 4,
    compact_by_the_library: 3,
    repair: 5,
    undo: 4,
    branch: 2,
}


@contextmanager
def undone() -> Iterator[None]:
    """Roll back the writes of the block."""
    with transaction.atomic():
        try:
            yield
        finally:
            transaction.set_rollback(True)


def accusation(
    seed: int,
    operations: int,
    done: Counter[str] | None = None,
    recovers: float = 0,
    of: type[Conversation] = Conversation,
) -> str:
    """Return what contradicts the operations of a seed; "" if nothing does.

    Every operation is verified, and at the end the archive of all conversations is imported again.
    `done` counts the operations that were not refused. The conversation is one `of` this class.
    """
    with undone():
        it = of(Random(seed), recovers=recovers, beside=Random(seed))
        it.begin()
        for n in range(operations):
            if not it.operate():
                continue
            if done is not None:
                done[it.made[-1]] += 1
            reaches_branches = it.made[-1] in (redact.__name__, branch.__name__)
            ids = Memory.objects.values_list("pk", flat=True) if reaches_branches else [it.id]
            for memory_id in ids:
                if found := verify(memory_id):
                    return f"seed {seed}, operation {n} ({it.made[-1]}): {found}"
        if found := it.contradiction():
            return f"seed {seed}: {found}"
        found = refused_archive()
        return found and f"seed {seed}, archive: {found}"


def refused_archive() -> str:
    """Import everything again from an archive, and return why it was refused, or ""."""
    ids = list(Memory.objects.order_by("created_at").values_list("pk", flat=True))
    lines = list(archive_lines(ids))
    for rows in (Memory.objects.all(), AuditEntry.objects.all()):
        rows.delete()
    file = BytesIO("".join(f"{each}\n" for each in lines).encode())
    refused = [each.refused for each in import_archive(file) if each.refused]
    again = list(archive_lines(ids)) if not refused else lines
    return str(refused or "another archive") if refused or again != lines else ""
