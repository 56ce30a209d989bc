"""OpenAI chat completions: `{"role": …, "content": …}` messages.

Source of the shapes: OpenAI's API reference, chat completions, request messages.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from chatmemory.core.exceptions import InvalidMessage, UnreadableTranscript
from chatmemory.core.messages import (
    AiMessage,
    Audio,
    AudioContent,
    ChatMessage,
    Content,
    CustomMessage,
    DetailLevel,
    Image,
    ImageContent,
    Media,
    PdfFile,
    PdfFileContent,
    SystemMessage,
    TextContent,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
)
from chatmemory.formats.base import (
    Calls,
    Loss,
    RawTranscript,
    Rendered,
    Transcript,
    is_list_of,
    objects,
    text_or_none,
)

NAME = "openai_chat"

_LISTS = ("messages", "traj")
_DETAILS = {"low": DetailLevel.LOW, "high": DetailLevel.HIGH, "auto": DetailLevel.AUTO}


def find(value: Any) -> RawTranscript | None:
    """A list of messages, or an object that holds one under `messages` (tau-bench: `traj`)."""
    if is_list_of(value, "role"):
        return RawTranscript(None, value)
    if isinstance(value, dict):
        for key in _LISTS:
            if is_list_of(value.get(key), "role"):
                return RawTranscript(_name(value), value[key])
    return None


def _name(value: dict[str, Any]) -> str | None:
    if "task_id" in value:
        return "-".join(str(value[key]) for key in ("task_id", "trial") if key in value)
    name = value.get("id", value.get("conversation_id"))
    return None if name is None else str(name)


def parse(turns: Sequence[Any]) -> Transcript:
    """Raises UnreadableTranscript, naming the message."""
    reader = _Reader()
    messages = []
    for index, turn in objects(turns):
        try:
            message = reader.read(index, turn)
        except InvalidMessage as error:
            raise UnreadableTranscript(index, str(error)) from error
        if message is not None:
            messages.append(message)
    return Transcript(None, tuple(messages), tuple(reader.losses))


class _Reader:
    def __init__(self) -> None:
        self.calls = Calls()
        self.losses: list[Loss] = []

    def read(self, index: int, turn: dict[str, Any]) -> ChatMessage | None:
        self.index = index
        match turn.get("role"):
            case "system" | "developer":
                return self.system(turn)
            case "user":
                name = text_or_none(turn.get("name"), index, "name")
                return UserMessage(self.contents(turn.get("content")) or "", name)
            case "assistant":
                return self.assistant(turn)
            case "tool" | "function":
                return self.result(turn)
        raise UnreadableTranscript(index, f"unknown role {turn.get('role')!r}")

    def lose(self, what: str) -> None:
        self.losses.append(Loss(f"message {self.index + 1}", what))

    def system(self, turn: dict[str, Any]) -> SystemMessage | None:
        text = self.text(turn.get("content"))
        if not text or all(character <= " " for character in text):
            self.lose("a blank system message")
            return None
        return SystemMessage(text)

    def assistant(self, turn: dict[str, Any]) -> AiMessage:
        calls = list(self.requests(turn))
        text = self.text(turn.get("content"))
        if turn.get("refusal"):
            text = text or str(turn["refusal"])
            self.lose("that the answer was a refusal")
        if turn.get("audio"):
            self.lose("an audio answer")
        thinking = text_or_none(turn.get("reasoning_content"), self.index, "reasoning_content")
        return AiMessage(text, tuple(calls), thinking)

    def requests(self, turn: dict[str, Any]) -> Iterator[ToolExecutionRequest]:
        calls = turn.get("tool_calls") or []
        if not isinstance(calls, list):
            raise UnreadableTranscript(self.index, "tool_calls must be a list")
        for call in calls:
            function = call.get("function") if isinstance(call, dict) else None
            if not isinstance(function, dict):
                raise UnreadableTranscript(self.index, "a tool call needs a function")
            yield self.request(text_or_none(call.get("id"), self.index, "id"), function)
        if isinstance(turn.get("function_call"), dict):
            yield self.request(None, turn["function_call"])

    def request(self, id: str | None, function: dict[str, Any]) -> ToolExecutionRequest:
        name = text_or_none(function.get("name"), self.index, "name")
        arguments = function.get("arguments")
        if arguments is not None and not isinstance(arguments, str):
            arguments = json.dumps(arguments, ensure_ascii=False)
        return ToolExecutionRequest(self.calls.opened(id, name), name, arguments)

    def result(self, turn: dict[str, Any]) -> ToolExecutionResultMessage:
        id = text_or_none(turn.get("tool_call_id"), self.index, "tool_call_id")
        name = text_or_none(turn.get("name"), self.index, "name")
        id, name = self.calls.answered(id, name)
        return ToolExecutionResultMessage(id, name, self.contents(turn.get("content")) or "")

    def text(self, content: Any) -> str | None:
        """A text, or the joined texts of content parts; other parts are lost."""
        if content is None or isinstance(content, str):
            return content
        parts = self.contents(content)
        texts = [part.text for part in parts if isinstance(part, TextContent)]
        if len(texts) < len(parts):
            self.lose("parts of the content that are no text")
        return "\n".join(texts)

    def contents(self, content: Any) -> Any:
        """A string as it is; parts as contents."""
        if content is None or isinstance(content, str):
            return content
        if not isinstance(content, list):
            raise UnreadableTranscript(self.index, "content must be a string or a list of parts")
        return [read for part in content if (read := self.part(part)) is not None]

    def part(self, part: Any) -> Content | None:
        if not isinstance(part, dict):
            raise UnreadableTranscript(self.index, "a part of the content must be an object")
        match part.get("type"):
            case "text":
                return TextContent(text_or_none(part.get("text"), self.index, "text") or "")
            case "refusal":
                return TextContent(str(part.get("refusal", "")))
            case "image_url":
                return self.image(part.get("image_url"))
            case "input_audio":
                audio = part.get("input_audio") or {}
                return AudioContent(
                    Audio(base64_data=audio.get("data"), mime_type=f"audio/{audio.get('format')}")
                )
            case "file":
                data = str((part.get("file") or {}).get("file_data") or "")
                if data.startswith("data:application/pdf;base64,"):
                    return PdfFileContent(PdfFile(base64_data=data.partition(",")[2]))
        self.lose(f"a part of type {part.get('type')!r}")
        return None

    def image(self, given: Any) -> ImageContent:
        image = given if isinstance(given, dict) else {"url": given}
        url = str(image.get("url") or "")
        detail = _DETAILS.get(str(image.get("detail")), DetailLevel.AUTO)
        head, found, data = url.partition(";base64,")
        if url.startswith("data:") and found:
            return ImageContent(Image(base64_data=data, mime_type=head[5:]), detail)
        return ImageContent(Image(url=url), detail)


def render(messages: Sequence[ChatMessage]) -> Rendered:
    writer = _Writer()
    values = [value for i, m in enumerate(messages) if (value := writer.write(i, m)) is not None]
    return Rendered(values, tuple(writer.losses))


class _Writer:
    def __init__(self) -> None:
        self.losses: list[Loss] = []

    def write(self, index: int, message: ChatMessage) -> dict[str, Any] | None:
        self.index = index
        if getattr(message, "attributes", None) and not isinstance(message, CustomMessage):
            self.lose("attributes")
        match message:
            case SystemMessage():
                return {"role": "system", "content": message.text}
            case UserMessage():
                name = {"name": message.name} if message.name else {}
                return {"role": "user", "content": self.contents(message.contents), **name}
            case AiMessage():
                return self.assistant(message)
            case ToolExecutionResultMessage():
                return self.result(message)
        self.lose(f"a whole {message.type} message")
        return None

    def lose(self, what: str) -> None:
        self.losses.append(Loss(f"message {self.index + 1}", what))

    def assistant(self, message: AiMessage) -> dict[str, Any]:
        value: dict[str, Any] = {"role": "assistant", "content": message.text}
        if message.thinking:
            self.lose("thinking")
        calls = [call for call in message.tool_execution_requests if call is not None]
        if calls:
            value["tool_calls"] = [self.call(call) for call in calls]
        return value

    def call(self, call: ToolExecutionRequest) -> dict[str, Any]:
        function = {"name": call.name or "", "arguments": call.arguments or ""}
        return {"id": call.id or "", "type": "function", "function": function}

    def result(self, message: ToolExecutionResultMessage) -> dict[str, Any]:
        if message.is_error:
            self.lose("that the result is an error")
        texts = [part.text for part in message.contents if isinstance(part, TextContent)]
        if len(texts) < len(message.contents):
            self.lose("contents of a result that are no text")
        return {"role": "tool", "tool_call_id": message.id or "", "content": "\n".join(texts)}

    def contents(self, contents: Sequence[Content | None]) -> Any:
        if len(contents) == 1 and isinstance(contents[0], TextContent):
            return contents[0].text
        return [part for content in contents if (part := self.part(content)) is not None]

    def part(self, content: Content | None) -> dict[str, Any] | None:
        match content:
            case TextContent():
                return {"type": "text", "text": content.text}
            case ImageContent():
                detail = content.detail_level.value.lower()
                url = _data_url(content.image) or content.image.url or ""
                detail = detail if detail in _DETAILS else "high"
                return {"type": "image_url", "image_url": {"url": url, "detail": detail}}
            case AudioContent() if content.audio and content.audio.base64_data:
                kind = (content.audio.mime_type or "audio/wav").partition("/")[2]
                audio = {"data": content.audio.base64_data, "format": kind}
                return {"type": "input_audio", "input_audio": audio}
            case PdfFileContent() if content.pdf_file and content.pdf_file.base64_data:
                return {"type": "file", "file": {"file_data": _data_url(content.pdf_file)}}
        self.lose("empty content" if content is None else f"{content.type.lower()} content")
        return None


def _data_url(media: Media) -> str | None:
    if media.base64_data is None:
        return None
    return f"data:{media.mime_type or 'application/octet-stream'};base64,{media.base64_data}"
