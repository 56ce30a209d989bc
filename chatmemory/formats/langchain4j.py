"""LangChain4j's own JSON: what ChatMessageSerializer writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chatmemory.core.codec import message_from_dict, message_to_dict
from chatmemory.core.exceptions import InvalidMessage, UnreadableTranscript
from chatmemory.core.messages import ChatMessage
from chatmemory.formats.base import RawTranscript, Rendered, Transcript, is_list_of

NAME = "langchain4j"


def find(value: Any) -> RawTranscript | None:
    """A list of messages, or an object with an `id` and such `messages`."""
    if is_list_of(value, "type"):
        return RawTranscript(None, value)
    if isinstance(value, dict) and is_list_of(value.get("messages"), "type"):
        name = value.get("id")
        return RawTranscript(None if name is None else str(name), value["messages"])
    return None


def parse(turns: Sequence[Any]) -> Transcript:
    messages = []
    for index, turn in enumerate(turns):
        try:
            message = message_from_dict(turn)
        except InvalidMessage as error:
            raise UnreadableTranscript(index, str(error)) from error
        if message is None:
            raise UnreadableTranscript(index, "a message cannot be null")
        messages.append(message)
    return Transcript(None, tuple(messages))


def render(messages: Sequence[ChatMessage]) -> Rendered:
    return Rendered([message_to_dict(message) or {} for message in messages])
