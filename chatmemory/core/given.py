"""Messages and ids that callers give, checked where they come in: errors say what to do instead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from chatmemory.core.exceptions import InvalidMessage, InvalidValue
from chatmemory.core.messages import ChatMessage

_SHOWN = 80


def chat_message(given: object) -> ChatMessage:
    """Return what is given if it is a message. Raises InvalidMessage."""
    if isinstance(given, ChatMessage):
        return given
    if isinstance(given, list | tuple):
        raise InvalidMessage("a chat message is wanted, not a list: give each of its messages")
    hint = ""
    if isinstance(given, Mapping) and "role" in given:
        hint = ": parse_messages([…], 'openai_chat') of chatmemory.formats reads it"
    raise InvalidMessage(
        f"a chat message such as UserMessage('Hello') is wanted, not {brief(given)}{hint}"
    )


def message_list(given: Iterable[Any]) -> Iterable[Any]:
    """Return what is given if it can be a list of messages. Raises InvalidMessage."""
    if isinstance(given, ChatMessage | str | bytes | Mapping) or not isinstance(given, Iterable):
        raise InvalidMessage(f"a list of chat messages is wanted, not {brief(given)}")
    return given


def chat_messages(given: Iterable[Any]) -> list[ChatMessage]:
    """Return the messages that are given. Raises InvalidMessage."""
    return [chat_message(each) for each in message_list(given)]


def brief(value: object) -> str:
    """A value as an error shows it."""
    shown = repr(value)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"


def string_id(memory_id: object, limit_name: str = "") -> str:
    """Return an id if it is a string: 42 and "42" would be one conversation in a database.

    `limit_name` is that of an argument for which a number may be meant. Raises InvalidValue.
    """
    if memory_id is None:
        raise InvalidValue("id cannot be null")
    if not isinstance(memory_id, str):
        shown = brief(memory_id)
        meant = f", or {limit_name}={shown}" if limit_name and isinstance(memory_id, int) else ""
        raise InvalidValue(f"a memory id must be a string, not {shown}: use str(…){meant}")
    return memory_id
