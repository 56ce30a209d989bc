"""The messages of a body: read in their format, and traced to the places where they were sent.

A format makes no message of some items, such as a blank system message, and one of several, such as
a text and the call behind it. Client ids and errors count what was sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from chatmemory.api.errors import InvalidField
from chatmemory.conf import configuration
from chatmemory.core.exceptions import (
    InvalidMessage,
    MessageTooLarge,
    NoRoomBesidePins,
    OversizedMessage,
    UnreadableTranscript,
    WindowTooLarge,
)
from chatmemory.core.messages import ChatMessage
from chatmemory.formats import Loss, parse_messages
from chatmemory.services import NewMessage

DEFAULT_FORMAT = "langchain4j"
_TOO_MANY = {
    "ADDED_MESSAGES": "at most {most:,} messages at a time, the limit of "
    'CHATMEMORY["ADDED_MESSAGES"]: send several requests',
    "LISTED_MESSAGES": "at most {most:,} messages in all, the limit of "
    'CHATMEMORY["LISTED_MESSAGES"]',
}
_FORMATS_BY_KEY = {"role": "openai_chat", "from": "sharegpt"}


@dataclass(frozen=True)
class SentMessages:
    """The messages that were read of `count` sent ones, each with its place among these from 0.

    `losses` are what could not be read.
    """

    messages: list[ChatMessage]
    places: Sequence[int]
    count: int
    losses: Sequence[Loss] = ()

    def with_client_ids(self, client_ids: Sequence[str | None] | None) -> list[NewMessage]:
        """Return the messages with the client ids of their places.

        Raises InvalidField unless there are none at all, or as many as messages were sent.
        """
        client_ids = [None] * self.count if client_ids is None else client_ids
        if len(client_ids) != self.count:
            why = f"there must be one client id, or null, for each of the {self.count:,} messages"
            raise InvalidField("client_ids", why)
        return [
            NewMessage(message, client_ids[place])
            for message, place in zip(self.messages, self.places, strict=True)
        ]

    @contextmanager
    def named_in_errors(self) -> Iterator[None]:
        """Errors inside name a message by the place where it was sent."""
        try:
            yield
        except (OversizedMessage, MessageTooLarge, NoRoomBesidePins, WindowTooLarge) as error:
            if error.index is not None:
                error.index = self.places[error.index]
            raise


def most_messages(setting: str) -> int:
    """Return how many messages a request may have by this setting of CHATMEMORY."""
    most: int = getattr(configuration(), setting)
    return most


def read_messages(
    values: Any,
    format: str = DEFAULT_FORMAT,
    field: str = "messages",
    setting: str = "LISTED_MESSAGES",
    before: int = 0,
) -> SentMessages:
    """Return the messages of a decoded list. Raises InvalidField, such as for `messages[2]`.

    With the messages `before` them, they are at most as many as the setting of CHATMEMORY allows.
    """
    most = most_messages(setting)
    if isinstance(values, list) and before + len(values) > most:
        raise InvalidField(field, _TOO_MANY[setting].format(most=most))
    try:
        read = parse_messages(values, format)
    except UnreadableTranscript as error:
        place = f"{field}[{error.index}]" if error.index >= 0 else field
        hint = _hint(values, error.index) if field and format == DEFAULT_FORMAT else ""
        raise InvalidField(place, f"{error.why}{hint}") from error
    except InvalidMessage as error:
        raise InvalidField(field, str(error)) from error
    messages = list(read.messages)
    if len(read.turns) == len(messages):
        return SentMessages(messages, read.turns, len(values), read.losses)
    return SentMessages(messages, range(len(messages)), len(messages), read.losses)


def _hint(values: Any, index: int) -> str:
    """Return what to send with messages that seem to be of another format."""
    message = values[index] if index >= 0 else None
    if not isinstance(message, dict) or "type" in message:
        return ""
    for key, format in _FORMATS_BY_KEY.items():
        if key in message:
            return f'; with messages that have "{key}", send "format": "{format}"'
    return ""
