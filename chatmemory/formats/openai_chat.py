"""OpenAI chat completions: `{"role": …, "content": …}` messages.

Source of the shapes: OpenAI's API reference, chat completions, request messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from chatmemory.exceptions import InvalidMessage
from chatmemory.formats.account import beside
from chatmemory.formats.format import Loss, RawTranscript, Response, Transcript
from chatmemory.formats.json_properties import (
    is_list_of,
    list_in,
    name_of,
    object_in,
    part_text,
    plain_values,
    text_in,
    type_in,
    unknown,
)
from chatmemory.formats.parts import PartWriter, data_of, detail_of, media_content, url_of
from chatmemory.formats.readers_and_writers import (
    Reader,
    ReadMessage,
    find_turns,
    format_attribute,
    nothing_in,
    stand_in,
    two_way,
)
from chatmemory.formats.words import Beside
from chatmemory.messages.contents import (
    Audio,
    AudioContent,
    Content,
    ImageContent,
    Media,
    PdfFile,
    PdfFileContent,
    TextContent,
)
from chatmemory.messages.json_values import JsonDict, JsonValue, LibraryValue
from chatmemory.messages.message import (
    AiMessage,
    ChatMessage,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    with_attributes,
)

_NAMES = ("task_id", "trial", "id", "conversation_id")
_PDF = "data:application/pdf;base64,"

# The hosts' names for the model's thoughts: DeepSeek; vLLM and OpenRouter; Ollama; LiteLLM
_THOUGHTS = ("reasoning_content", "reasoning", "thinking", "reasoning_details", "thinking_blocks")
_ASSISTANT = ("tool_calls", "function_call", "refusal", "audio", *_THOUGHTS)
_ROLES = ("system", "developer", "user", "assistant", "tool", "function")


def find(value: JsonValue) -> RawTranscript | None:
    """Return the conversation in a value, or None if the value is in another format.

    The value is in this format if it is one of these:

    - A list of messages, or an object with the list under `messages` or, in files of tau-bench,
      under `traj`. The first message must have a `role`, and `content` or a property of answers
      such as `tool_calls`. Each part of a message must have a `type`.
    - A completion, or a single choice of a completion. Of several choices, the first is read.
    - An answer of Ollama: an object with `message` and `done`.
    """
    if isinstance(value, dict) and is_list_of(value.get("choices"), "message"):
        return _completion(value)
    if isinstance(value, dict) and {"message", "finish_reason", "index"} <= value.keys():
        return _completion({"choices": [value]})  # a choice of a completion
    if isinstance(value, dict) and "done" in value and isinstance(value.get("message"), dict):
        about = {name: each for name, each in value.items() if name != "message"}
        return RawTranscript(None, [Response(value["message"], about)])  # an answer of Ollama
    found = find_turns(value, _are_chat_messages, within=("messages", "traj"), names=_NAMES)
    return replace(found, name=_name(value)) if found and isinstance(value, dict) else found


def _completion(value: JsonDict) -> RawTranscript:
    choice, *others = value["choices"]
    about: JsonDict = {}
    about |= {name: value[name] for name in ("id", "model", "created", "usage") if name in value}
    about |= {name: each for name, each in choice.items() if name in ("finish_reason", "logprobs")}
    losses = [Loss("conversation", f"{len(others)} other choices")] if others else []
    around = {
        **_AROUND.without(choice, "message", *about),
        **_AROUND.without(value, "choices", *about),
    }
    losses += beside(around, (), Transcript(None, ()))
    return RawTranscript(None, [Response(choice["message"], about)], tuple(losses))


# Properties of a completion about the way to the model
_AROUND = Beside(
    texts=("system_fingerprint", "native_finish_reason", "citations", "warnings"),
    wholes=("prompt_filter_results", "content_filter_results", "x_groq", "timings"),
)


def _are_chat_messages(value: JsonValue) -> bool:
    if not is_list_of(value, "role") or "parts" in value[0]:
        return False
    contents = [turn.get("content") for turn in value if isinstance(turn, dict)]
    parts = (part for content in contents if isinstance(content, list) for part in content)
    if any("type" not in part for part in parts if isinstance(part, dict)):
        return False
    return not {"content", *_ASSISTANT}.isdisjoint(value[0])


def _name(value: JsonDict) -> str | None:
    task, trial = name_of(value, "task_id"), name_of(value, "trial")
    if task is not None:
        return task if trial is None else f"{task}-{trial}"
    return name_of(value, "id", "conversation_id")


class _Reader(Reader):
    def read(self, turn: JsonDict) -> Iterator[ChatMessage | ReadMessage]:
        match turn.get("role"):
            case "system" | "developer":
                text = self.text(turn)
                if text is None:
                    raise self.nothing_in(turn)
                yield from self.named(self.system(text), turn)
            case "user":
                self.calls.interrupted()
                contents = self.contents(turn)
                images = [*_images(turn)]
                if contents is None and not images:
                    raise self.nothing_in(turn)
                if images:
                    parts = [TextContent(contents)] if isinstance(contents, str) else contents
                    contents = [*(parts or ()), *images]
                yield UserMessage(contents or "", text_in(turn, "name"))
            case "assistant":
                yield ReadMessage(self.assistant(turn), [_without_parsed(turn)])
            case "tool" | "function":
                yield self.result(turn)
            case role:
                raise unknown("role", role, _ROLES)

    def named(self, read: Iterator[SystemMessage], turn: JsonDict) -> Iterator[ChatMessage]:
        """Yield system messages that keep their name, because OpenAI shows the name to the model
        and counts it.
        """
        name = turn.get("name")
        kept = {self.format: {"name": name}} if isinstance(name, str) else {}
        return (with_attributes(message, kept) if kept else message for message in read)

    def assistant(self, turn: JsonDict) -> AiMessage:
        calls = tuple(self.requests(turn))
        text, refusal = self.text(turn), text_in(turn, "refusal")
        thinking = "\n".join(_thoughts(turn)) or text_in(turn, "reasoning_content")
        audio = turn.get("audio")
        spoken = text_in(audio, "transcript") if isinstance(audio, dict) else None
        text = "\n".join(filter(None, (text, refusal))) or spoken or text
        if text is None and not calls and thinking is None and not _is_null(turn):
            raise self.nothing_in(turn)
        return AiMessage(text, calls, thinking)

    def requests(self, turn: JsonDict) -> Iterator[ToolExecutionRequest]:
        calls = turn.get("tool_calls") or []
        if not isinstance(calls, list):
            raise InvalidMessage("tool_calls must be a list")
        for call in calls:
            call = object_in(call, "a tool call must be an object")
            if call.get("type") == "custom":
                custom = object_in(
                    call.get("custom"), "a custom tool call needs the field custom, an object"
                )
                yield self.request(call, custom, "input")
                continue
            if isinstance(call.get("name"), str) and "function" not in call:
                yield self.request(call, call)  # flat, as evaluation tools write it
                continue
            function = object_in(
                call.get("function"), "a tool call needs the field function, an object"
            )
            yield self.request(call, function)
        if turn.get("function_call") is not None:
            function = object_in(turn["function_call"], "function_call must be an object")
            yield self.request({}, function)

    def request(
        self, call: JsonDict, called: JsonDict, arguments: str = "arguments"
    ) -> ToolExecutionRequest:
        id, name = text_in(call, "id"), text_in(called, "name")
        return self.calls.request(id, name, called.get(arguments))

    def result(self, turn: JsonDict) -> ToolExecutionResultMessage:
        named = text_in(turn, "name", "tool_name")  # the second one is Ollama's
        id = text_in(turn, "tool_call_id")
        if id is None and self.calls.is_open(turn_id := name_of(turn, "id")):
            id = turn_id
        id, name = self.calls.answered(id, named)
        contents = self.contents(turn)
        if contents is None:
            if not _is_null(turn) and turn.get("content") != []:
                raise self.nothing_in(turn)
            contents = ""
        return ToolExecutionResultMessage(id, name, contents)

    def text(self, turn: JsonDict) -> str | None:
        """Return the joined texts of a message's content. None if it has no text."""
        contents = self.contents(turn)
        if contents is None or isinstance(contents, str):
            return contents
        texts = [part.text for part in contents if isinstance(part, TextContent)]
        return "\n".join(texts) if texts else None

    def contents(self, turn: JsonDict) -> str | list[Content] | None:
        """Return the content of a message: a text, or parts as contents. None if there is no
        content.
        """
        content = turn.get("content")
        if content == "" and turn.get("parts"):
            return None
        if content is None or isinstance(content, str):
            return content
        if not isinstance(content, list):
            raise InvalidMessage("content must be a string or a list of parts")
        return [read for part in content if (read := _part(part)) is not None] or None

    def nothing_in(self, turn: JsonDict) -> InvalidMessage:
        """Return the error for a message that has no readable content."""
        content = turn.get("content")
        if isinstance(content, list) and content:
            types = (part.get("type") for part in content)
            return nothing_in("part of its content", "parts of type ", types)
        elsewhere = "; `parts` are of another format" if turn.get("parts") else ""
        return InvalidMessage(f"content is missing{elsewhere}")


def _without_parsed(turn: JsonDict) -> JsonDict:
    """Return an answer without the objects that `parse` and `stream` of the library add to it."""
    sent = {name: value for name, value in turn.items() if name != "parsed"}
    if isinstance(calls := turn.get("tool_calls"), list):
        sent["tool_calls"] = [
            {**call, "function": without(call["function"], "parsed_arguments")}
            if isinstance(call, dict) and "function" in call
            else call
            for call in calls
        ]
    return sent


def without(value: JsonValue, *names: str) -> JsonValue:
    """Return an object without these properties. Any other value is returned unchanged."""
    if not isinstance(value, dict):
        return value
    return {name: each for name, each in value.items() if name not in names}


def _thoughts(turn: JsonDict) -> list[str]:
    """Return the thoughts of an answer, each once. Some hosts repeat a thought in several
    properties.
    """
    places = [turn.get(name) for name in _THOUGHTS]
    parts = turn.get("content")
    parts = parts if isinstance(parts, list) else ()
    places += [part.get("thinking") for part in parts if type_in(part) == "thinking"]  # of Mistral
    found: list[str] = []
    for text in (text for place in places for text in _texts_of_thought(place)):
        if not any(text in each for each in found):
            found.append(text)
    return found


def _texts_of_thought(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield from [value] if value else []
    elif isinstance(value, list):
        for part in value:
            for name in ("text", "summary", "thinking", "content"):
                if isinstance(part, dict) and isinstance(part.get(name), str):
                    yield part[name]


def _images(turn: JsonDict) -> Iterator[Content]:
    """Yield the images that Ollama writes beside the content, as base64 or URLs."""
    for image in list_in(turn, "images"):
        if not isinstance(image, str):
            raise InvalidMessage("an image must be a string")
        is_url = image.startswith(("http://", "https://", "data:"))
        yield media_content("image", image if is_url else None, None if is_url else image, None)


def _part(part: JsonValue) -> Content | None:
    """Return a part as content. None if a message of LangChain4j cannot have such content."""
    part = object_in(part, "a part of the content must be an object")
    match part.get("type"):
        case "text" | "input_text" | "output_text":  # the last two are the Responses API's
            return TextContent(part_text(part))
        case "refusal":
            return TextContent(text_in(part, "refusal") or "")
        case "thinking" | "reference":  # Mistral's; the first is a thought of the answer
            return None
        case "image_url" | "input_image":
            return image_content(part.get("image_url"))
        case "document_url":  # of Mistral
            return PdfFileContent(PdfFile(url=text_in(part, "document_url")))
        case "input_audio":
            return audio_content(
                object_in(part.get("input_audio"), "input_audio must be an object")
            )
        case "file":
            return file_content(object_in(part.get("file"), "file must be an object"))
    return None


def file_content(file: JsonDict) -> Content:
    """Return a file as content: a PDF, or a placeholder text with the file's id, URL or name.

    A file is a PDF if its data begin with `data:application/pdf`, or if its URL ends with ".pdf".
    """
    data, url = text_in(file, "file_data") or "", text_in(file, "file_url")
    if data.startswith(_PDF):
        return PdfFileContent(PdfFile(base64_data=data.removeprefix(_PDF)))
    if url and url.partition("?")[0].lower().endswith(".pdf"):
        return PdfFileContent(PdfFile(url))
    return stand_in("file", text_in(file, "file_id", "file_url", "filename"))


def image_content(value: JsonValue) -> Content:
    image = value if isinstance(value, dict) else {"url": value}
    url = image.get("url")
    if url is not None and not isinstance(url, str):
        raise InvalidMessage("the url of an image must be a string")
    if not url:
        raise InvalidMessage("an image needs the field url")
    return media_content("image", url, None, None, image.get("detail"))


def _is_null(turn: JsonDict) -> bool:
    """Return whether a message has the property `content` with the value null."""
    return "content" in turn and turn["content"] is None and not turn.get("parts")


def audio_content(audio: JsonDict) -> AudioContent:
    data, kind = text_in(audio, "data"), text_in(audio, "format")
    return AudioContent(Audio(base64_data=data, mime_type=f"audio/{kind}" if kind else None))


# Writing


class _Writer(PartWriter):
    format = "openai_chat"
    cannot_say = ("thinking", "is_error")

    def system(self, message: SystemMessage) -> Iterator[JsonDict]:
        kept = format_attribute(message, self.format).get("name")
        name = {"name": kept} if isinstance(kept, str) else {}
        yield {"role": "system", "content": message.text, **name}

    def user(self, message: UserMessage) -> Iterator[JsonDict]:
        name = {"name": message.name} if message.name else {}
        yield {"role": "user", "content": self.text_or_parts(message.contents), **name}

    def answer(self, message: AiMessage) -> Iterator[JsonDict]:
        calls = [self.call(call) for call in self.calls_of(message)]
        more = {"tool_calls": calls} if calls else {}
        yield {"role": "assistant", "content": message.text, **more}

    def call(self, call: ToolExecutionRequest) -> JsonDict:
        function = {"name": call.name, "arguments": call.arguments or ""}
        return {"id": call.id, "type": "function", "function": function}

    def result(self, message: ToolExecutionResultMessage) -> Iterator[JsonDict]:
        texts = [part for part in message.contents if isinstance(part, TextContent)]
        if len(texts) < len(message.contents):
            self.lose("contents of a result that are not text")
        id, name = self.answered(message)
        content = self.text_or_parts(texts)
        yield {"role": "tool", "tool_call_id": id, "content": content, **name}

    def media(self, content: Content, kind: str, media: Media) -> JsonDict | None:
        data = data_of(media)
        match content:
            case ImageContent():
                return {"type": "image_url", "image_url": url_and_detail(content)}
            case AudioContent() if data:
                kind = (media.mime_type or "audio/wav").partition("/")[2]
                return {"type": "input_audio", "input_audio": {"data": data, "format": kind}}
            case PdfFileContent() if data:
                return {"type": "file", "file": {"file_data": url_of(media)}}
        return None


def url_and_detail(content: ImageContent) -> JsonDict:
    """Return the URL and the detail level of an image, as OpenAI's API expects them."""
    return {"url": url_of(content.image), "detail": detail_of(content)}


# Objects of the library


def plain(value: LibraryValue) -> JsonValue:
    """Return objects of OpenAI's library as JSON values. Properties that the library does not send
    to the API, such as `parsed`, are left out.
    """
    return plain_values(value, _as_sent)


def _as_sent(value: LibraryValue) -> JsonValue:
    # Its helpers put values into fields whose types do not allow them: Pydantic would warn.
    return value.model_dump(
        mode="json", exclude_unset=True, exclude=_not_sent(value), warnings=False
    )


_PARSED = ("parsed", "parsed_arguments")  # the chat classes do not mark them


def _not_sent(value: LibraryValue) -> dict[int | str, object]:
    """Return the properties that are not sent, for an object or a list at every level. The result
    is Pydantic's `exclude`.
    """
    if isinstance(value, list | tuple):
        return {place: found for place, each in enumerate(value) if (found := _not_sent(each))}
    fields = getattr(type(value), "model_fields", None)
    if fields is None:
        return {}
    inner = {name: found for name, each in value if (found := _not_sent(each))}
    marked = getattr(value, "__api_exclude__", None) or ()
    of_parts = marked if isinstance(marked, Mapping) else {}
    own = [name for name in (*marked, *_PARSED) if name in fields and name not in of_parts]
    own += [name for name in value.model_extra or () if name == "index"]  # a stream's calls
    return {**of_parts, **inner, **dict.fromkeys(own, True)}


FORMAT = two_way(find, _Reader, _Writer, plain=plain)
