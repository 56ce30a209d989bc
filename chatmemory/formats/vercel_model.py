"""The AI SDK's ModelMessages, as in `response.messages` of `generateText`. This format is only
read.

    [{"role": "assistant", "content": [{"type": "tool-call", "toolCallId": …, "input": …}]},
     {"role": "tool", "content": [{"type": "tool-result", "toolCallId": …, "output": {…}}]}]

In AI SDK 4, `input` is named `args`, and `output` is named `result`. Source of the shapes:
vercel/ai, packages/provider-utils/src/types/content-part.ts.
"""

from __future__ import annotations

from collections.abc import Iterator

from chatmemory.exceptions import InvalidMessage
from chatmemory.formats.format import Format, RawTranscript, Transcript
from chatmemory.formats.json_properties import (
    arguments_text,
    dicts_in,
    first_in,
    is_list_of,
    text_in,
    type_in,
    unknown,
)
from chatmemory.formats.parts import media_content, runs_of
from chatmemory.formats.readers_and_writers import Reader, answer_of, find_turns, stand_in
from chatmemory.formats.words import Beside
from chatmemory.messages.contents import Content, TextContent
from chatmemory.messages.json_values import JsonDict, JsonMap, JsonValue
from chatmemory.messages.message import (
    AiMessage,
    ChatMessage,
    ToolExecutionResultMessage,
    UserMessage,
)

NAME = "vercel_model"
_OWN = ("tool-call", "tool-result", "reasoning", "reasoning-file")
_DENIED = "Tool execution denied."
_MEDIA = ("image", "file", "reasoning-file")
_APPROVALS = ("tool-approval-request", "tool-approval-response")


def find(value: JsonValue) -> RawTranscript | None:
    """Return the conversation in a value, or None if the value is in another format.

    The value is a list of messages, or an object with the list under `messages`. At least one
    message must have a part that only the AI SDK has.
    """
    return find_turns(value, _are_messages)


def _are_messages(value: JsonValue) -> bool:
    if not is_list_of(value, "role", "content"):
        return False
    parts = (part for each in value for part in dicts_in(each, "content"))
    return any(type_in(part) in _OWN and "summary" not in part for part in parts)


class _Reader(Reader):
    format = NAME

    def read(self, turn: JsonValue) -> Iterator[ChatMessage]:
        content = turn.get("content") if isinstance(turn, dict) else None
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not isinstance(parts, list) or not all(isinstance(each, dict) for each in parts):
            raise InvalidMessage("content must be a string or a list of parts")
        match turn.get("role"):
            case "system":
                yield from self.system("\n".join(_texts(parts, "text")))
            case "user":
                self.calls.interrupted()
                yield UserMessage([each for part in parts for each in _contents(part)])
            case "assistant" | "tool":
                yield from self.answer(parts)
            case role:
                raise unknown("role", role, ("system", "user", "assistant", "tool"))

    def answer(self, parts: list[JsonDict]) -> Iterator[ChatMessage]:
        for run in runs_of(parts, lambda part: type_in(part) == "tool-result"):
            if type_in(run[0]) == "tool-result":
                yield self.result(run[0])
            elif found := self.said(run):
                yield found

    def said(self, parts: list[JsonDict]) -> AiMessage | None:
        calls = [
            self.calls.request(
                text_in(part, "toolCallId"),
                text_in(part, "toolName"),
                first_in(part, "input", "args"),
            )
            for part in parts
            if type_in(part) == "tool-call"
        ]
        kinds = ("file", "image", "reasoning-file", "custom")
        files = [each for part in parts if type_in(part) in kinds for each in _contents(part)]
        texts = [each.text if isinstance(each, TextContent) else "[file]" for each in files]
        texts = [*_texts(parts, "text"), *texts]
        thoughts = _texts(parts, "reasoning")
        if not (texts or thoughts or calls):
            return None
        return answer_of(texts, calls, thoughts)

    def result(self, part: JsonDict) -> ToolExecutionResultMessage:
        output, kind = first_in(part, "output", "result"), type_in(part.get("output"))
        contents: list[Content] = []
        match kind:
            case "content":
                contents += (each for one in dicts_in(output, "value") for each in _contents(one))
            case "execution-denied":
                contents.append(TextContent(text_in(output, "reason") or _DENIED))
            case "":
                contents.append(TextContent(arguments_text(output) or ""))
            case _:
                contents.append(TextContent(arguments_text(output.get("value")) or ""))
        is_error = kind.startswith("error") or kind == "execution-denied" or part.get("isError")
        answered = self.calls.answered(text_in(part, "toolCallId"), text_in(part, "toolName"))
        return ToolExecutionResultMessage(*answered, contents, True if is_error else None)


def _texts(parts: list[JsonDict], type: str) -> list[str]:
    found = (text_in(part, "text") for part in parts if type_in(part) == type)
    return [text for text in found if text]


def _contents(part: JsonMap) -> Iterator[Content]:
    kind = type_in(part)
    mime = text_in(part, "mediaType", "mimeType")
    match kind:
        case "text":
            yield TextContent(text_in(part, "text") or "")
        case "image" | "file" | "media" | "file-data" | "image-data" | "reasoning-file":
            data = first_in(part, "image", "data")
            if not isinstance(data, str):
                yield stand_in("file", text_in(part, "filename"))
                return
            url, data = (data, None) if "://" in data[:20] or data[:5] == "data:" else (None, data)
            of_image = kind.startswith("image") or str(mime).startswith("image/")
            yield media_content("image" if of_image else "file", url, data, mime)
        case "file-url" | "image-url":
            yield media_content(kind.partition("-")[0], text_in(part, "url"), None, mime)
        case kind if kind in _APPROVALS:
            return
        case _:
            yield stand_in(kind or "part", None)


def content_of(turn: JsonValue) -> JsonValue:
    """Return the parts of a message that may have words, for `Format.content_of`. Left out are the
    data of files, requests for the user's approval, and the user's responses to these requests.
    """
    if not isinstance(turn, dict) or not isinstance(turn.get("content"), list):
        return turn
    said = (each for each in turn["content"] if type_in(each) not in _APPROVALS)
    parts = [_DATA.without(each) if type_in(each) in _MEDIA else each for each in said]
    return [_BESIDE.without(turn, "content"), parts]


_BESIDE = Beside(wholes=("providerOptions", "experimental_providerMetadata"))
_DATA = Beside(texts=("image", "data"))


def parse(turns: JsonValue, after: JsonValue = ()) -> Transcript:
    return _Reader().read_all(turns, after)


FORMAT = Format(NAME, find, parse, content_of=content_of)
