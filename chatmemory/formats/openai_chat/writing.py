"""Messages written as OpenAI's chat completions take them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from chatmemory.core.contents import (
    Audio,
    AudioContent,
    Content,
    ImageContent,
    Media,
    PdfFileContent,
    TextContent,
)
from chatmemory.core.messages import (
    AiMessage,
    ChatMessage,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
)
from chatmemory.formats.conversion import Writer
from chatmemory.formats.format import Rendered, Rendering
from chatmemory.formats.openai_chat.details import DETAILS


def render(messages: Sequence[ChatMessage]) -> Rendered:
    return _Writer(_call_ids(messages)).write_all(messages)


def render_each(messages: Iterable[ChatMessage]) -> Rendering:
    return _Writer(_call_ids(messages)).write_each(messages)


def _call_ids(messages: Iterable[ChatMessage]) -> frozenset[str]:
    calls = (c for m in messages if isinstance(m, AiMessage) for c in m.tool_execution_requests)
    return frozenset(call.id for call in calls if call is not None and call.id)


class _Writer(Writer):
    def write(self, message: ChatMessage) -> Iterator[dict[str, Any]]:
        match message:
            case SystemMessage():
                yield {"role": "system", "content": message.text}
            case UserMessage():
                self.calls.interrupted()
                name = {"name": message.name} if message.name else {}
                yield {"role": "user", "content": self.contents(message.contents), **name}
            case AiMessage():
                yield self.assistant(message)
            case ToolExecutionResultMessage():
                yield self.result(message)

    def assistant(self, message: AiMessage) -> dict[str, Any]:
        value: dict[str, Any] = {"role": "assistant", "content": message.text}
        calls = self.requests(message)
        if calls:
            value["tool_calls"] = [self.call(call) for call in calls]
        return value

    def call(self, call: ToolExecutionRequest) -> dict[str, Any]:
        function = {"name": call.name or "", "arguments": call.arguments or ""}
        return {
            "id": self.calls.opened(call.id, call.name),
            "type": "function",
            "function": function,
        }

    def result(self, message: ToolExecutionResultMessage) -> dict[str, Any]:
        if message.is_error:
            self.lose("that the result is an error")
        texts = [part.text for part in message.contents if isinstance(part, TextContent)]
        if len(texts) < len(message.contents):
            self.lose("contents of a result that are not text")
        if len(texts) > 1:
            self.lose("how the text is divided into parts")
        id, known = self.calls.answered(message.id)
        said = message.tool_name if message.tool_name != known else None
        name = {"name": said} if said else {}
        return {"role": "tool", "tool_call_id": id or "", "content": "\n".join(texts), **name}

    def contents(self, contents: Sequence[Content | None]) -> Any:
        if len(contents) == 1 and isinstance(contents[0], TextContent):
            return contents[0].text
        return [part for content in contents if (part := self.part(content)) is not None] or ""

    def part(self, content: Content | None) -> dict[str, Any] | None:
        match content:
            case TextContent():
                return {"type": "text", "text": content.text}
            case ImageContent() if content.image.base64_data or content.image.url:
                return self.image(content)
            case AudioContent(audio=Audio() as audio) if audio.base64_data or audio.binary_data:
                kind = (audio.mime_type or "audio/wav").partition("/")[2]
                data = audio.base64_data or audio.binary_data
                return {"type": "input_audio", "input_audio": {"data": data, "format": kind}}
            case PdfFileContent() if content.pdf_file and content.pdf_file.base64_data:
                return {"type": "file", "file": {"file_data": _data_url(content.pdf_file)}}
        self.lose("empty content" if content is None else f"{content.type.lower()} content")
        return None

    def image(self, content: ImageContent) -> dict[str, Any]:
        image, detail = content.image, content.detail_level.value.lower()
        if detail not in DETAILS:
            self.lose(f"the detail level {detail!r}")
            detail = "high"
        if image.revised_prompt:
            self.lose("the revised prompt of an image")
        url = _data_url(image) or image.url
        if image.url and url != image.url:
            self.lose("the url of an image that is given inline too")
        return {"type": "image_url", "image_url": {"url": url, "detail": detail}}


def _data_url(media: Media) -> str | None:
    if media.base64_data is None:
        return None
    return f"data:{media.mime_type or 'application/octet-stream'};base64,{media.base64_data}"
