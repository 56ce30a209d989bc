"""Markdown: a transcript for people. This format is only written.

Messages become block quotes. Tool calls and results become fenced code. So no text can be mistaken
for another message.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from chatmemory.exceptions import UnreadableTranscript
from chatmemory.formats.format import Format, RawTranscript, Rendering, Transcript
from chatmemory.formats.readers_and_writers import Writer
from chatmemory.messages.codec import decoded
from chatmemory.messages.contents import Content, TextContent, content_text
from chatmemory.messages.json_values import JsonDict, JsonValue
from chatmemory.messages.message import (
    AiMessage,
    ChatMessage,
    SystemMessage,
    ToolExecutionResultMessage,
    UserMessage,
)
from chatmemory.patterns import declared_pattern

_BACKTICKS = declared_pattern("`+")
_LINE_BREAK = declared_pattern(r"\r\n|[\r\n]")


def find(value: JsonValue) -> RawTranscript | None:
    return None


def parse(turns: Sequence[JsonValue], after: Iterable[ChatMessage] = ()) -> Transcript:
    raise UnreadableTranscript(
        -1,
        "the format markdown can only be written, for people: import a file in a different format",
    )


def render(messages: Iterable[ChatMessage]) -> Rendering:
    written = _Writer().write_each(messages)
    texts = (value["text"] for value in written.values)
    return Rendering(texts, written.losses, is_text=True)


class _Writer(Writer):
    def write(self, message: ChatMessage) -> Iterator[JsonDict]:
        yield {"text": "\n\n".join(self.blocks(message)) + "\n\n"}

    def blocks(self, message: ChatMessage) -> Iterator[str]:
        match message:
            case SystemMessage():
                yield "## System"
                yield _quoted(message.text)
            case UserMessage():
                yield f"## User {_code(message.name)}" if message.name else "## User"
                yield from map(_quoted, self.texts(message.contents))
            case AiMessage():
                yield "## Assistant"
                yield from self.spoken(message)
            case ToolExecutionResultMessage():
                what = "## Error" if message.is_error else "## Result"
                yield _named(what, message.tool_name, message.id)
                yield from map(_fenced, self.texts(message.contents))

    def spoken(self, message: AiMessage) -> Iterator[str]:
        if message.thinking:
            yield "Thinking:"
            yield _quoted(message.thinking)
            yield "Answer:"
        if message.text:
            yield _quoted(message.text)
        for call in message.tool_execution_requests:
            if call is None:
                self.lose("an empty tool call")
                continue
            yield _named("Call", call.name, call.id)
            yield _fenced(call.arguments or "")

    def texts(self, contents: Sequence[Content | None]) -> Iterator[str]:
        """Yield the texts of contents. For an image or a file, yield its name."""
        for content in contents:
            if content is None:
                self.lose("empty content")
            elif not isinstance(content, TextContent):
                self.lose(f"{content.type.lower()} content: only its name is written")
            yield content_text(content)


def _named(what: str, *names: str | None) -> str:
    return " ".join([what, *(_code(name) for name in names if name)])


def _code(name: str) -> str:
    """Return a name as inline code."""
    fence = _fence(name, 1)
    space = " " if "`" in name else ""
    return f"{fence}{space}{_LINE_BREAK.sub(' ', name)}{space}{fence}"


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip(" ") for line in _LINE_BREAK.split(text))


def _fenced(text: str) -> str:
    fence = _fence(text, 3)
    kind = "json" if isinstance(decoded(text), dict | list) else ""
    return f"{fence}{kind}\n{text}\n{fence}"


def _fence(text: str, least: int) -> str:
    """Return a fence of backticks, longer than any row of backticks in the text and at least
    `least` long.
    """
    return "`" * max([least, *(len(found) + 1 for found in _BACKTICKS.findall(text))])


FORMAT = Format("markdown", find, parse, render, is_text=True)
