"""LlamaIndex's SimpleChatStore, as `persist` writes it: a conversation for each key. Only read.

{"store": {"user-1": [message, …], …}, "class_name": "SimpleChatStore"}

The messages are LlamaIndex's; older ones are like messages of chat completions.
"""

from __future__ import annotations

from chatmemory.formats.conversion import dict_in
from chatmemory.formats.exchanges import parse_any
from chatmemory.formats.format import Format, Loss, RawTranscript
from chatmemory.formats.words import strings_in
from chatmemory.messages.json_values import JsonValue


def find(value: JsonValue) -> RawTranscript | None:
    """Return the first conversation of a store."""
    return next(iter(find_each(value)), None)


def find_each(value: JsonValue) -> list[RawTranscript]:
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


FORMAT = Format("llama_index_store", find, parse_any, find_each=find_each)
