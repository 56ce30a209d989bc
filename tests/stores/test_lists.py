"""Lists of messages in one add: the same as adding one by one, in one write, and all or none."""

from __future__ import annotations

from asgiref.sync import async_to_sync
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import (
    AiMessage,
    MessageWindow,
    MessageWindowChatMemory,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    services,
)
from chatmemory.ledger.verification import verify
from chatmemory.reading import steps
from chatmemory.stores.database import DjangoChatMemoryStore
from chatmemory.stores.memory import InMemoryChatMemoryStore
from chatmemory.windows.store import ChatMemoryStore

from ..properties import examples

CALL = AiMessage(None, [ToolExecutionRequest(str(n), "find", "{}") for n in (1, 2)])
POOL = [
    SystemMessage("Be brief."),
    SystemMessage("Be kind."),
    UserMessage("one"),
    AiMessage("two"),
    CALL,
    ToolExecutionResultMessage("1", "find", "x"),
    ToolExecutionResultMessage("2", "find", "y"),
]
lists = st.lists(st.sampled_from(POOL), max_size=7)


class WritesCounted(ChatMemoryStore):
    """A store with the plain methods, which counts its writes."""

    def __init__(self) -> None:
        self.inner, self.writes = InMemoryChatMemoryStore(), 0

    def get_messages(self, memory_id):
        return self.inner.get_messages(memory_id)

    def update_messages(self, memory_id, messages):
        self.writes += 1
        self.inner.update_messages(memory_id, messages)

    def delete_messages(self, memory_id):
        self.inner.delete_messages(memory_id)


@examples(100)
@given(lists, lists, st.integers(1, 6), st.booleans(), st.booleans())
def test_it_is_the_same_as_adding_one_by_one(before, added, limit, recovers, snaps):
    options = {"auto_recover_orphaned_tool_messages": recovers, "snap_to_user": snaps}
    plain = WritesCounted()
    memories = [
        MessageWindowChatMemory("m", limit, plain, **options),
        MessageWindowChatMemory("m", limit, **options),
        MessageWindowChatMemory("m", limit, **options),
    ]
    for memory in memories:
        memory.extend(before)
    plain.writes = 0
    for memory in memories[:2]:
        async_to_sync(memory.aextend)(added)
    memories[2].extend(added)
    assert plain.writes <= 1
    found = [memory.messages_with_interrupted() for memory in memories]
    assert found[0] == found[1] == found[2]


def test_each_message_of_a_list_is_a_step(db):
    memory = MessageWindowChatMemory("m", 3, DjangoChatMemoryStore())
    async_to_sync(memory.aextend)([UserMessage("one"), AiMessage("two"), UserMessage("three")])
    assert [each.kind for each in steps.steps("m")] == ["add"] * 3
    assert verify("m") is None


def test_a_list_by_the_service_recovers_before_each_message(db):
    policy = MessageWindow(9, auto_recover_orphaned_tool_messages=True)
    services.create("m", policy)
    services.add("m", [UserMessage("q"), CALL, POOL[5], UserMessage("Hello?")])
    memory = MessageWindowChatMemory("m", 9, DjangoChatMemoryStore())
    assert memory.messages() == [UserMessage("q"), UserMessage("Hello?")]
    left = [(each.seq, each.reason, each.because_seq) for each in steps.step("m", 4).change.evicted]
    assert left == [(2, "INTERRUPTED", 4), (3, "INTERRUPTED", 2)]
