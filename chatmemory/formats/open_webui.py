"""Open WebUI's export of chats. This format is only read.

{"id": …, "chat": {"history": {"messages": {id: {"role": …, "content": …}, …}, "currentId": …}}}

An answer with tool calls has the calls twice: under `output`, as items of the Responses API, and in
its text, as HTML. Only the items are read. `chat.messages` repeats the displayed messages of the
history. If there is no history, `chat.messages` is read instead. Source of the shapes: Open WebUI's
documentation of its chat API.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from chatmemory.formats import openai_responses
from chatmemory.formats.difference import texts_in
from chatmemory.formats.format import Loss, RawTranscript
from chatmemory.formats.json_properties import (
    dict_in,
    dicts_in,
    first_in,
    list_in,
    name_of,
    object_in,
    text_in,
    type_in,
    unknown,
)
from chatmemory.formats.parts import media_content
from chatmemory.formats.readers_and_writers import Reader, stand_in
from chatmemory.formats.trees import format_of_tree, linked_nodes
from chatmemory.formats.words import Beside
from chatmemory.messages.contents import Content, TextContent
from chatmemory.messages.json_values import JsonDict, JsonMap, JsonValue
from chatmemory.messages.message import AiMessage, ChatMessage, UserMessage, with_attributes
from chatmemory.patterns import declared_pattern

NAME = "open_webui"


def find(value: JsonValue) -> RawTranscript | None:
    chat = dict_in(value, "chat") or (value if isinstance(value, dict) else {})
    history = dict_in(chat, "history")
    values = {id: each for id, each in dict_in(history, "messages").items() if _is_message(each)}
    listed = dicts_in(chat, "messages")
    if not values and "chat" in value and all(map(_is_message, listed)) if listed else False:
        values = {name_of(each, "id") or str(n): each for n, each in enumerate(listed)}
    if not values:
        return None
    losses = _beside(listed, values)
    nodes = linked_nodes(values, "parentId", first_in(history, "currentId", "current_id"))
    return RawTranscript(name_of(value, "id") or name_of(chat, "id"), nodes, losses)


def _beside(listed: list[JsonDict], values: JsonMap) -> tuple[Loss, ...]:
    """Return the loss of displayed messages that are not in the history."""
    known = [_content_of(each) for each in values.values()]
    others = sum(_content_of(each) not in known for each in listed if any(each.values()))
    what = f"messages that only the list of shown messages has, which are not read ({others:,})"
    return (Loss("conversation", what),) if others and values else ()


def _is_message(value: JsonValue) -> bool:
    return isinstance(value, dict) and "role" in value


def _content_of(message: JsonValue) -> JsonValue:
    if not isinstance(message, dict):
        return None
    said: JsonDict = _BESIDE.without(message)
    if _has_items(message) and isinstance(said.get("content"), str):
        said["content"] = _DETAILS.sub("", said["content"])
    return said


_BESIDE = Beside(
    texts=("childrenIds", "models", "modelName", "lastSentence", "followUps", "tags"),
    wholes=(
        *("sources", "statusHistory", "info", "annotation", "merged", "code_executions"),
        *("embeds", "userContext", "originalContent"),
    ),
)


# Thoughts and calls, which Open WebUI puts into the text of an answer that has them as items, too
_DETAILS = declared_pattern(r"<details\b[^<>]*>(?:(?!<details\b).)*?</details>", re.DOTALL)


def _has_items(message: JsonMap) -> bool:
    """Return whether an answer has items of the Responses API besides its text."""
    return any(type_in(each) != "message" for each in list_in(message, "output"))


class _Reader(Reader):
    def read(self, turn: JsonValue) -> Iterator[ChatMessage]:
        message = object_in(turn, "a message must be an object")
        contents = [*_contents(message)]
        text = "\n".join(each.text for each in contents if isinstance(each, TextContent))
        if dicts_in(message, "sources"):
            self.lose("the documents that the answer is based on (`sources`)")
        match message.get("role"):
            case "system":
                yield from self.system(text)
            case "user" if contents:
                yield UserMessage(contents, attributes=_about(message))
            case "assistant" if _has_items(message):
                yield from self.items(message)
            case "assistant" if contents:
                yield AiMessage(text, attributes=_about(message))
            case "user" | "assistant":
                self.lose("a message without content")
            case role:
                raise unknown("role", role, ("system", "user", "assistant"))

    def items(self, message: JsonMap) -> Iterator[ChatMessage]:
        """Yield the messages of an answer's items: thoughts, tool calls, their results,
        and texts.
        """
        read = openai_responses.FORMAT.parse([*map(_item, dicts_in(message, "output"))], ())
        for each in read.messages:
            yield with_attributes(each, _about(message))
        self.losses += (Loss(self._place, each.what, self._turn) for each in read.losses)


def _item(item: JsonMap) -> JsonDict:
    """Return an item in the shape of the Responses API. Open WebUI writes thoughts in another
    shape.
    """
    if type_in(item) != "reasoning":
        return {**item}
    parts = [*dicts_in(item, "summary"), *dicts_in(item, "content")]
    texts = [part["text"] for part in parts if isinstance(part.get("text"), str)]
    return {
        **item,
        "summary": [{"type": "summary_text", "text": t} for t in texts],
        "content": None,
    }


def _contents(message: JsonMap) -> Iterator[Content]:
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


def _about(message: JsonMap) -> JsonDict:
    known = {name: message.get(name) for name in ("id", "timestamp", "model")}
    return {NAME: {name: each for name, each in known.items() if each is not None}}


def _is_empty(value: JsonValue) -> bool:
    chat = dict_in(value, "chat")
    return (
        bool(chat) and dict_in(chat, "history").get("messages") == {} and not chat.get("messages")
    )


FORMAT = format_of_tree(NAME, find, _Reader, _content_of, _is_empty)
