"""LlamaIndex's SimpleChatStore, as `persist` writes it: a conversation for each key. This format is
only read.

{"store": {"user-1": [message, …], …}, "class_name": "SimpleChatStore"}

A buffer, such as ChatMemoryBuffer, writes its store under `chat_store`. The messages are in
LlamaIndex's format; older messages are like messages of chat completions. Source of the shapes:
llama_index, core/storage/chat_store/simple_chat_store.py, core/memory/types.py and
chat_memory_buffer.py.
"""

from __future__ import annotations

from dataclasses import replace

from chatmemory.formats.exchanges import parse_any
from chatmemory.formats.format import Format, Loss, RawTranscript
from chatmemory.formats.json_properties import dict_in, unread
from chatmemory.formats.words import strings_in
from chatmemory.messages.json_values import JsonValue


def find(value: JsonValue) -> RawTranscript | None:
    """Return the first conversation of a store, or None if the value is in another format."""
    return next(iter(find_each(value)), None)


def find_each(value: JsonValue) -> list[RawTranscript]:
    if buffered := dict_in(value, "chat_store"):
        return _of_a_buffer(value, _of_a_store(buffered))
    return _of_a_store(value)


def _of_a_store(value: JsonValue) -> list[RawTranscript]:
    store = dict_in(value, "store")
    is_named = isinstance(value, dict) and value.get("class_name") == "SimpleChatStore"
    if not is_named and (not store or value.keys() != {"store"}):
        return []
    lists = {key: each for key, each in store.items() if isinstance(each, list)}
    losses = tuple(
        Loss("store", f"words under {key!r}, which is no list of messages, are not read")
        for key, each in store.items()
        if key not in lists and any(strings_in(each))
    )
    return [
        RawTranscript(key, each, losses=() if n else losses)
        for n, (key, each) in enumerate(lists.items())
    ]


def _of_a_buffer(value: JsonValue, found: list[RawTranscript]) -> list[RawTranscript]:
    """Return the conversations of a buffer's store. Unread properties of the buffer are losses of
    the first conversation.
    """
    if not found or not isinstance(value, dict):
        return []
    first, *others = found
    losses = (*first.losses, *unread("conversation", value, _OF_A_BUFFER))
    return [replace(first, losses=losses), *others]


_OF_A_BUFFER = (
    *("chat_store", "chat_store_key", "token_limit", "count_initial_tokens", "class_name"),
)

FORMAT = Format("llama_index_store", find, parse_any, find_each=find_each)
