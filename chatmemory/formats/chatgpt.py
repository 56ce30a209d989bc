"""ChatGPT's export, conversations.json. This format is only read.

{"conversation_id": …, "current_node": …, "mapping": {id: {"parent": …, "message": {…}}, …}}

- A node may have no message.
- A message of the model whose `recipient` is a tool is a tool call. If the call runs code, the code
  is its only argument.
- Thoughts belong to the answer after them.
- Nodes that ChatGPT's page hides are read if they have text. The user's settings become a system
  message.

Source of the shapes: public descriptions of the export. OpenAI does not document the export.
"""

from __future__ import annotations

from collections.abc import Iterator

from chatmemory.formats.format import RawTranscript
from chatmemory.formats.json_properties import (
    dict_in,
    dicts_in,
    json_object,
    list_in,
    name_of,
    object_in,
    text_in,
    unknown,
)
from chatmemory.formats.readers_and_writers import Reader, stand_in
from chatmemory.formats.trees import format_of_tree, nodes_of
from chatmemory.formats.words import Beside
from chatmemory.messages.contents import Content, TextContent
from chatmemory.messages.json_values import JsonDict, JsonMap, JsonValue
from chatmemory.messages.message import (
    AiMessage,
    ChatMessage,
    ToolExecutionResultMessage,
    UserMessage,
)

NAME = "chatgpt"
# The properties of a content that have text, besides its parts
_TEXTS = (
    *("text", "result", "summary", "content", "title", "user_profile", "user_instructions"),
    *("model_set_context", "repository", "assets"),
)
_SETTINGS = ("user_editable_context", "model_editable_context")
_NOT_SAID = Beside(
    texts=("content_type", "language", "response_format_name", "source_analysis_msg_id")
)
_THOUGHTS = ("thoughts", "reasoning_recap")


def find(value: JsonValue) -> RawTranscript | None:
    mapping = value.get("mapping") if isinstance(value, dict) else None
    if not isinstance(mapping, dict) or not mapping:
        return None
    if not all(isinstance(node, dict) and "message" in node for node in mapping.values()):
        return None
    messages = [node["message"] for node in mapping.values() if node["message"]]
    if messages and not any(dict_in(each, "author") for each in messages):
        return None  # DeepSeek's export has such trees, too
    values = {id: node.get("message") for id, node in mapping.items()}
    parents = {id: node.get("parent") for id, node in mapping.items()}
    nodes = nodes_of(values, parents, value.get("current_node"))
    return RawTranscript(name_of(value, "conversation_id", "id"), nodes)


def _content_of(message: JsonValue) -> JsonValue:
    if not isinstance(message, dict):
        return message
    said = _NOT_SAID.without(message.get("content"))
    author = Beside().without(message.get("author"))
    return {"content": said, "author": author, **Beside().without(message, "content", "author")}


class _Reader(Reader):
    def __init__(self) -> None:
        super().__init__()
        self._thoughts: list[str] = []

    def read(self, turn: JsonValue) -> Iterator[ChatMessage]:
        if turn is None:
            return
        message = object_in(turn, "a message must be an object")
        content = dict_in(message, "content")
        kind, contents = content.get("content_type"), _contents(content)
        files = dicts_in(dict_in(message, "metadata"), "attachments")
        contents += [stand_in("file", text_in(each, "name", "id")) for each in files]
        text = "\n".join(each.text for each in contents if isinstance(each, TextContent))
        if not contents:
            if kind not in (None, "text", "multimodal_text", "code", *_THOUGHTS):
                self.lose(f"content of type {kind!r}")
            return
        match dict_in(message, "author").get("role"):
            case "system" | "developer":
                yield from self.system(text)
            case "user" if kind in _SETTINGS:
                yield from self.system(text)
            case "user":
                self.calls.interrupted()
                yield UserMessage(contents, attributes=self.about(message))
            case "assistant" if kind in _THOUGHTS:
                self._thoughts.append(text)
            case "assistant":
                yield self.answer(message, text)
            case "tool":
                name = text_in(dict_in(message, "author"), "name")
                about = self.about(message)
                answered = self.calls.answered(None, name)
                is_error = True if kind == "system_error" else None
                yield ToolExecutionResultMessage(*answered, contents, is_error, about)
            case role:
                raise unknown("role", role, ("system", "user", "assistant", "tool"))

    def answer(self, message: JsonMap, text: str) -> AiMessage:
        thinking = "\n".join(self._thoughts) or None
        self._thoughts = []
        to, about = text_in(message, "recipient"), self.about(message)
        if to in (None, "", "all"):
            return AiMessage(text, (), thinking, about)
        is_code = dict_in(message, "content").get("content_type") == "code"
        arguments = json_object(text) or {"code" if is_code else "input": text}
        return AiMessage(None, (self.calls.request(None, to, arguments),), thinking, about)

    def _messages(self, after: JsonValue) -> Iterator[ChatMessage]:
        yield from super()._messages(after)
        if self._thoughts:  # of an answer that did not come
            yield AiMessage(None, (), "\n".join(self._thoughts))

    def about(self, message: JsonMap) -> JsonDict:
        known = {name: message.get(name) for name in ("id", "create_time")}
        known["model"] = dict_in(message, "metadata").get("model_slug")
        return {NAME: {name: each for name, each in known.items() if each is not None}}


def _contents(content: JsonMap) -> list[Content]:
    """Return the contents of a node's message, the parts first. An empty message has no
    contents.
    """
    parts = [*list_in(content, "parts"), *list_in(content, "context_parts")]
    found = [each for part in parts for each in _part(part)]
    texts = [content.get(name) for name in _TEXTS]
    found += [TextContent(text) for text in texts if isinstance(text, str) and text]
    for thought in dicts_in(content, "thoughts"):
        thoughts = (thought.get(name) for name in ("summary", "content"))
        found += [TextContent(text) for text in thoughts if isinstance(text, str) and text]
    return found


def _part(part: JsonValue) -> Iterator[Content]:
    if isinstance(part, str):
        if part:
            yield TextContent(part)
        return
    if not isinstance(part, dict):
        return
    if isinstance(part.get("text"), str) and part["text"]:
        yield TextContent(part["text"])
    pointer = part.get("asset_pointer")
    if isinstance(pointer, str):
        kind = str(part.get("content_type", "")).partition("_")[0]
        yield stand_in(kind or "file", pointer)
    prompt = dict_in(dict_in(part, "metadata"), "dalle").get("prompt")
    if isinstance(prompt, str) and prompt:
        yield TextContent(prompt)


def _is_empty(value: JsonValue) -> bool:
    nodes = [*value["mapping"].values()] if dict_in(value, "mapping") else []
    return bool(nodes) and not any(dict_in(node, "message") for node in nodes)


FORMAT = format_of_tree(NAME, find, _Reader, _content_of, _is_empty)
