"""The formats by name, and lists of messages in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from chatmemory.core.exceptions import InvalidValue, UnreadableTranscript
from chatmemory.core.given import chat_message, chat_messages, message_list
from chatmemory.core.messages import ChatMessage
from chatmemory.core.registry import Registry
from chatmemory.formats import langchain4j, openai_chat, sharegpt
from chatmemory.formats.format import Format, Rendered, Rendering, Transcript

FORMATS: Registry[Format] = Registry(
    "chatmemory.formats",
    {each.FORMAT.name: each.FORMAT for each in (langchain4j, openai_chat, sharegpt)},
    accepts=lambda item: isinstance(item, Format),
)


def format_named(name: str) -> Format:
    """Return the format of that name. Raises InvalidValue, naming the installed ones."""
    if name not in FORMATS:
        raise InvalidValue(f"unknown format {name!r}: one of {', '.join(FORMATS)}")
    return FORMATS[name]


def parse_messages(values: Any, format: str = "langchain4j") -> Transcript:
    """Return one list of messages, read.

    Raises UnreadableTranscript with the `index` of the message at fault.
    """
    if not isinstance(values, list):
        raise UnreadableTranscript(-1, "messages must be a list")
    return format_named(format).parse(values)


def render_messages(messages: Iterable[ChatMessage], format: str = "langchain4j") -> Rendered:
    """Return messages in a format, and what it could not express. Raises InvalidMessage."""
    return format_named(format).render(chat_messages(messages))


def render_each(messages: Iterable[ChatMessage], format: str = "langchain4j") -> Rendering:
    """Return the same message by message, if the format can; else all are rendered first."""
    known = format_named(format)
    if known.render_each is not None:
        return known.render_each(_Checked(messages))
    rendered = known.render(chat_messages(messages))
    return Rendering(rendered.value, rendered.losses)


class _Checked(Iterable[ChatMessage]):
    """Messages that can be read more than once, and are checked while they are read."""

    def __init__(self, given: Iterable[ChatMessage]) -> None:
        self._given = list(given) if isinstance(given, Iterator) else message_list(given)

    def __iter__(self) -> Iterator[ChatMessage]:
        return map(chat_message, self._given)
