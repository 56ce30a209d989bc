"""The store of conversations does what Pydantic AI's own does, and keeps more.

Each walk is made with both stores, and what they return is compared without ids and times.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.core.management import call_command
from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationStore,
    InMemoryConversationStore,
)
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    UserPromptPart,
)
from pydantic_ai.models.test import TestModel
from pydantic_ai.tools import DeferredToolResults
from pydantic_ai.usage import RequestUsage, RunUsage

from chatmemory import ChatMemoryProvider, MessageWindowChatMemory, services
from chatmemory.exceptions import InvalidValue
from chatmemory.messages.message import text_of
from chatmemory.models import Memory, Message
from chatmemory.stores.database import DjangoChatMemoryStore
from inspector.rooms.pydantic_ai.models import SavedConversation, SavedEntry
from inspector.rooms.pydantic_ai.store import ChatMemoryConversationStore

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 11, 28, 12, tzinfo=UTC)


def ours(limit: int = 100) -> ChatMemoryConversationStore:
    store = DjangoChatMemoryStore()
    return ChatMemoryConversationStore(
        ChatMemoryProvider(partial(MessageWindowChatMemory, max_messages=limit, store=store)).get
    )


def memory_of(id: str, limit: int = 100) -> MessageWindowChatMemory:
    return MessageWindowChatMemory(id, limit, DjangoChatMemoryStore())


def asked(text: str, *before: Any) -> ModelRequest:
    return ModelRequest([*before, UserPromptPart(text, timestamp=NOON)])


def said(text: str) -> ModelResponse:
    return ModelResponse([TextPart(text)], usage=RequestUsage(output_tokens=2), timestamp=NOON)


def agent(**options: Any) -> Agent[None, Any]:
    made = Agent(TestModel(custom_output_text="fine"), system_prompt="Be brief.", **options)

    @made.tool_plain
    def find(order: str) -> dict[str, str]:
        return {"order": order, "where": "Lyon"}

    return made


def texts(messages: list[ModelMessage]) -> list[str]:
    return [str(getattr(part, "content", part)) for each in messages for part in each.parts]


Walk = Callable[[ConversationStore], Awaitable[list[Any]]]


async def of(store: ConversationStore, *ids: str, limit: int | None = None) -> list[Any]:
    """What a store tells about conversations, without ids that it makes up."""
    told: list[Any] = []
    for id in ids:
        loaded = await store.load(id, limit=limit)
        entries = await store.load_entries(id, limit=limit) or []
        if loaded is None:
            told.append(None)
            continue
        told.append(replace(loaded, revision=None))
        told.append(loaded.new_message_index)
        told.append([entry.message for entry in entries])
        told.append([*(entry.parent_id for entry in entries[1:])] == [e.id for e in entries[:-1]])
    records = await store.list_conversations()
    told.append([(r.conversation_id, r.scope, r.forked_from, len(r.branches)) for r in records])
    return told


async def runs(store: ConversationStore) -> list[Any]:
    """Two runs with a tool, instructions and a system prompt, saved and loaded."""
    helper = agent(instructions="Answer in French.")
    first = await helper.run("Where is A-1182?", conversation=Conversation(conversation_id="a"))
    ids = [entry.id for entry in await store.save(first, scope="ada")]
    assert len(set(ids)) == 4
    loaded = await store.load("a", scope="ada")
    assert loaded is not None
    assert loaded.messages == first.all_messages()
    second = await helper.run("And B-7?", conversation=loaded)
    added = await store.save(second)
    assert [entry.message for entry in added] == second.new_messages()
    assert (await store.load("a")).messages == second.all_messages()  # type: ignore[union-attr]
    for entry in added:
        assert await store.read_entry(entry.id) == entry
    assert await store.load("a", scope="bob") is None
    return [len(added)]


async def empty(store: ConversationStore) -> list[Any]:
    conversation = Conversation(conversation_id="a", usage=RunUsage(requests=3))
    assert await store.save(conversation) == []
    conversation.messages += [asked("hi"), ModelResponse([], timestamp=NOON), asked(""), said("")]
    await store.save(conversation)
    return [*await of(store, "a"), *await of(store, "a", "unknown", limit=3)]


async def rewritten(store: ConversationStore) -> list[Any]:
    """A history that is not the stored one branches off where both differ."""
    messages = [asked("one"), said("two"), asked("three"), said("four")]
    conversation = Conversation(conversation_id="a", messages=messages)
    await store.save(conversation)
    conversation.new_message_index = None
    conversation.messages = [*messages[:2], asked("3"), said("4")]
    await store.save(conversation)
    told = await of(store, "a")
    record = await store.read_record("a")
    assert record is not None
    left = await store.read_history(record.branches[0])
    told.append(texts([entry.message for entry in left]))
    back = await store.branch(
        "a", from_entry=record.branches[0], expected_revision=conversation.revision
    )
    back.messages.append(asked("five"))
    await store.save(back)
    told += await of(store, "a")
    start = await store.branch("a", at=0, expected_revision=back.revision)
    start.messages += [asked("anew"), said("yes")]
    await store.save(start)
    return [*told, *await of(store, "a"), *await of(store, "a", limit=1)]


async def forked(store: ConversationStore) -> list[Any]:
    conversation = Conversation(conversation_id="a", usage=RunUsage(requests=2))
    conversation.messages = [
        asked("one", SystemPromptPart("s", timestamp=NOON)),
        said("two"),
        asked("three"),
    ]
    await store.save(conversation, scope="ada")
    whole = await store.fork("a", new_conversation_id="b", scope="bob")
    part = await store.fork("a", at=2, new_conversation_id="c")
    part.messages.append(asked("other"))
    await store.save(part)
    whole.messages.append(said("four"))
    await store.save(whole)
    told = await of(store, "a", "b", "c")
    with pytest.raises(ConversationConflict):
        await store.fork("a", new_conversation_id="c")
    await store.delete("a")
    return [*told, *await of(store, "a", "b", "c")]


async def conflicts(store: ConversationStore) -> list[Any]:
    conversation = Conversation(conversation_id="a", messages=[asked("one")])
    await store.save(conversation, scope="ada")
    stale = await store.load("a")
    assert stale is not None
    conversation.messages.append(said("two"))
    await store.save(conversation)
    stale.messages.append(said("other"))
    failures = [
        store.save(stale),
        store.save(Conversation(conversation_id="a", messages=[asked("new")])),
        store.save(conversation, scope="bob"),
        store.branch("a", at=1, expected_revision=stale.revision),
        store.delete_record("a", expected_revision="other"),
    ]
    for failing in failures:
        with pytest.raises(ConversationConflict):
            await failing
    with pytest.raises(UserError):
        await store.branch("a", at=9, expected_revision=conversation.revision)
    with pytest.raises(UserError):
        await store.branch("a", from_entry="none", expected_revision=conversation.revision)
    await store.delete("a", scope="bob")
    told = await of(store, "a")
    await store.delete("a", scope="ada")
    await store.delete("a")
    again = Conversation(conversation_id="a", messages=[asked("again")])
    await store.save(again)
    return [*told, *await of(store, "a")]


async def lists(store: ConversationStore) -> list[Any]:
    for id, scope in (("a", "x"), ("b", None), ("c", "x")):
        await store.save(Conversation(conversation_id=id, messages=[asked(id)]), scope=scope)
    return [
        [r.conversation_id for r in await store.list_conversations(scope="x")],
        [r.conversation_id for r in await store.list_conversations(limit=2)],
    ]


@pytest.mark.parametrize("walk", [runs, empty, rewritten, forked, conflicts, lists])
def test_it_does_what_the_store_of_pydantic_ai_does(walk: Walk):
    assert async_to_sync(walk)(ours()) == async_to_sync(walk)(InMemoryConversationStore())
    call_command("verify_memories")


def test_a_run_that_waits_goes_on_from_the_store():
    """A call that waits for approval is resumed by another process: the store has what it needs."""
    made = Agent(
        TestModel(call_tools=["pay"], custom_output_text="paid"),
        output_type=[str, DeferredToolRequests],
    )

    @made.tool_plain(requires_approval=True)
    def pay(amount: int) -> str:
        return f"paid {amount}"

    async def paused_and_resumed() -> list[str]:
        paused = await made.run("Pay it.", conversation=Conversation(conversation_id="a"))
        await ours().save(paused)
        loaded = await ours().load("a")
        assert loaded is not None
        requests = loaded.deferred_tool_requests
        assert requests is not None
        assert requests == paused.output
        results = DeferredToolResults(approvals={requests.approvals[0].tool_call_id: True})
        await ours().save(await made.run(conversation=loaded, deferred_tool_results=results))
        done = await ours().load("a")
        assert done is not None
        assert done.deferred_tool_requests is None
        return texts(done.messages)[-2:]

    assert async_to_sync(paused_and_resumed)() == ["paid 0", "paid"]


def test_the_window_is_what_the_policy_keeps_and_a_save_adds_to_the_history():
    store = ours(limit=3)

    async def talk() -> None:
        for n in range(3):
            loaded = await store.load_window("a") or Conversation(conversation_id="a")
            loaded.messages += [asked(f"question {n}"), said(f"answer {n}")]
            await store.save(loaded)

    async_to_sync(talk)()
    window = async_to_sync(store.load_window)("a")
    assert window is not None
    assert texts(window.messages) == ["answer 1", "question 2", "answer 2"]
    assert len(async_to_sync(store.load)("a").messages) == 6  # type: ignore[union-attr]
    assert len(memory_of("a").history()) == 6
    assert async_to_sync(store.load_window)("unknown") is None


def test_a_branch_changes_the_window_and_the_history_keeps_what_it_left():
    store = ours()
    conversation = Conversation(conversation_id="a", messages=[asked("one"), said("two")])
    async_to_sync(store.save)(conversation)
    branched = async_to_sync(store.branch)("a", at=1, expected_revision=conversation.revision)
    branched.messages.append(said("other"))
    async_to_sync(store.save)(branched)
    assert [*map(text_of, memory_of("a").messages())] == ["one", "other"]
    assert [*map(text_of, memory_of("a").history())] == ["one", "two", "other"]
    call_command("verify_memories")


@pytest.mark.needs("erasure")
def test_a_redaction_and_a_deletion_erase_the_words():
    store = ours()
    secret = ModelRequest([SystemPromptPart("s"), UserPromptPart("PIN 4711")])
    conversation = Conversation(
        conversation_id="a",
        messages=[secret, said("ok"), secret],  # an equal system prompt becomes no second message
        deferred_tool_requests=DeferredToolRequests(metadata={"1": {"pin": "4711"}}),
    )
    async_to_sync(store.save)(conversation)
    assert SavedEntry.objects.filter(content__contains="4711").count() == 1
    rows = Message.objects.filter(memory_id="a", text__contains="4711")
    for seq in rows.values_list("seq", flat=True):
        services.redact("a", seq)
    for model in (SavedEntry, SavedConversation):
        assert "4711" not in str(list(model.objects.values()))
    assert "4711" not in str(async_to_sync(store.load)("a"))
    async_to_sync(store.delete)("a")
    assert not SavedEntry.objects.exists()
    assert not Memory.objects.exists()


def test_a_memory_in_another_store_is_refused():
    store = ChatMemoryConversationStore(MessageWindowChatMemory)
    with pytest.raises(InvalidValue, match="must use DjangoChatMemoryStore"):
        async_to_sync(store.save)(Conversation(messages=[asked("one")]))
    other = ChatMemoryConversationStore(lambda _: memory_of("same"))
    with pytest.raises(InvalidValue, match="has a different id, 'same'"):
        async_to_sync(other.save)(Conversation(messages=[asked("one")]))
