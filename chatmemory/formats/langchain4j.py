"""LangChain4j's own JSON: what ChatMessageSerializer writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chatmemory.core.codec import message_from_dict, message_to_dict
from chatmemory.core.exceptions import InvalidMessage, UnreadableTranscript
from chatmemory.core.messages import ChatMessage
from chatmemory.formats.base import (
    RawTranscript,
    Rendered,
    Transcript,
    is_list_of,
    name_of,
    unread,
)

NAME = "langchain4j"


def find(value: Any) -> RawTranscript | None:
    """A list of messages, or an object with an `id` and such `messages`."""
    if _is_ours(value):
        return RawTranscript(None, value)
    if isinstance(value, dict) and _is_ours(value.get("messages")):
        losses = tuple(unread("conversation", value, ("id", "messages")))
        return RawTranscript(name_of(value, "id"), value["messages"], losses)
    return None


def _is_ours(value: Any) -> bool:
    """Other formats have types too, but beside a role, which LangChain4j refuses."""
    return is_list_of(value, "type") and "role" not in value[0]


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
