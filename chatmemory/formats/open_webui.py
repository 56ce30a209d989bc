"""Open WebUI's export of chats. It is only read.

{"id": …, "chat": {"history": {"messages": {id: {"role": …, "content": …}, …}, "currentId": …}}}

`chat.messages` repeats the path that is shown. It is read only if there is no history. Source of
the shapes: Open WebUI's documentation of its chat API.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from chatmemory.exceptions import InvalidMessage
from chatmemory.formats.conversion import (
    Reader,
    dict_in,
    dicts_in,
    first_in,
    name_of,
    object_in,
    stand_in,
    text_in,
)
from chatmemory.formats.difference import texts_in
from chatmemory.formats.format import RawTranscript
from chatmemory.formats.parts import media_content
from chatmemory.formats.trees import format_of_tree, linked_nodes
from chatmemory.messages.contents import Content, TextContent
from chatmemory.messages.message import AiMessage, ChatMessage, UserMessage

NAME = "open_webui"


def find(value: Any) -> RawTranscript | None:
    chat = dict_in(value, "chat") or (value if isinstance(value, dict) else {})
    history = dict_in(chat, "history")
    values = {id: each for id, each in dict_in(history, "messages").items() if _is_message(each)}
    listed = dicts_in(chat, "messages")
    if not values and "chat" in value and all(map(_is_message, listed)) if listed else False:
        values = {name_of(each, "id") or str(n): each for n, each in enumerate(listed)}
    if not values:
        return None
    nodes = linked_nodes(values, "parentId", first_in(history, "currentId", "current_id"))
    return RawTranscript(name_of(value, "id") or name_of(chat, "id"), nodes)


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and "role" in value


def _content_of(message: Any) -> Any:
    names = ("content", "files", "output", "error")
    return {name: message.get(name) for name in names} if isinstance(message, dict) else None


class _Reader(Reader):
    def read(self, turn: Any) -> Iterator[ChatMessage]:
        message = object_in(turn, "a message must be an object")
        contents = [*_contents(message)]
        text = "\n".join(each.text for each in contents if isinstance(each, TextContent))
        if dicts_in(message, "sources"):
            self.lose("the documents that were searched for an answer (`sources`)")
        match message.get("role"):
            case "system":
                yield from self.system(text)
            case "user" if contents:
                yield UserMessage(contents, attributes=_about(message))
            case "assistant" if contents:
                yield AiMessage(text, attributes=_about(message))
            case "user" | "assistant":
                self.lose("a message without content")
            case role:
                raise InvalidMessage(f"unknown role {role!r}: one of system, user, assistant")


def _contents(message: Mapping[str, Any]) -> Iterator[Content]:
    content = message.get("content")
    parts = [content] if isinstance(content, str) else texts_in(content)
    texts = [text for text in parts if text] or [*texts_in(message.get("output"))]
    yield from map(TextContent, texts)
    error = message.get("error")
    error = error.get("content") if isinstance(error, dict) else error
    if isinstance(error, str) and error and not texts:
        yield TextContent(error)
    for file in dicts_in(message, "files"):
        if file.get("type") == "image":
            yield media_content("image", text_in(file, "url"), None, None)
            continue
        inner = dict_in(file, "file")
        mark = stand_in("file", text_in(file, "name") or text_in(inner, "filename"))
        text = text_in(dict_in(inner, "data"), "content")
        yield TextContent(f"{mark.text}\n{text}") if text else mark


def _about(message: Mapping[str, Any]) -> dict[str, Any]:
    known = {name: message.get(name) for name in ("id", "timestamp", "model")}
    return {NAME: {name: each for name, each in known.items() if each is not None}}


FORMAT = format_of_tree(NAME, find, _Reader, _content_of)
