"""Implements Pydantic AI's ConversationStore with the memories of a Django project.

memories = ChatMemoryProvider(lambda id: MessageWindowChatMemory(id, 20, store))
conversations = ChatMemoryConversationStore(memories.get)
conversation = await conversations.load_window("order-7741") or Conversation(
    conversation_id="order-7741"
)
result = await agent.run("Where is my parcel?", conversation=conversation)
await conversations.save(result)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from django.db.models import QuerySet

from chatmemory import services
from chatmemory.exceptions import InvalidValue, MemoryExists, MemoryNotFound
from chatmemory.memories.memory import ChatMemory
from chatmemory.models import Memory
from chatmemory.stores.database import DjangoChatMemoryStore
from inspector.rooms.pydantic_ai import rows
from inspector.rooms.pydantic_ai.models import SavedConversation, SavedEntry

try:
    from pydantic import TypeAdapter
    from pydantic_ai.conversation import Conversation
    from pydantic_ai.conversation_store import (
        ConversationConflict,
        ConversationEntry,
        ConversationRecord,
        ConversationStore,
    )
    from pydantic_ai.messages import ModelMessagesTypeAdapter
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] not in ("pydantic", "pydantic_ai"):
        raise
    raise ImportError(
        "ChatMemoryConversationStore needs Pydantic AI 2.68: pip install '.[pydantic-ai]' in a "
        "checkout"
    ) from error

P = ParamSpec("P")
T = TypeVar("T")
_RECORDS = TypeAdapter(ConversationRecord)


class ChatMemoryConversationStore(ConversationStore):
    """A store of Pydantic AI's conversations, which adds their messages to the histories of
    memories.

    - `memories` is a function that returns the memory of a conversation ID, such as
      `ChatMemoryProvider.get`. The store of this memory must be a DjangoChatMemoryStore. The first
      save creates the conversation with the policy of the memory.
    - `load` returns the whole history, and `load_window` only the messages in memory. A save adds
      new messages, and the policy decides which messages leave memory.
    - A save can continue from an earlier entry of the log. It then replaces the window by the
      messages up to this entry, as `memory.set` does. The history keeps all messages.
    - A fork is a new conversation with a copy of the messages. Redact or delete the copy
      separately.
    - `delete` deletes the conversation with its history and log. A redaction also erases the texts
      from the log, and the tool calls that wait for approval.
    - Messages that other programs add to the memory are in its window, but not in the log.

    Raises InvalidValue for a memory in another store, and the exceptions of the memories.
    """

    def __init__(self, memories: Callable[[str], ChatMemory], *, actor: str = "") -> None:
        self._memories = memories
        self._actor = actor

    async def load_window(
        self, conversation_id: str, *, scope: str | None = None
    ) -> Conversation | None:
        """Return a conversation with only the messages in memory. Return None if the conversation
        is unknown. With `scope`, also return None if the conversation was saved with a different
        scope.
        """
        windows = _Windows(self._memories, actor=self._actor)
        return await windows.load(conversation_id, scope=scope)

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        return await _in_thread(_record, conversation_id)

    async def read_records(
        self, *, scope: str | None = None, limit: int | None = None
    ) -> Sequence[ConversationRecord]:
        return await _in_thread(_records, scope, limit)

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        await _in_thread(self._write, record, new_entries, expected_revision)

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        await _in_thread(self._delete, conversation_id, expected_revision)

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        (entry,) = await self.read_history(entry_id, limit=1)
        return entry

    async def read_history(
        self, head_id: str | None, *, limit: int | None = None
    ) -> list[ConversationEntry]:
        """Return the log entries up to and including the entry with the ID `head_id`, in order; []
        if `head_id` is None. With `limit`, return only the last entries. Raises LookupError if no
        conversation has an entry with this ID.
        """
        return await _in_thread(self._entries, None, head_id, limit)

    async def _history_of(
        self, record: ConversationRecord, *, limit: int | None = None
    ) -> list[ConversationEntry] | None:
        """Return the log entries of this conversation. The same entries in a fork can differ,
        because a redaction changes only one conversation. None if the log has changed meanwhile.
        """
        read = partial(self._entries, record.conversation_id, record.head_id, limit)
        try:
            return await _in_thread(read)
        except LookupError:
            current = await self.read_record(record.conversation_id)
            if current is not None and current.revision == record.revision:
                raise
            return None

    def _entries(
        self, memory_id: str | None, head: str | None, limit: int | None
    ) -> list[ConversationEntry]:
        if head is None:
            return []
        memory_id = memory_id or rows.owner_of(head)
        entries = rows.chain(memory_id, head, limit)
        messages = ModelMessagesTypeAdapter.validate_python(rows.values_of(memory_id, entries))
        return [
            ConversationEntry(id=entry.entry, parent_id=entry.parent, message=message)
            for entry, message in zip(entries, messages, strict=True)
        ]

    def _write(
        self,
        record: ConversationRecord,
        new_entries: Sequence[ConversationEntry],
        expected: str | None,
    ) -> None:
        memory = self._memory(record.conversation_id)
        with services.atomic():
            self._lock(memory)
            stored = SavedConversation.objects.filter(pk=memory.id).first()
            if (stored.revision if stored else None) != expected:
                raise ConversationConflict(record.conversation_id)
            before = new_entries[0].parent_id if new_entries else record.head_id
            if before != (stored.head if stored else None):
                self._branch(memory, before)
            messages = ModelMessagesTypeAdapter.dump_python(
                [entry.message for entry in new_entries], mode="json"
            )
            added = zip(new_entries, messages, strict=True)
            rows.append(memory, ((each.id, each.parent_id, value) for each, value in added))
            if not self._knows(memory, record.head_id):
                raise ConversationConflict(record.conversation_id)
            _save(record)

    def _branch(self, memory: ChatMemory, head: str | None) -> None:
        """Set the window to the messages of the log entries up to `head`. If these entries belong
        to another conversation, copy them.

        Raises ConversationConflict if no conversation has them.
        """
        if self._knows(memory, head):
            entries = rows.chain(memory.id, head)
            found = rows.messages_of(memory.id, entries)
            memory.set(each for entry in entries for each in rows.said_in(entry, found))
            return
        try:
            source = rows.owner_of(head or "")
            entries = rows.chain(source, head)
        except LookupError:
            raise ConversationConflict(memory.id) from None
        values = rows.values_of(source, entries)
        copied = zip(entries, values, strict=True)
        rows.append(memory, ((each.entry, each.parent, value) for each, value in copied))

    def _knows(self, memory: ChatMemory, entry: str | None) -> bool:
        return entry is None or SavedEntry.objects.filter(memory_id=memory.id, entry=entry).exists()

    def _delete(self, conversation_id: str, expected: str) -> None:
        with services.atomic():
            _lock_row(conversation_id)
            stored = SavedConversation.objects.filter(pk=conversation_id).first()
            if stored is None or stored.revision != expected:
                raise ConversationConflict(conversation_id)
            try:
                services.delete(conversation_id, actor=self._actor)
            except MemoryNotFound:
                raise ConversationConflict(conversation_id) from None

    def _memory(self, conversation_id: str) -> ChatMemory:
        memory = self._memories(conversation_id)
        if memory.id != conversation_id:
            raise InvalidValue(
                f"the memory for the conversation {conversation_id!r} has a different id, "
                f"{memory.id!r}: the two must be equal"
            )
        if not isinstance(memory.store, DjangoChatMemoryStore):
            raise InvalidValue(
                "the memories of a conversation store must use DjangoChatMemoryStore"
            )
        return memory

    def _lock(self, memory: ChatMemory) -> None:
        """Lock the row of a conversation until the transaction ends. A new conversation is created
        first.
        """
        if _lock_row(memory.id):
            return
        try:
            services.create(memory.id, memory.policy(), actor=self._actor)
        except MemoryExists:
            _lock_row(memory.id)


class _Windows(ChatMemoryConversationStore):
    """The same store, but what it reads is the window instead of the history."""

    def _entries(
        self, memory_id: str | None, head: str | None, limit: int | None
    ) -> list[ConversationEntry]:
        assert memory_id is not None
        values = self._memory(memory_id).render(rows.FORMAT)
        messages = ModelMessagesTypeAdapter.validate_python(values)
        return [ConversationEntry(parent_id=None, message=message) for message in messages]


async def _in_thread(call: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    """Call a function in the thread that has this task's database connection."""
    return await sync_to_async(call)(*args, **options)


def _lock_row(memory_id: str) -> bool:
    """Lock the row of a conversation until the transaction ends, and return whether it exists."""
    row: QuerySet[Memory] = Memory.objects.select_for_update().filter(pk=memory_id)
    return row.values_list("pk").first() is not None


def _record(conversation_id: str) -> ConversationRecord | None:
    known = SavedConversation.objects.filter(
        pk=conversation_id, memory__deleted_at__isnull=True
    ).first()
    return None if known is None else _RECORDS.validate_json(known.content)


def _records(scope: str | None, limit: int | None) -> list[ConversationRecord]:
    known = SavedConversation.objects.filter(memory__deleted_at__isnull=True).order_by("-saved_at")
    if scope is not None:
        known = known.filter(scope=scope)
    contents = known.values_list("content", flat=True)[:limit]
    return [_RECORDS.validate_json(content) for content in contents]


def _save(record: ConversationRecord) -> None:
    SavedConversation.objects.update_or_create(
        pk=record.conversation_id,
        defaults={
            "revision": record.revision,
            "head": record.head_id,
            "scope": record.scope,
            "saved_at": round(record.updated_at.timestamp() * 1_000_000),
            "content": _RECORDS.dump_json(record).decode(),
        },
    )
