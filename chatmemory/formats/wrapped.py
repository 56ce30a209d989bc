"""Objects with a list of messages under `conversation`, `history` or `chat_history`, such as
`{"history": [message, …]}`. This format is only read.

The messages may be in any format that this library reads.
"""

from __future__ import annotations

from chatmemory.formats.exchanges import format_around, format_of
from chatmemory.formats.format import RawTranscript
from chatmemory.formats.json_properties import name_of, unread
from chatmemory.messages.json_values import JsonValue

_WITHIN = ("conversation", "history", "chat_history")
_NAMES = ("conversation_id", "id", "session_id", "conversation_hash")


def find(value: JsonValue) -> RawTranscript | None:
    for name in _WITHIN if isinstance(value, dict) else ():
        if isinstance(value.get(name), list) and (format := format_of(value[name])):
            found = format.find(value[name])
            losses = tuple(unread("conversation", value, (name, *_NAMES)))
            turns = found.turns if found else ()
            return RawTranscript(name_of(value, *_NAMES), turns, losses)
    return None


FORMAT = format_around("wrapped", find)
