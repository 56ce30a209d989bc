"""Writes messages as JSON, with the notation of Jackson (LangChain4j's JSON library) and the order
of properties of LangChain4j.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from sys import getsizeof, intern

from chatmemory.exceptions import InvalidMessage
from chatmemory.messages.contents import (
    Audio,
    AudioContent,
    Content,
    Image,
    ImageContent,
    Media,
    PdfFileContent,
    TextContent,
    VideoContent,
)
from chatmemory.messages.json_values import JsonDict, JsonMap, JsonValue
from chatmemory.messages.message import (
    AiMessage,
    ChatMessage,
    CustomMessage,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    message_list,
)
from chatmemory.patterns import declared_pattern

# An escaped backslash matches, too, so that `\\u001f` within a text is left unchanged.
_LOWER_CASED = declared_pattern(r"\\u00[0-9a-f]{2}|\\\\")


def write_json(value: JsonValue) -> str:
    r"""Return compact JSON in the notation of the Java library Jackson: `\u001F` for control
    characters, `1.0E20` for floats.

    Raises InvalidMessage for a value that JSON cannot express.
    """
    parts: list[str] = []
    try:
        _put(value, parts)
    except RecursionError as error:
        raise InvalidMessage("the message is nested too deeply to be written") from error
    return "".join(parts)


def json_string(text: str) -> str:
    """Return a text as a JSON string, in the notation of `write_json`."""
    found: str = json.encoder.encode_basestring(text)
    if "\\u00" not in found:
        return found
    return _LOWER_CASED.sub(lambda escape: escape[0][:2] + escape[0][2:].upper(), found)


def _put(value: JsonValue, parts: list[str]) -> None:
    match value:
        case str():
            parts.append(json_string(value))
        case dict():
            _put_object(value, parts)
        case list() | tuple() | Iterator():
            _put_list(value, parts)
        case None:
            parts.append("null")
        case bool():
            parts.append("true" if value else "false")
        case int():
            parts.append(_int(value))
        case float():
            parts.append(_float(value))
        case Mapping():
            _put_object(value, parts)
        case _:
            raise InvalidMessage(f"a {type(value).__name__} cannot be written as JSON")


def _put_object(value: JsonMap, parts: list[str]) -> None:
    before = "{"
    for key, each in value.items():
        # Many parts of one message have the same names: each name is in memory once.
        parts.append(intern(f"{before}{json_string(str(key))}:"))
        _put(each, parts)
        before = ","
    parts.append("}" if value else "{}")


def _put_list(values: Iterable[JsonValue], parts: list[str]) -> None:
    before = "["
    for each in values:
        parts.append(before)
        _put(each, parts)
        before = ","
    parts.append("[]" if before == "[" else "]")


def _int(number: int) -> str:
    try:
        return str(number)
    except ValueError as error:
        raise InvalidMessage("a number has too many digits") from error


def _float(number: float) -> str:
    """Return a float as Java's Double.toString does: without an exponent from 0.001 up to
    10,000,000.
    """
    if number != number or number in (float("inf"), float("-inf")):
        raise InvalidMessage("NaN and Infinity cannot be written as JSON")
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        return repr(number)
    digits, exponent = f"{Decimal(repr(number)).normalize():E}".split("E")
    return f"{digits if '.' in digits else digits + '.0'}E{int(exponent)}"


_ATTRIBUTES, _TYPE = '"attributes":', '"type":'
_NESTED = (dict, list, tuple, Mapping)  # checking for a Mapping first takes four times as long
Listed = Callable[[Iterable[JsonValue]], Iterable[JsonValue]]
Path = tuple["Path", str] | None  # the path of a value's container, and its place there


def message_to_json(message: ChatMessage | None) -> str:
    """Return one message as JSON text; None gives `null`."""
    match message:
        case UserMessage(contents=(TextContent(text=text),), name=None) if not message.attributes:
            return f'{{"contents":[{{"text":{json_string(text)},"type":"TEXT"}}],"type":"USER"}}'
    return write_json(None if message is None else _values(message, iter))


def messages_to_json(messages: Iterable[ChatMessage | None]) -> str:
    """Return messages as a JSON array; None becomes `null`."""
    return write_json(
        None if message is None else _values(message, iter) for message in message_list(messages)
    )


def message_to_dict(message: ChatMessage | None) -> JsonDict | None:
    """Return one message as JSON values, with the properties in LangChain4j's order; None for
    None.
    """
    if message is None:
        return None
    return _values(message)


def attributes_beside(message: ChatMessage) -> str | None:
    """Return the attributes of a system message as JSON text; None for other messages, and if there
    are no attributes.

    LangChain4j's JSON of system messages has no attributes, so they are stored separately.
    """
    if isinstance(message, SystemMessage) and message.attributes:
        return write_json(message.attributes)
    return None


def stored_json(message: ChatMessage) -> str:
    """Return the JSON text of a message. For a system message, the JSON text of its attributes is
    appended, because its own JSON lacks them.
    """
    return message_to_json(message) + (attributes_beside(message) or "")


def without_attributes(payload: str) -> str:
    """Return the JSON text of a message without its attributes. A CustomMessage keeps them, because
    they are its content.
    """
    return split_attributes(payload)[0]


def split_attributes(payload: str) -> tuple[str, str]:
    """Return two JSON texts: the message without its attributes, and the attributes.

    The second text is "" if the attributes are empty or missing. For a CustomMessage, the first
    text is the unchanged `payload`, and the second is "".
    """
    before, found, _ = payload.partition(_ATTRIBUTES)
    if not found or before == "{":
        return payload, ""
    end = payload.rindex(_TYPE)
    attributes = payload[len(before) + len(_ATTRIBUTES) : end - 1]
    return before + payload[end:], "" if attributes == "{}" else attributes


def strings_of(message: ChatMessage) -> Iterator[tuple[Path, str]]:
    """Yield each string in the JSON of a message, as a pair: the string's place in the JSON, and
    the string.

    `path_text` turns the place into text, such as `contents[0].text`. Names of properties are
    yielded, too, and so are the attributes of a system message.
    """
    values = _values(message)
    if isinstance(message, SystemMessage):
        values["attributes"] = message.attributes
    waiting: list[Iterator[tuple[Path, JsonValue]]] = [iter([(None, values)])]
    while waiting:
        for path, value in waiting[-1]:
            if isinstance(value, str):
                yield path, value
            elif isinstance(value, _NESTED):
                waiting.append(_within(value, path))
                break
        else:
            waiting.pop()


def bytes_of(message: ChatMessage) -> int:
    """Return how many bytes of RAM the strings in the JSON of a message take. Python stores a
    character in up to four bytes.
    """
    return sum(getsizeof(text) for _, text in strings_of(message))


def _within(value: JsonMap | Sequence[JsonValue], path: Path) -> Iterator[tuple[Path, JsonValue]]:
    if isinstance(value, list | tuple):
        for n, each in enumerate(value):
            yield (path, f"[{n}]"), each
    elif isinstance(value, Mapping):
        for name, each in value.items():
            yield (path, " (a name in it)"), name
            yield (path, f".{name}"), each


def path_text(path: Path) -> str:
    """Return a place in the JSON of a message as text for errors, such as `contents[0].text`.
    `path` is a place that `strings_of` yields.
    """
    parts: list[str] = []
    while path is not None:
        path, part = path
        parts.insert(0, part)
    return "".join(parts).removeprefix(".")


def _values(message: ChatMessage, listed: Listed = list) -> JsonDict:
    """Return a message as JSON values. `listed` makes the lists of contents and of tool calls."""
    return {**_fields(message, listed), "type": message.type.value}


def _fields(message: ChatMessage, listed: Listed) -> JsonDict:
    match message:
        case SystemMessage():
            return {"text": message.text}
        case UserMessage():
            return _present(
                name=message.name or None,
                contents=listed(map(_content, message.contents)),
                attributes=dict(message.attributes) or None,
            )
        case AiMessage():
            return _present(
                text=message.text,
                thinking=message.thinking,
                toolExecutionRequests=listed(map(_request, message.tool_execution_requests)),
                attributes=dict(message.attributes),
            )
        case ToolExecutionResultMessage():
            return _present(
                id=message.id,
                toolName=message.tool_name,
                contents=listed(map(_content, message.contents)),
                isError=message.is_error,
                attributes=dict(message.attributes),
            )
        case CustomMessage():
            return {"attributes": dict(message.attributes)}
    raise InvalidMessage(f"a {type(message).__name__} is not a chat message")


def _present(**values: JsonValue) -> JsonDict:
    return {name: value for name, value in values.items() if value is not None}


def _request(request: ToolExecutionRequest | None) -> JsonDict | None:
    if request is None:
        return None
    return _present(id=request.id, name=request.name, arguments=request.arguments)


def _content(content: Content | None) -> JsonDict | None:
    if content is None:
        return None
    values: JsonDict
    match content:
        case TextContent():
            values = {"text": content.text}
        case ImageContent():
            values = {"image": _media(content.image), "detailLevel": content.detail_level.value}
        case AudioContent():
            values = _present(audio=_media(content.audio))
        case VideoContent():
            values = _present(video=_media(content.video))
        case PdfFileContent():
            values = _present(pdfFile=_media(content.pdf_file))
        case _:
            raise InvalidMessage(f"a {type(content).__name__} is not a content")
    return {**values, "type": content.type}


def _media(media: Media | None) -> JsonDict | None:
    if media is None:
        return None
    return _present(
        url=media.url,
        binaryData=media.binary_data if isinstance(media, Audio) else None,
        base64Data=media.base64_data,
        mimeType=media.mime_type,
        revisedPrompt=media.revised_prompt if isinstance(media, Image) else None,
    )
