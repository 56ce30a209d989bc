"""Base classes of formats whose messages are made of parts: texts, media, tool calls and
results.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

from chatmemory.exceptions import InvalidMessage
from chatmemory.formats.json_properties import json_object
from chatmemory.formats.readers_and_writers import (
    Reader,
    ReadMessage,
    Writer,
    format_attribute,
    nothing_in,
    stand_in,
)
from chatmemory.messages.contents import (
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
    Video,
    VideoContent,
)
from chatmemory.messages.json_values import JsonDict, JsonList, JsonValue
from chatmemory.messages.message import (
    AiMessage,
    ChatMessage,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
)

PDF = "application/pdf"
_DETAILS = {"low": DetailLevel.LOW, "high": DetailLevel.HIGH, "auto": DetailLevel.AUTO}
_DEFAULTS = {"image": "image/png", "audio": "audio/wav", "video": "video/mp4", "file": PDF}

# Media


def media_content(
    kind: str,
    url: str | None,
    data: str | None,
    mime_type: str | None,
    detail: JsonValue = None,
) -> Content:
    """Return media as content. `kind` is "image", "audio", "video" or "file".

    - A "file" that has the media type of an image, audio or video, such as "image/png", gets that
      kind.
    - Any other file is read as a PDF if its media type is `application/pdf` or None. Else the file
      becomes a placeholder text.
    - Media without data and URL become a placeholder text.
    - `detail` is the detail level of an image: "low" or "high". Any other value is read as "auto".
    """
    head, found, inline = (url or "").partition(";base64,")
    if found and head.startswith("data:"):
        url, data, mime_type = None, inline, mime_type or head[5:]
    if kind == "file" and mime_type and mime_type.partition("/")[0] in _DEFAULTS:
        kind = mime_type.partition("/")[0]
    if not url and not data:
        return stand_in(kind, None)
    match kind:
        case "image":
            return ImageContent(Image(url, data, mime_type), detail_level(detail))
        case "audio":
            return AudioContent(Audio(url, data, mime_type))
        case "video":
            return VideoContent(Video(url, data, mime_type))
    if mime_type not in (None, PDF):
        return stand_in(kind, url or mime_type)
    return PdfFileContent(PdfFile(url, data, mime_type))


def detail_level(detail: JsonValue) -> DetailLevel:
    return _DETAILS.get(str(detail), DetailLevel.AUTO)


def detail_of(content: ImageContent) -> str:
    """Return OpenAI's name for the detail level of an image, such as "low". A level that OpenAI
    does not have becomes "high".
    """
    detail = content.detail_level.value.lower()
    return detail if detail in _DETAILS else "high"


def media_of(content: Content | None) -> tuple[str, Media] | None:
    """Return the kind of a content, such as "image", and its media. None if the content has no
    media, and for media that have neither data nor a URL.
    """
    match content:
        case ImageContent(image=media):
            kind = "image"
        case AudioContent(audio=Media() as media):
            kind = "audio"
        case VideoContent(video=Media() as media):
            kind = "video"
        case PdfFileContent(pdf_file=Media() as media):
            kind = "file"
        case _:
            return None
    return (kind, media) if media.url or data_of(media) else None


def data_of(media: Media) -> str | None:
    """Return the base64 text of media, or None if the media only have a URL."""
    return media.base64_data or getattr(media, "binary_data", None)


def mime_type_of(kind: str, media: Media) -> str:
    """Return the media type of media, or a default for the kind if the type is unknown. Providers
    require a type.
    """
    return media.mime_type or _DEFAULTS[kind]


def url_of(media: Media) -> str | None:
    """Return the URL of media: a `data:` URL if the media have data, else their own URL. None if
    they have neither.
    """
    data, mime_type = data_of(media), media.mime_type or "application/octet-stream"
    return f"data:{mime_type};base64,{data}" if data else media.url


class PartWriter(Writer):
    """Base class that writes contents as parts. A subclass implements `media`. It also overrides
    `text` if its text parts differ from `{"type": "text", "text": …}`.

    `levels` are the detail levels that images can have in the format. With `has_both`, a part can
    have both the URL and the data of media.
    """

    levels: ClassVar[Collection[DetailLevel]] = tuple(_DETAILS.values())  # of images
    has_both: ClassVar[bool] = False  # whether a part can have inline data and a URL

    def text(self, text: str) -> JsonValue:
        """Return a text as a part, or None if the format has no part for it."""
        return {"type": "text", "text": text}

    @abstractmethod
    def media(self, content: Content, kind: str, media: Media) -> JsonValue:
        """Return media as a part, or None if the format has no part for them. `kind` is "image",
        "audio", "video" or "file".
        """

    def parts(self, contents: Iterable[Content | None]) -> JsonList:
        """Return contents as parts. Contents for which the format has no part are losses."""
        return [part for content in contents if (part := self.part(content)) is not None]

    def text_or_parts(self, contents: Sequence[Content | None]) -> JsonValue:
        """Return contents as parts. A single text is returned as a string. Without parts, the
        result is "".
        """
        if len(contents) == 1 and isinstance(contents[0], TextContent):
            return contents[0].text
        return self.parts(contents) or ""

    def part(self, content: Content | None) -> JsonValue:
        if isinstance(content, TextContent):
            return self.text(content.text)
        found = media_of(content)
        part = self.media(content, *found) if content and found else None
        if part is None or found is None:
            self.lose_content(content)
            return None
        self.lose_of_media(content, *found)
        return part

    def lose_of_media(self, content: Content | None, kind: str, media: Media) -> None:
        """Record a loss for each property of media that the format cannot express. Examples are the
        detail level of an image, and a URL beside inline data.
        """
        if isinstance(content, ImageContent):
            if content.detail_level not in self.levels:
                self.lose(f"the detail level {content.detail_level.value.lower()!r}")
            if content.image.revised_prompt:
                self.lose("the revised prompt of an image")
        if media.url and data_of(media) and not self.has_both:
            self.lose(f"the url of {kind} content whose data is also given inline")


# Turns whose parts may belong to several messages
#
# - A turn of the user with results of tools becomes a message for each result, and one for text.
# - A turn of the model with calls of tools that run at the provider, and their results, becomes a
#   message with calls, the results, and a message with the text after them.
#
# All messages of a turn but the first join it, so that writing makes one turn of them again.

Parts = Iterator[tuple[ChatMessage, JsonList]]


def runs_of(
    parts: Iterable[JsonValue], is_result: Callable[[JsonValue], bool]
) -> Iterator[JsonList]:
    """Yield the parts in groups: each tool result alone, and the parts between two results
    together.
    """
    run: JsonList = []
    for part in parts:
        if not is_result(part):
            run.append(part)
            continue
        if run:
            yield run
        yield [part]
        run = []
    if run:
        yield run


class TurnReader(Reader):
    """Base class that reads JSON values whose parts are under the name `within_turn`. A value with
    tool results becomes several messages.
    """

    within_turn: ClassVar[str]

    @staticmethod
    @abstractmethod
    def type_of(part: JsonValue) -> str: ...

    @staticmethod
    @abstractmethod
    def is_result(part: JsonValue) -> bool:
        """Return whether a part is a tool result."""

    @abstractmethod
    def is_model_part(self, part: JsonValue) -> bool:
        """Return whether a part can only come from a model."""

    @abstractmethod
    def result(self, part: JsonValue) -> ToolExecutionResultMessage: ...

    @abstractmethod
    def contents(self, part: JsonValue) -> list[Content]:
        """Return the contents that are read from a part of a user's message. Returns [] if messages
        cannot express the part.
        """

    @abstractmethod
    def ai_message(self, parts: JsonList) -> AiMessage: ...

    def joined(self, turn: JsonDict, found: Parts) -> Iterator[ReadMessage]:
        """Yield the messages that were read from one JSON value, `turn`.

        `found` yields each message with the parts from which it was read. Properties of `turn`
        other than the role and the parts are kept with the first message only.
        """
        name, value = self.within_turn, turn
        for place, (message, parts) in enumerate(found):
            if isinstance(turn.get(name), list):
                value = {**turn, name: parts}
            yield ReadMessage(message, [value], self.joins(message, place > 0))
            turn = {key: turn[key] for key in ("role", name) if key in turn}

    def joins(self, message: ChatMessage, joins: bool) -> bool | None:
        """Return the value of `ReadMessage.joins` for `message`. The argument `joins` says whether
        this message and the previous message were read from one JSON value.

        The result is None if `joins` is what the writer does by default, else `joins`. By default,
        the writer joins two tool results in a row, and no other messages.
        """
        last = self.messages[-1].message if self.messages else None
        are_results = isinstance(last, ToolExecutionResultMessage) and type(last) is type(message)
        return None if joins == are_results else joins

    def user(self, parts: JsonList) -> Parts:
        waiting: JsonList = []
        contents: list[Content] = []
        for part in parts:
            if not self.is_result(part):
                waiting.append(part)
                contents += self.contents(part)
                continue
            if contents:
                yield self.words(contents), waiting
                waiting, contents = [], []
            yield self.result(part), [*waiting, part]
            waiting = []
        if waiting and not contents and len(waiting) < len(parts):
            contents = [stand_in(self.type_of(waiting[0]), None)]
        if contents:
            yield self.words(contents), waiting
        elif waiting or not parts:
            raise self.nothing_in(waiting)

    def words(self, contents: list[Content]) -> UserMessage:
        self.calls.interrupted()
        return UserMessage(contents)

    def assistant(self, parts: JsonList) -> Parts:
        if parts and not any(map(self.is_model_part, parts)):
            raise self.nothing_in(parts)
        for run in runs_of(parts, self.is_result):
            is_result = self.is_result(run[0])
            yield self.result(run[0]) if is_result else self.ai_message(run), run
        if not parts:
            yield self.ai_message([]), []

    def nothing_in(self, parts: Iterable[JsonValue]) -> InvalidMessage:
        """Return the error for a message that has no readable part among `parts`."""
        types = [self.type_of(part) for part in parts]
        if not types:
            return InvalidMessage(f"the field {self.within_turn} is missing or empty")
        return nothing_in(f"part of its {self.within_turn}", "", types)


class TurnWriter(PartWriter):
    """Base class that writes JSON values whose parts are under the name `within_turn`.

    A reader may keep the original types of parts in a message's attributes, under the name of the
    format:

    - In a tool result, `{"type": type}` is the type of the result's part.
    - In an AI message, `{"types": {id: type}}` has the types of the parts for its tool calls, by
      call id.
    """

    within_turn: ClassVar[str]
    levels = (DetailLevel.AUTO, DetailLevel.LOW)

    @staticmethod
    @abstractmethod
    def is_result(part: JsonValue) -> bool:
        """Return whether a part is a tool result."""

    def turn(self, role: str, parts: list[JsonDict]) -> Iterator[JsonDict]:
        """Yield one JSON value with this role and these parts. Without parts, yield nothing and
        record a loss, because providers reject empty messages.
        """
        if parts:
            yield {"role": role, self.within_turn: parts}
        else:
            self.lose("an empty message")

    def join(self, last: JsonDict, value: JsonDict, joins: bool) -> bool:
        """Add the parts of `value` to the previous value `last`, and return whether they were
        added.

        Nothing is added if the roles differ, or if a value has no list of parts. Otherwise, the
        parts are added if `joins` is True, or if both values end with tool results.
        """
        name = self.within_turn
        parts, more = last.get(name), value.get(name)
        if last.get("role") != value.get("role") or not (
            isinstance(parts, list) and isinstance(more, list)
        ):
            return False
        are_results = bool(parts and more) and all(map(self.is_result, (parts[-1], more[-1])))
        if joins or are_results:
            last[name] = [*parts, *more]
        return joins or are_results

    def kind_of_result(self, message: ToolExecutionResultMessage, default: str) -> str:
        kind = format_attribute(message, self.format).get("type")
        return kind if isinstance(kind, str) else default

    def kind_of_call(self, message: AiMessage, id: str | None, default: str) -> str:
        types = format_attribute(message, self.format).get("types")
        kind = types.get(id) if isinstance(types, Mapping) else None
        return kind if isinstance(kind, str) else default

    def arguments(self, call: ToolExecutionRequest) -> JsonDict:
        """Return the arguments of a tool call as an object, which providers require.

        Arguments that are not a JSON object become `{"INVALID_JSON": arguments}`, as Anthropic's
        documentation of fine-grained tool streaming advises.
        """
        found = json_object(call.arguments or "{}")
        if found is not None:
            return found
        self.lose("that the arguments are no JSON object")
        return {"INVALID_JSON": call.arguments}


class BlockWriter(TurnWriter):
    """Base class of the writers of Anthropic and Bedrock. Their messages are made of blocks, and
    the system prompt is outside the list of messages.
    """

    within = "messages"
    within_turn = "content"
    beside = ("system",)
    cannot_say = ("name", "thinking")

    @abstractmethod
    def block(self, text: str) -> JsonDict:
        """Return a text as a block of the format."""

    @abstractmethod
    def call(self, call: ToolExecutionRequest, message: AiMessage) -> JsonDict: ...

    def text(self, text: str) -> JsonDict | None:
        if text.strip():
            return self.block(text)
        if text:
            self.lose("a blank text")
        return None

    def beside_turns(self, message: SystemMessage) -> str:
        """Return the text of a system message, which is written outside the list of messages. If
        other messages come before it, its position is a loss.
        """
        if self.last:
            self.lose("the place of a system message: its text is in `system`")
        return message.text

    def user(self, message: UserMessage) -> Iterator[JsonDict]:
        yield from self.turn("user", self.parts(message.contents))

    def answer(self, message: AiMessage) -> Iterator[JsonDict]:
        texts = self.parts([TextContent(message.text)] if message.text else [])
        calls = [self.call(call, message) for call in self.calls_of(message)]
        yield from self.turn("assistant", texts + calls)

    def call_of(self, message: ToolExecutionResultMessage) -> str:
        """Return the id of the call that a tool result answers. The tool name of the result is a
        loss, because these formats have no field for it.
        """
        id, name = self.answered(message)
        if name:
            self.lose("the name of the tool")
        return id
