"""LangChain4j's own JSON: the output of its ChatMessageSerializer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from chatmemory.exceptions import InvalidMessage
from chatmemory.formats.format import Format, Loss, RawTranscript, Rendering, Transcript
from chatmemory.formats.json_properties import is_list_of
from chatmemory.formats.readers_and_writers import Reader, find_turns
from chatmemory.messages.codec import message_from_dict, message_to_dict
from chatmemory.messages.json_values import JsonDict, JsonValue
from chatmemory.messages.message import ChatMessage, MessageType, SystemMessage


def find(value: JsonValue) -> RawTranscript | None:
    """Return the conversation in a value, or None if the value is in another format.

    The value is a list of messages, or an object with an `id` and the list under `messages`.
    """
    return find_turns(value, _is_ours)


def _is_ours(value: JsonValue) -> bool:
    """Return whether the first message has one of LangChain4j's types. Messages of other formats
    have types, too.
    """
    return is_list_of(value, "type") and value[0]["type"] in tuple(MessageType)


class _Reader(Reader):
    def read(self, turn: JsonValue) -> Iterator[ChatMessage]:
        message = message_from_dict(turn)
        if message is None:
            raise InvalidMessage("a message cannot be null")
        yield message


def parse(turns: Sequence[JsonValue], after: Iterable[ChatMessage] = ()) -> Transcript:
    return _Reader().read_all(turns, after)


def render(messages: Iterable[ChatMessage]) -> Rendering:
    losses: list[Loss] = []
    return Rendering(_values(messages, losses), losses)


def _values(messages: Iterable[ChatMessage], losses: list[Loss]) -> Iterator[JsonDict]:
    for index, message in enumerate(messages):
        if isinstance(message, SystemMessage) and message.attributes:
            losses.append(Loss(f"message {index + 1}", "attributes of a system message"))
        yield message_to_dict(message) or {}


FORMAT = Format("langchain4j", find, parse, render)
