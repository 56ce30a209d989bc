"""OpenAI chat completions: `{"role": …, "content": …}` messages.

Source of the shapes: OpenAI's API reference, chat completions, request messages.
"""

from __future__ import annotations

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
    arguments_text,
    is_list_of,
    name_of,
    objects,
    text_or_none,
    unread,
)

NAME = "openai_chat"

_LISTS = ("messages", "traj")
_NAMES = ("task_id", "trial", "id", "conversation_id")
_DETAILS = {"low": DetailLevel.LOW, "high": DetailLevel.HIGH, "auto": DetailLevel.AUTO}
_PDF = "data:application/pdf;base64,"

# What is read of each message and of each part; anything else is a loss.
_READ = {
    "system": ("role", "content"),
    "developer": ("role", "content"),
    "user": ("role", "content", "name"),
    "assistant": (
        "role",
        "content",
        "tool_calls",
        "function_call",
        "refusal",
        "audio",
        "reasoning_content",
    ),
    "tool": ("role", "content", "tool_call_id", "name"),
    "function": ("role", "content", "tool_call_id", "name"),
}


def find(value: Any) -> RawTranscript | None:
    """A list of messages, or an object that holds one under `messages` (tau-bench: `traj`)."""
    if is_list_of(value, "role"):
        return RawTranscript(None, value)
    if isinstance(value, dict):
        for key in _LISTS:
            if is_list_of(value.get(key), "role"):
                losses = tuple(unread("conversation", value, (key, *_NAMES)))
                return RawTranscript(_name(value), value[key], losses)
    return None


def _name(value: dict[str, Any]) -> str | None:
    task, trial = name_of(value, "task_id"), name_of(value, "trial")
    if task is not None:
        return task if trial is None else f"{task}-{trial}"
    return name_of(value, "id", "conversation_id")


def parse(turns: Sequence[Any]) -> Transcript:
    """Raises UnreadableTranscript, naming the message."""
    reader = _Reader(_ids(turns))
    messages = []
    for index, turn in objects(turns):
        try:
            message = reader.read(index, turn)
        except InvalidMessage as error:
            raise UnreadableTranscript(index, str(error)) from error
        if message is not None:
            messages.append(message)
    return Transcript(None, tuple(messages), tuple(reader.losses))


def _ids(turns: Sequence[Any]) -> frozenset[str]:
    """The ids that calls have; only lists and objects are looked into, reading checks the rest."""
    lists = (turn.get("tool_calls") for turn in turns if isinstance(turn, dict))
    calls = (call for each in lists if isinstance(each, list) for call in each)
    ids = (call.get("id") for call in calls if isinstance(call, dict))
    return frozenset(id for id in ids if isinstance(id, str))


class _Reader:
    def __init__(self, taken: frozenset[str]) -> None:
        self.calls = Calls(taken)
        self.losses: list[Loss] = []

    def read(self, index: int, turn: dict[str, Any]) -> ChatMessage | None:
        self.index = index
        role = turn.get("role")
        if not isinstance(role, str) or role not in _READ:
            raise UnreadableTranscript(index, f"unknown role {role!r}: one of {', '.join(_READ)}")
        self.losses += unread(f"message {index + 1}", turn, _READ[role])
        match role:
            case "system" | "developer":
                return self.system(turn)
            case "user":
                self.calls.interrupted()
                name = text_or_none(turn.get("name"), index, "name")
                return UserMessage(self.contents(turn.get("content")) or "", name)
            case "assistant":
                return self.assistant(turn)
        return self.result(turn)

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
        refusal = text_or_none(turn.get("refusal"), self.index, "refusal")
        if refusal:
            self.lose("a refusal beside the text" if text else "that the answer was a refusal")
            text = text or refusal
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
        function = turn.get("function_call")
        if function is not None and not isinstance(function, dict):
            raise UnreadableTranscript(self.index, "function_call must be an object")
        if function:
            yield self.request(None, function)

    def request(self, id: str | None, function: dict[str, Any]) -> ToolExecutionRequest:
        name = text_or_none(function.get("name"), self.index, "name")
        arguments = arguments_text(function.get("arguments"))
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
        if len(texts) > 1:
            self.lose("how the text is divided into parts")
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
                self.lose("that the answer was a refusal")
                return TextContent(text_or_none(part.get("refusal"), self.index, "refusal") or "")
            case "image_url":
                return self.image(part.get("image_url"))
            case "input_audio":
                return self.audio(self.inner(part, "input_audio"))
            case "file":
                return self.file(self.inner(part, "file"))
        self.lose(f"a part of type {part.get('type')!r}")
        return None

    def inner(self, part: dict[str, Any], name: str) -> dict[str, Any]:
        value = part.get(name)
        if not isinstance(value, dict):
            raise UnreadableTranscript(self.index, f"{name} must be an object")
        return value

    def audio(self, audio: dict[str, Any]) -> AudioContent:
        data = text_or_none(audio.get("data"), self.index, "data")
        kind = text_or_none(audio.get("format"), self.index, "format")
        mime_type = f"audio/{kind}" if kind else None
        return AudioContent(Audio(base64_data=data, mime_type=mime_type))

    def file(self, file: dict[str, Any]) -> PdfFileContent | None:
        data = text_or_none(file.get("file_data"), self.index, "file_data") or ""
        if not data.startswith(_PDF):
            self.lose("a file that is no inline PDF")
            return None
        if file.get("filename"):
            self.lose("the name of a file")
        return PdfFileContent(PdfFile(base64_data=data.removeprefix(_PDF)))

    def image(self, given: Any) -> ImageContent:
        image = given if isinstance(given, dict) else {"url": given}
        url = text_or_none(image.get("url"), self.index, "the url of an image")
        if not url:
            raise UnreadableTranscript(self.index, "an image needs a url")
        asked = image.get("detail") or "auto"
        detail = _DETAILS.get(asked) if isinstance(asked, str) else None
        if detail is None:
            self.lose(f"the detail level {asked!r}")
            detail = DetailLevel.AUTO
        head, found, data = url.partition(";base64,")
        if url.startswith("data:") and found:
            return ImageContent(Image(base64_data=data, mime_type=head[5:]), detail)
        return ImageContent(Image(url=url), detail)


def render(messages: Sequence[ChatMessage]) -> Rendered:
    writer = _Writer(_given_ids(messages))
    values = [value for i, m in enumerate(messages) if (value := writer.write(i, m)) is not None]
    return Rendered(values, tuple(writer.losses))


def _given_ids(messages: Sequence[ChatMessage]) -> frozenset[str]:
    calls = (c for m in messages if isinstance(m, AiMessage) for c in m.tool_execution_requests)
    return frozenset(call.id for call in calls if call is not None and call.id)


class _Writer:
    def __init__(self, taken: frozenset[str]) -> None:
        self.calls = Calls(taken)
        self.losses: list[Loss] = []

    def write(self, index: int, message: ChatMessage) -> dict[str, Any] | None:
        self.index = index
        if getattr(message, "attributes", None) and not isinstance(message, CustomMessage):
            self.lose("attributes")
        match message:
            case SystemMessage():
                return {"role": "system", "content": message.text}
            case UserMessage():
                self.calls.interrupted()
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
        if len(calls) < len(message.tool_execution_requests):
            self.lose("an empty tool call")
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
            self.lose("contents of a result that are no text")
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
        if detail not in _DETAILS:
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
