"""LlamaIndex's SimpleChatStore, as `persist` writes it: a conversation for each key. Only read.

{"store": {"user-1": [message, …], …}, "class_name": "SimpleChatStore"}
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from chatmemory.core.exceptions import UnreadableTranscript
from chatmemory.core.texts import printable
from chatmemory.formats.conversion import dict_in
from chatmemory.formats.exchanges import NOTHING, format_of_several, said_in
from chatmemory.formats.format import Refused, Transcript


def _finds(value: Any) -> bool:
    store = dict_in(value, "store")
    lists = [each for each in store.values() if isinstance(each, list)]
    is_named = isinstance(value, dict) and value.get("class_name") == "SimpleChatStore"
    return bool(lists) and (is_named or value.keys() == {"store"})


def _conversations(values: Iterable[Any]) -> Iterator[Transcript | Refused]:
    for value in values:
        for key, messages in dict_in(value, "store").items():
            yield _conversation(key, messages)


def _conversation(key: str, messages: Any) -> Transcript | Refused:
    why = NOTHING
    try:
        if read := said_in(messages):
            return replace(read, name=key)
    except UnreadableTranscript as error:
        why = str(error)
    return Refused(f"conversation {printable(key)}", why)


FORMAT = format_of_several("llama_index_store", _finds, _conversations)
