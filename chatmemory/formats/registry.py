"""Whole files: which format it is, where its conversations are, and reading them one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from chatmemory.core.codec import load_json
from chatmemory.core.exceptions import InvalidMessage, InvalidValue, UnreadableTranscript
from chatmemory.core.messages import ChatMessage
from chatmemory.core.printable import printable
from chatmemory.formats import langchain4j, openai_chat, sharegpt
from chatmemory.formats.base import Format, Refused, Rendered, Transcript

FORMATS: dict[str, Format] = {
    module.NAME: cast(Format, module) for module in (langchain4j, openai_chat, sharegpt)
}


@dataclass(frozen=True)
class Reading:
    """A file read: its conversations in order, those that could not be read aside."""

    format: str
    transcripts: tuple[Transcript, ...]
    refused: tuple[Refused, ...]


def read_transcripts(content: str | bytes, format: str = "auto") -> Reading:
    """Every conversation of a JSON or JSON Lines file.

    Conversations without a name get their position, from 1. Raises UnreadableTranscript when the
    file is no JSON or holds no conversation in this format (with "auto", in any).
    """
    value = _decode(content)
    known = FORMATS if format == "auto" else {format: format_named(format)}
    for name, module in known.items():
        if _conversations(value, module):
            return _read(value, name, module)
    raise UnreadableTranscript(
        -1, f"no conversation in the format {' or '.join(known)} found: the file is {_shape(value)}"
    )


def parse_messages(values: Any, format: str = "langchain4j") -> Transcript:
    """One list of messages. Raises UnreadableTranscript with the `index` of the one at fault."""
    if not isinstance(values, list):
        raise UnreadableTranscript(-1, "messages must be a list")
    return format_named(format).parse(values)


def render_messages(messages: Sequence[ChatMessage], format: str = "langchain4j") -> Rendered:
    return format_named(format).render(messages)


def format_named(name: str) -> Format:
    """Raises InvalidValue, naming the formats there are."""
    if name not in FORMATS:
        raise InvalidValue(f"unknown format {name!r}: one of {', '.join(FORMATS)}")
    return FORMATS[name]


def _decode(content: str | bytes) -> Any:
    if isinstance(content, bytes):
        try:
            content = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise UnreadableTranscript(
                -1, f"not UTF-8: {error.reason} at byte {error.start}"
            ) from error
    try:
        return load_json(content.removeprefix("\ufeff"))
    except InvalidMessage as error:
        # Not splitlines: a JSON text may hold other line breaks (U+2028) as they are.
        numbered = enumerate(content.removeprefix("\ufeff").split("\n"), 1)
        lines = [(number, line) for number, line in numbered if line.strip()]
        if len(lines) < 2 or not lines[0][1].rstrip().endswith(("}", "]")):
            raise UnreadableTranscript(-1, str(error)) from error
        return list(_decode_lines(lines))


def _shape(value: Any) -> str:
    """What a file is, in words for an error."""
    if isinstance(value, list) and value:
        return f"a list that begins with {_kind(value[0])}"
    return _kind(value)


def _kind(value: Any) -> str:
    if isinstance(value, dict) and value:
        return f"an object with {', '.join(repr(key[:20]) for key in list(value)[:5])}"
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


def _decode_lines(lines: Sequence[tuple[int, str]]) -> Iterator[Any]:
    for number, line in lines:
        try:
            yield load_json(line)
        except InvalidMessage as error:
            raise UnreadableTranscript(-1, f"line {number}: {error}") from error


def _conversations(value: Any, module: Format) -> list[Any]:
    """The values that may be conversations: the whole, or each of a list."""
    if module.find(value):
        return [value]
    if isinstance(value, list) and any(module.find(each) for each in value):
        return list(value)
    return []


def _read(value: Any, name: str, module: Format) -> Reading:
    transcripts: list[Transcript] = []
    refused: list[Refused] = []
    for number, each in enumerate(_conversations(value, module), 1):
        raw = module.find(each)
        where = f"conversation {number}" + (f" ({printable(raw.name)})" if raw and raw.name else "")
        if raw is None:
            refused.append(Refused(where, f"no conversation in the format {name}"))
            continue
        try:
            read = module.parse(raw.turns)
        except UnreadableTranscript as error:
            refused.append(Refused(where, str(error)))
            continue
        losses = raw.losses + read.losses
        transcripts.append(replace(read, name=raw.name or str(number), losses=losses))
    return Reading(name, tuple(transcripts), tuple(refused))
