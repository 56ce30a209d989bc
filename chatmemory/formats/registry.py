"""The formats by name, and what is in them: lists of messages, and whole files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from io import BytesIO, StringIO, TextIOWrapper
from itertools import chain, islice
from math import inf
from typing import IO, Any

from chatmemory.core.codec import JsonBounds, bytes_of, check_density, json_values
from chatmemory.core.exceptions import InvalidMessage, InvalidValue, UnreadableTranscript
from chatmemory.core.given import chat_message, chat_messages, message_list
from chatmemory.core.messages import ChatMessage
from chatmemory.core.registry import Registry
from chatmemory.core.texts import printable
from chatmemory.formats.conversion import plain_values
from chatmemory.formats.difference import names_in
from chatmemory.formats.format import Format, Refused, Rendered, Rendering, Transcript

# The modules of the formats, each of which has its name. Of several that find as much in a file,
# the first is taken.
_BUILT_IN = (
    "langchain4j",
    "call_log",
    "langfuse",
    "langsmith",
    "langgraph",
    "llama_index_store",
    "openai_list",
    "wrapped",
    "chatgpt",
    "claude_ai",
    "open_webui",
    "librechat",
    "gemini_cli",
    "qwen_code",
    "bedrock",
    "claude_code",
    "codex",
    "openhands",
    "anthropic",
    "gemini",
    "openai_responses",
    "otel_genai",
    "langchain",
    "pydantic_ai",
    "llama_index",
    "vercel_ui",
    "openai_chat",
    "sharegpt",
    "markdown",
)
FORMATS: Registry[Format] = Registry(
    "chatmemory.formats",
    {name: import_module(f"chatmemory.formats.{name}").FORMAT for name in _BUILT_IN},
    accepts=lambda item: isinstance(item, Format),
)


def format_named(name: str) -> Format:
    """Return the format of that name. Raises InvalidValue, naming the installed ones."""
    if name not in FORMATS:
        raise InvalidValue(f"unknown format {name!r}: one of {', '.join(FORMATS)}")
    return FORMATS[name]


def readable_formats() -> dict[str, Format]:
    """Return the formats that are read: all but text for people."""
    return {name: each for name, each in FORMATS.items() if not each.is_text}


def writable_formats() -> dict[str, Format]:
    """Return the formats that are written."""
    return {name: each for name, each in FORMATS.items() if each.render is not None}


def two_way_formats() -> dict[str, Format]:
    """Return the formats that are read and written."""
    return {name: each for name, each in writable_formats().items() if not each.is_text}


def parse_messages(
    values: Any, format: str = "langchain4j", after: Iterable[ChatMessage] = ()
) -> Transcript:
    """Return one list of messages, read; `after` are those before it, whose calls it may answer.

    Raises UnreadableTranscript with the `index` of the message at fault.
    """
    if not isinstance(values, list):
        raise UnreadableTranscript(-1, "messages must be a list")
    return format_named(format).parse(values, chat_messages(after))


def parse_objects(values: Any, format: str, after: Iterable[ChatMessage] = ()) -> Transcript:
    """Return what a provider's library has: a message, a list, a response, or their JSON values.

    Raises UnreadableTranscript with the `index` of the message at fault.
    """
    known = format_named(format)
    plain = (known.plain or plain_values)(values)
    found = known.find(plain)
    if found is None:
        return parse_messages(plain if isinstance(plain, list) else [plain], format, after)
    read = known.parse(found.turns, chat_messages(after))
    return replace(read, losses=found.losses + read.losses)


def render_messages(messages: Iterable[ChatMessage], format: str = "langchain4j") -> Rendered:
    """Return messages in a format, and what it could not express.

    Raises InvalidMessage, and InvalidValue for a format that is only read.
    """
    return render_each(messages, format).whole()


def render_each(messages: Iterable[ChatMessage], format: str = "langchain4j") -> Rendering:
    """Return the same message by message, if the format can."""
    render = format_named(format).render
    if render is None:
        raise InvalidValue(f"messages cannot be written in the format {format!r}: it is only read")
    return render(_Checked(messages))


class _Checked(Iterable[ChatMessage]):
    """Messages that can be read more than once, and are checked while they are read."""

    def __init__(self, given: Iterable[ChatMessage]) -> None:
        self._given = list(given) if isinstance(given, Iterator) else message_list(given)

    def __iter__(self) -> Iterator[ChatMessage]:
        return map(chat_message, self._given)


def kept_in(attributes: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return what formats keep in the attributes of a message, by format: the names of it."""
    return {
        name: [kept for part, value in own.items() for kept in _names(part, value)]
        for name, own in attributes.items()
        if name in FORMATS and isinstance(own, Mapping)
    }


def _names(part: str, value: Any) -> Iterable[str]:
    match part:
        case "differs":
            return names_in(value)
        case "response":
            return value if isinstance(value, Mapping) else ()
        case "joins":
            return ()
    return (part,)


_BOM = "\ufeff"
LOOKED_AT = 20  # lines of a JSON Lines file that tell its format


@dataclass(frozen=True)
class Reading:
    """The conversations of a file in order, and beside them those that could not be read."""

    format: str
    transcripts: tuple[Transcript, ...]
    refused: tuple[Refused, ...]


@dataclass(frozen=True)
class TranscriptStream:
    """The conversations of a file in order, and those that could not be read; each is read when it
    is asked for.
    """

    format: str
    conversations: Iterator[Transcript | Refused]


def read_transcripts(
    content: str | bytes | IO[bytes],
    format: str = "auto",
    *,
    called: str = "the file",
    bounds: JsonBounds | None = None,
) -> Reading:
    """Return every conversation of a JSON or JSON Lines file, or of what it holds.

    `format` is a format's name, or "auto" to take the first that finds the file to be a
    conversation, else the one that finds the most in it. Conversations without a name are named by
    their position, from 1. Raises UnreadableTranscript, which names the content as it is `called`,
    when it is not JSON, exceeds the `bounds`, or holds no conversation in the format.
    """
    stream = stream_transcripts(content, format, called=called, bounds=bounds)
    found = [*stream.conversations]
    transcripts = tuple(each for each in found if isinstance(each, Transcript))
    refused = tuple(each for each in found if isinstance(each, Refused))
    return Reading(stream.format, transcripts, refused)


def stream_transcripts(
    content: str | bytes | IO[bytes],
    format: str = "auto",
    *,
    called: str = "the file",
    bounds: JsonBounds | None = None,
) -> TranscriptStream:
    """Return the same conversation by conversation.

    Of a JSON Lines file whose first line is a conversation, one line is in memory at a time, and
    what is wrong with a line raises UnreadableTranscript when it is reached. Any other file is
    decoded as a whole.
    """
    known = readable_formats() if format == "auto" else {format: format_named(format)}
    first, values = _begun(_values(content, bounds))
    if len(first) > 1 and (name := _format_of_lines(first, known)):
        return TranscriptStream(name, _read(chain(first, values), name, known[name], bounds))
    several = [*first, *values]
    value = several if len(several) > 1 else several[0]
    if name := _detected(value, known):
        found = [value] if known[name].find(value) else list(value)
        return TranscriptStream(name, _read(found, name, known[name], bounds))
    formats = " or ".join(known)
    why = f"no conversation in the format {formats} found: {called} is {_shape(value)}"
    raise UnreadableTranscript(-1, why)


def _begun(values: Iterator[Any]) -> tuple[list[Any], Iterator[Any]]:
    """Return the first values and the others. What is wrong with one is raised by the others."""
    first: list[Any] = []
    try:
        for value in islice(values, LOOKED_AT):
            first.append(value)
    except UnreadableTranscript as error:
        return first, _raising(error)
    return first, values


def _raising(error: UnreadableTranscript) -> Iterator[Any]:
    raise error
    yield


def _format_of_lines(first: Sequence[Any], known: Mapping[str, Format]) -> str | None:
    """Return the format of a file with a conversation in each line, given its first ones; None if
    the lines are messages of one conversation, or none is a conversation.
    """
    is_one = any(each.find(first) for each in known.values())
    return None if is_one else _detected(first, known)


def _values(content: str | bytes | IO[bytes], bounds: JsonBounds | None) -> Iterator[Any]:
    try:
        if isinstance(content, str):
            check_density(content)
            yield from json_values(StringIO(content.removeprefix(_BOM), newline="\n"), bounds)
        else:
            file = BytesIO(content) if isinstance(content, bytes) else content
            yield from _values_of_file(file, bounds)
        return
    except InvalidMessage as error:
        why = str(error)  # the error itself holds what was decoded
    raise UnreadableTranscript(-1, why)


def _values_of_file(file: IO[bytes], bounds: JsonBounds | None) -> Iterator[Any]:
    text = TextIOWrapper(file, "utf-8-sig", newline="\n")
    try:
        if text.read(1) != _BOM:
            text.seek(0)
        yield from json_values(text, bounds)
    except UnicodeDecodeError as error:
        place = file.tell() - len(error.object) + error.start
        raise UnreadableTranscript(-1, f"not UTF-8: {error.reason} at byte {place}") from error
    finally:
        text.detach()  # the file stays open


def _shape(value: Any) -> str:
    """Return what a file is, in words for an error."""
    if isinstance(value, list) and value:
        return f"a list that begins with {_kind(value[0])}"
    return _kind(value)


def _kind(value: Any) -> str:
    if isinstance(value, dict) and value:
        is_empty = any(value.get(name) == [] for name in ("messages", "conversations"))
        names = ", ".join(repr(key[:20]) for key in list(value)[:5])
        return f"an object with {names}{' and no messages in it' if is_empty else ''}"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    return next(words for kind, words in _KINDS if isinstance(value, kind))


_KINDS = (
    (dict, "an empty object"),
    (str, "a string"),
    (bool, "true or false"),
    (int | float, "a number"),
    (object, "null"),
)


def _detected(value: Any, formats: Mapping[str, Format]) -> str | None:
    """Return the name of the format that finds the most conversations, None if none finds any.

    Of several formats one that claims some counts all that it finds.
    """
    if len(formats) > 1:
        formats = {
            name: each
            for name, each in formats.items()
            if each.claims is None or _count(value, each.claims)
        }
    counts = {name: _count(value, each.find) for name, each in formats.items()}
    name = max(counts, key=counts.__getitem__, default="")
    return name if counts.get(name) else None


def _count(value: Any, finds: Callable[[Any], object]) -> float:
    """Return how many items of a list are conversations; infinity if it is one as a whole."""
    if finds(value):
        return inf
    return sum(bool(finds(each)) for each in value) if isinstance(value, list) else 0


def _read(
    conversations: Iterable[Any], name: str, format: Format, bounds: JsonBounds | None
) -> Iterator[Transcript | Refused]:
    if format.conversations:
        for number, each in enumerate(format.conversations(conversations), 1):
            yield _numbered(each, number, bounds)
        return
    for number, value in enumerate(conversations, 1):
        raw = format.find(value)
        where = f"conversation {number}" + (f" ({printable(raw.name)})" if raw and raw.name else "")
        if raw is None:
            yield Refused(where, f"no conversation in the format {name}: {_shape(value)}")
            continue
        try:
            read = format.parse(raw.turns, ())
            _check_sizes(read, bounds)
        except UnreadableTranscript as error:
            yield Refused(where, str(error))
            continue
        losses = raw.losses + read.losses
        yield replace(read, name=raw.name or str(number), losses=losses, number=number)


def _numbered(
    read: Transcript | Refused, number: int, bounds: JsonBounds | None
) -> Transcript | Refused:
    if isinstance(read, Refused):
        return read
    name = read.name or str(number)
    try:
        _check_sizes(read, bounds)
    except UnreadableTranscript as error:
        return Refused(f"conversation {number} ({printable(name)})", str(error))
    return replace(read, name=name, number=number)


def _check_sizes(read: Transcript, bounds: JsonBounds | None) -> None:
    """Raise UnreadableTranscript for a message whose texts take more than the bounds allow."""
    if bounds is None:
        return
    for index, message in enumerate(read.messages):
        if bytes_of(message) > bounds.each:
            why = f"it takes more than {bounds.each:,} bytes of memory, {bounds.told}"
            raise UnreadableTranscript(read.turns[index] if read.turns else index, why)
