from __future__ import annotations

import pytest
from asgiref.sync import async_to_sync
from django.db import DatabaseError, connection

from chatmemory import (
    AiMessage,
    InvalidValue,
    MemoryNotFound,
    MessageWindowChatMemory,
    UserMessage,
    queries,
)
from chatmemory.ledger.verification import verify
from chatmemory.stores.database import DjangoChatMemoryStore


def memory(limit: int = 2) -> MessageWindowChatMemory:
    return MessageWindowChatMemory("a", limit, DjangoChatMemoryStore())


def test_the_history_has_what_the_memory_forgot(db):
    said = [UserMessage("one"), AiMessage("two"), UserMessage("three")]
    memory().add(*said)
    assert memory().messages() == said[1:]
    assert DjangoChatMemoryStore().get_history("a") == said
    with pytest.raises(MemoryNotFound):
        DjangoChatMemoryStore().get_history("b")


def test_its_first_policy_is_a_step_unless_it_makes_the_conversation(db):
    memory().add(UserMessage("one"))
    assert [step.kind for step in queries.steps("a")] == ["add"]
    store = DjangoChatMemoryStore()
    store.update_messages("b", [])
    MessageWindowChatMemory("b", 2, store).add(UserMessage("one"))
    assert [step.kind for step in queries.steps("b")] == ["policy", "add"]
    assert verify("a") is verify("b") is None


def test_a_memory_under_asyncio_uses_the_connection_of_its_task(db):
    async def talk() -> list:
        await memory().aadd(UserMessage("one"), AiMessage("two"))
        await memory().aextend([UserMessage("three")])
        return await memory().amessages()

    assert async_to_sync(talk)() == memory().messages() == [AiMessage("two"), UserMessage("three")]
    async_to_sync(memory().aset)([UserMessage("four")])
    assert memory().messages() == [UserMessage("four")]
    async_to_sync(memory().aclear)()
    assert memory().messages() == []


def test_an_error_of_the_database_says_what_to_do(transactional_db):
    memory().add(UserMessage("one"))
    with connection.schema_editor() as editor:
        editor.execute("ALTER TABLE chatmemory_stay RENAME TO elsewhere")
    try:
        with pytest.raises(DatabaseError) as raised:
            memory().messages()
    finally:
        with connection.schema_editor() as editor:
            editor.execute("ALTER TABLE elsewhere RENAME TO chatmemory_stay")
    (note,) = raised.value.__notes__
    assert "the database is not migrated" in note
    assert "run manage.py migrate" in note


@pytest.mark.parametrize("limit", [2**63, 10**30])
def test_a_limit_that_no_database_can_hold_is_refused(db, limit):
    memory = MessageWindowChatMemory("m", limit, DjangoChatMemoryStore())
    for change in (memory.add, lambda message: memory.set([message])):
        with pytest.raises(InvalidValue, match=f"max_messages must be at most {2**63 - 1}"):
            change(UserMessage("hello"))
    assert not queries.any_memory()
