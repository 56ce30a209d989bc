"""OpenAI chat completions: `{"role": …, "content": …}` messages.

Source of the shapes: OpenAI's API reference, chat completions, request messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from chatmemory.core.contents import (
    Audio,
    AudioContent,
    Content,
    DetailLevel,
    Image,
    ImageContent,
    Media,
    PdfFile,
    PdfFileContent,
    TextContent,
)
from chatmemory.core.exceptions import InvalidMessage
from chatmemory.core.messages import (
    AiMessage,
    ChatMessage,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
)
from chatmemory.formats.conversion import (
    Reader,
    Response,
    Writer,
    arguments_text,
    ids_of_calls,
    is_list_of,
    name_of,
    object_in,
    stand_in,
    text_in,
    unread,
)
from chatmemory.formats.format import Format, Loss, RawTranscript, Rendering, Transcript

DETAILS = {"low": DetailLevel.LOW, "high": DetailLevel.HIGH, "auto": DetailLevel.AUTO}
_LISTS = ("messages", "traj")
_NAMES = ("task_id", "trial", "id", "conversation_id")
_PDF = "data:application/pdf;base64,"

_ASSISTANT = ("tool_calls", "function_call", "refusal", "audio", "reasoning_content")
_ROLES = ("system", "developer", "user", "assistant", "tool", "function")


def find(value: Any) -> RawTranscript | None:
    """Return a list of messages, or an object that holds one under `messages`.

    In the files of tau-bench it is under `traj`. A completion holds one, too: that of its first
    choice. The first message has a role and what such a role says: other formats have roles, too.
    """
    if _are_chat_messages(value):
        return RawTranscript(None, value)
    if isinstance(value, dict):
        if is_list_of(value.get("choices"), "message"):
            return _completion(value)
        for key in _LISTS:
            if _are_chat_messages(value.get(key)):
                losses = tuple(unread("conversation", value, (key, *_NAMES)))
                return RawTranscript(_name(value), value[key], losses)
    return None


def _completion(value: dict[str, Any]) -> RawTranscript:
    choice, *others = value["choices"]
    about: dict[str, Any] = {}
    about |= {name: value[name] for name in ("id", "model", "created", "usage") if name in value}
    about |= {name: each for name, each in choice.items() if name in ("finish_reason", "logprobs")}
    losses = (Loss("conversation", f"{len(others)} other choices"),) if others else ()
    return RawTranscript(None, [Response(choice["message"], about)], losses)


def _are_chat_messages(value: Any) -> bool:
    return is_list_of(value, "role") and not {"content", *_ASSISTANT}.isdisjoint(value[0])


def _name(value: dict[str, Any]) -> str | None:
    task, trial = name_of(value, "task_id"), name_of(value, "trial")
    if task is not None:
        return task if trial is None else f"{task}-{trial}"
    return name_of(value, "id", "conversation_id")


def parse(turns: Sequence[Any], after: Iterable[ChatMessage] = ()) -> Transcript:
    ids = _ids_of_turns(turns) | ids_of_calls(after)
    return _Reader(ids).read_all(turns, after)


def _ids_of_turns(turns: Sequence[Any]) -> frozenset[str]:
    """Return the ids of all calls, whatever else is in the turns: reading checks them later."""
    lists = (turn.get("tool_calls") for turn in turns if isinstance(turn, dict))
    calls = (call for each in lists if isinstance(each, list) for call in each)
    ids = (call.get("id") for call in calls if isinstance(call, dict))
    return frozenset(id for id in ids if isinstance(id, str))


class _Reader(Reader):
    def read(self, turn: Any) -> Iterator[ChatMessage]:
        turn = object_in(turn, "a message must be a JSON object")
        match turn.get("role"):
            case "system" | "developer":
                text = self.text(turn)
                if text is None:
                    raise self.nothing_in(turn)
                yield from self.system(text)
            case "user":
                self.calls.interrupted()
                contents = self.contents(turn)
                if contents is None:
                    raise self.nothing_in(turn)
                yield UserMessage(contents, text_in(turn, "name"))
            case "assistant":
                yield self.assistant(turn)
            case "tool" | "function":
                yield self.result(turn)
            case role:
                raise InvalidMessage(f"unknown role {role!r}: one of {', '.join(_ROLES)}")

    def assistant(self, turn: dict[str, Any]) -> AiMessage:
        calls = tuple(self.requests(turn))
        text, refusal = self.text(turn), text_in(turn, "refusal")
        thinking = text_in(turn, "reasoning_content")
        text = "\n".join(filter(None, (text, refusal))) or text
        if text is None and not calls and thinking is None and not _is_null(turn):
            raise self.nothing_in(turn)
        return AiMessage(text, calls, thinking)

    def requests(self, turn: dict[str, Any]) -> Iterator[ToolExecutionRequest]:
        calls = turn.get("tool_calls") or []
        if not isinstance(calls, list):
            raise InvalidMessage("tool_calls must be a list")
        for call in calls:
            call = object_in(call, "a tool call must be an object")
            if call.get("type") == "custom":
                custom = object_in(call.get("custom"), "a custom tool call needs custom")
                yield self.request(text_in(call, "id"), custom, custom.get("input"))
                continue
            function = object_in(call.get("function"), "a tool call needs a function")
            yield self.request(text_in(call, "id"), function, function.get("arguments"))
        if turn.get("function_call") is not None:
            function = object_in(turn["function_call"], "function_call must be an object")
            yield self.request(None, function, function.get("arguments"))

    def request(
        self, id: str | None, called: dict[str, Any], arguments: Any
    ) -> ToolExecutionRequest:
        name = text_in(called, "name")
        return ToolExecutionRequest(self.calls.opened(id, name), name, arguments_text(arguments))

    def result(self, turn: dict[str, Any]) -> ToolExecutionResultMessage:
        id, name = self.calls.answered(text_in(turn, "tool_call_id"), text_in(turn, "name"))
        contents = self.contents(turn)
        if contents is None:
            if not _is_null(turn) and turn.get("content") != []:
                raise self.nothing_in(turn)
            contents = ""
        return ToolExecutionResultMessage(id, name, contents)

    def text(self, turn: dict[str, Any]) -> str | None:
        """Return the joined texts of a turn's content, None without any."""
        contents = self.contents(turn)
        if contents is None or isinstance(contents, str):
            return contents
        texts = [part.text for part in contents if isinstance(part, TextContent)]
        return "\n".join(texts) if texts else None

    def contents(self, turn: dict[str, Any]) -> str | list[Content] | None:
        """Return the content of a turn, a list of parts as contents; None where nothing is read."""
        content = turn.get("content")
        if content == "" and turn.get("parts"):
            return None
        if content is None or isinstance(content, str):
            return content
        if not isinstance(content, list):
            raise InvalidMessage("content must be a string or a list of parts")
        return [read for part in content if (read := _part(part)) is not None] or None

    def nothing_in(self, turn: dict[str, Any]) -> InvalidMessage:
        """Return the error of a turn that would be an empty message."""
        content = turn.get("content")
        if isinstance(content, list) and content:
            types = ", ".join(dict.fromkeys(repr(part.get("type")) for part in content))
            return InvalidMessage(f"no part of its content can be read: parts of type {types}")
        elsewhere = "; `parts` are of another format" if turn.get("parts") else ""
        return InvalidMessage(f"content is missing{elsewhere}")


def _part(part: Any) -> Content | None:
    """Return a part as content; None for one that LangChain4j's model has no place for."""
    part = object_in(part, "a part of the content must be an object")
    match part.get("type"):
        case "text":
            return TextContent(text_in(part, "text") or "")
        case "refusal":
            return TextContent(text_in(part, "refusal") or "")
        case "thinking" | "reference":  # of Mistral
            return None
        case "image_url":
            return _image(part.get("image_url"))
        case "document_url":  # of Mistral
            return PdfFileContent(PdfFile(url=text_in(part, "document_url")))
        case "input_audio":
            return _audio(object_in(part.get("input_audio"), "input_audio must be an object"))
        case "file":
            return _file(object_in(part.get("file"), "file must be an object"))
    return None


def _file(file: dict[str, Any]) -> Content:
    """Return an inline PDF, or a text that names a file that is not here."""
    data = text_in(file, "file_data") or ""
    if data.startswith(_PDF):
        return PdfFileContent(PdfFile(base64_data=data.removeprefix(_PDF)))
    return stand_in("file", text_in(file, "file_id") or text_in(file, "filename"))


def _image(given: Any) -> ImageContent:
    image = given if isinstance(given, dict) else {"url": given}
    url = image.get("url")
    if url is not None and not isinstance(url, str):
        raise InvalidMessage("the url of an image must be a string")
    if not url:
        raise InvalidMessage("an image needs a url")
    asked = image.get("detail")
    detail = DETAILS.get(asked, DetailLevel.AUTO) if isinstance(asked, str) else DetailLevel.AUTO
    head, found, data = url.partition(";base64,")
    if url.startswith("data:") and found:
        return ImageContent(Image(base64_data=data, mime_type=head[5:]), detail)
    return ImageContent(Image(url=url), detail)


def _is_null(turn: dict[str, Any]) -> bool:
    """Whether a turn says that it has no content."""
    return "content" in turn and turn["content"] is None and not turn.get("parts")


def _audio(audio: dict[str, Any]) -> AudioContent:
    data, kind = text_in(audio, "data"), text_in(audio, "format")
    return AudioContent(Audio(base64_data=data, mime_type=f"audio/{kind}" if kind else None))


# Writing


def render(messages: Iterable[ChatMessage]) -> Rendering:
    return _Writer(ids_of_calls(messages)).write_each(messages)


class _Writer(Writer):
    format = "openai_chat"

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
        texts = [part for part in message.contents if isinstance(part, TextContent)]
        if len(texts) < len(message.contents):
            self.lose("contents of a result that are not text")
        id, known = self.calls.answered(message.id)
        said = message.tool_name if message.tool_name != known else None
        name = {"name": said} if said else {}
        content = self.contents(texts) if texts else ""
        return {"role": "tool", "tool_call_id": id or "", "content": content, **name}

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


_Reader.writer = _Writer
FORMAT = Format("openai_chat", find, parse, render)
