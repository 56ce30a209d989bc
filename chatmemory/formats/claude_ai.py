"""Claude.ai's export, conversations.json. This format is only read.

{"uuid": …, "chat_messages": [{"uuid": …, "parent_message_uuid": …, "sender": …, …}, …]}

- A message repeats the text of its blocks under `text`, which is read only if no block has a text.
- Text extracted from an attachment becomes text of the user.
- An answer during which tools ran becomes several messages: a tool call, its tool result, and the
  text after it.

Source of the shapes: public descriptions of the export. Anthropic does not document the export.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from chatmemory.formats.format import RawTranscript
from chatmemory.formats.json_properties import (
    arguments_text,
    dicts_in,
    name_of,
    object_in,
    text_in,
    type_in,
    unknown,
)
from chatmemory.formats.parts import runs_of
from chatmemory.formats.readers_and_writers import Reader, answer_of, stand_in
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

NAME = "claude_ai"
_SILENT = ("token_budget", "flag")


def find(value: JsonValue) -> RawTranscript | None:
    messages = dicts_in(value, "chat_messages")
    if not messages or not all("sender" in each for each in messages):
        return None
    ids = [name_of(each, "uuid") or str(n) for n, each in enumerate(messages)]
    values = dict(zip(ids, messages, strict=True))
    parents = {id: each.get("parent_message_uuid") for id, each in values.items()}
    if not any("parent_message_uuid" in each for each in messages):
        parents = dict(zip(ids, [None, *ids], strict=False))  # older files are lists
    nodes = nodes_of(values, parents, value.get("current_leaf_message_uuid"))
    return RawTranscript(name_of(value, "uuid"), nodes)


def _content_of(message: JsonValue) -> JsonValue:
    return _BESIDE.without(message) if isinstance(message, dict) else None


_BESIDE = Beside(texts=("input_mode",), wholes=("files_v2", "sync_sources", "feedback"))


class _Reader(Reader):
    def read(self, turn: JsonValue) -> Iterator[ChatMessage]:
        message = object_in(turn, "a message must be an object")
        blocks = dicts_in(message, "content")
        if not any(type_in(each) == "text" and each.get("text") for each in blocks):
            text = text_in(message, "text")
            blocks = [*blocks, {"type": "text", "text": text}] if text else blocks
        match message.get("sender"):
            case "human":
                self.calls.interrupted()
                contents: list[Content] = []
                contents += (each for block in blocks for each in self.contents(block))
                contents += _attached(message)
                if contents:
                    yield UserMessage(contents, attributes=self.about(message))
                else:
                    self.lose("a message without content")
            case "assistant":
                yield from self.assistant(message, blocks)
            case sender:
                raise unknown("sender", sender, ("human", "assistant"))

    def contents(self, block: JsonDict) -> Iterator[TextContent]:
        texts = [block.get(name) for name in ("title", "text")]
        found = [TextContent(text) for text in texts if isinstance(text, str) and text]
        yield from found
        if not found and type_in(block) not in ("text", *_SILENT):
            self.lose(f"a block of type {type_in(block)!r}")

    def assistant(self, message: JsonMap, blocks: list[JsonDict]) -> Iterator[ChatMessage]:
        about = self.about(message)
        for run in runs_of(blocks, lambda block: type_in(block) == "tool_result"):
            if type_in(run[0]) == "tool_result":
                yield self.result(run[0])
            else:
                yield self.answer(run, about)
        if not blocks:
            self.lose("an answer without content")
        for each in _attached(message):
            yield AiMessage(each.text)

    def answer(self, blocks: Iterable[JsonDict], about: JsonDict) -> AiMessage:
        texts: list[str] = []
        thoughts, calls = [], []
        for block in blocks:
            match type_in(block):
                case "thinking":
                    thoughts.append(text_in(block, "thinking"))
                case "tool_use":
                    id, name = text_in(block, "id"), text_in(block, "name")
                    calls.append(self.calls.request(id, name, block.get("input")))
                case _:
                    texts += [each.text for each in self.contents(block)]
        return answer_of([*filter(None, texts)], calls, thoughts, about)

    def result(self, block: JsonDict) -> ToolExecutionResultMessage:
        id, name = text_in(block, "tool_use_id"), text_in(block, "name")
        content = block.get("content")
        parts = content if isinstance(content, list) else [content] if content else []
        contents = [TextContent(_text_of(part)) for part in parts]
        is_error = True if block.get("is_error") else None
        answered = self.calls.answered(id, name)
        return ToolExecutionResultMessage(*answered, contents or "", is_error)

    def about(self, message: JsonMap) -> JsonDict:
        known = {name: message.get(name) for name in ("uuid", "created_at")}
        return {NAME: {name: each for name, each in known.items() if each is not None}}


def _text_of(part: JsonValue) -> str:
    """Return a part of a tool result as text. If the part has more than a text, return it as JSON
    text.
    """
    if isinstance(part, dict) and type_in(part) == "text" and isinstance(part.get("text"), str):
        return str(part["text"])
    return arguments_text(part) or ""


def _attached(message: JsonMap) -> list[TextContent]:
    found = []
    for each in dicts_in(message, "attachments"):
        mark = stand_in("file", text_in(each, "file_name")).text
        text = text_in(each, "extracted_content")
        found.append(TextContent(f"{mark}\n{text}" if text else mark))
    files = {id(each): each for name in ("files", "files_v2") for each in dicts_in(message, name)}
    names = dict.fromkeys(text_in(each, "file_name", "file_uuid") for each in files.values())
    return found + [stand_in("file", name) for name in names]


def _is_empty(value: JsonValue) -> bool:
    return isinstance(value, dict) and "uuid" in value and value.get("chat_messages") == []


FORMAT = format_of_tree(NAME, find, _Reader, _content_of, _is_empty)
