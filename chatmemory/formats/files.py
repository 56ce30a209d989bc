"""Whole files: which format it is, where its conversations are, and reading them one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from itertools import islice
from typing import IO, Any

from chatmemory.core.codec import check_density, load_json
from chatmemory.core.exceptions import InvalidMessage, UnreadableTranscript
from chatmemory.core.printable import printable
from chatmemory.formats.format import Format, Transcript
from chatmemory.formats.registry import FORMATS, format_named

_BOM = "\ufeff"


@dataclass(frozen=True)
class Refused:
    """A conversation of a file that cannot be read, and why; the others are."""

    where: str
    why: str


@dataclass(frozen=True)
class Reading:
    """The conversations of a file in order, and beside them those that could not be read."""

    format: str
    transcripts: tuple[Transcript, ...]
    refused: tuple[Refused, ...]


def read_transcripts(
    content: str | bytes | IO[bytes], format: str = "auto", *, called: str = "the file"
) -> Reading:
    """Return every conversation of a JSON or JSON Lines file, or of what it holds.

    `format` is a format's name, or "auto" to take the first that finds a conversation.
    Conversations without a name are named by their position, from 1. Raises UnreadableTranscript,
    which names the content as it is `called`, when it is not JSON or holds no conversation in the
    format.
    """
    value = _decode(content)
    known = FORMATS if format == "auto" else {format: format_named(format)}
    for name, each in known.items():
        conversations = _conversations(value, each)
        if conversations:
            return _read(conversations, name, each)
    formats = " or ".join(known)
    why = f"no conversation in the format {formats} found: {called} is {_shape(value)}"
    raise UnreadableTranscript(-1, why)


def _decode(given: str | bytes | IO[bytes]) -> Any:
    content = BytesIO(given) if isinstance(given, bytes) else given
    text = _text(content)
    try:
        return load_json(text)
    except InvalidMessage as error:
        why = str(error)  # the error itself holds what was decoded
    if not _is_lines(text):
        raise UnreadableTranscript(-1, why)
    _check_density(text)
    if isinstance(content, str):
        return list(_decode_lines(_lines(text)))
    del text  # one line at a time is decoded, as a text can take four times its bytes
    return list(_decode_lines(_lines_of(content)))


def _text(content: str | IO[bytes]) -> str:
    try:
        text = content if isinstance(content, str) else content.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        why = f"not UTF-8: {error.reason} at byte {error.start}"
        raise UnreadableTranscript(-1, why) from error
    return text.removeprefix(_BOM)


def _is_lines(text: str) -> bool:
    """Return whether there are several lines, of which the first may be a whole value."""
    lines = islice(_lines(text), 2)
    _, first = next(lines, (0, ""))
    return first.rstrip().endswith(("}", "]")) and next(lines, None) is not None


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines with something on them, by number.

    They do not end where `splitlines` ends them: a JSON text may hold other line breaks (U+2028).
    """
    start, number = 0, 0
    while start <= len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        line, start, number = text[start:end], end + 1, number + 1
        if line and not line.isspace():
            yield number, line


def _lines_of(file: IO[bytes]) -> Iterator[tuple[int, str]]:
    """Yield the same of a file, whose beginning may have been read."""
    file.seek(0)
    for number, read in enumerate(iter(file.readline, b""), 1):
        line = read.decode()
        if number == 1:
            line = line.removeprefix(_BOM).removeprefix(_BOM)
        if line and not line.isspace():
            yield number, line


def _check_density(text: str) -> None:
    """Raise UnreadableTranscript for more values than one that is a single value may have."""
    try:
        check_density(text)
    except InvalidMessage as error:
        raise UnreadableTranscript(-1, str(error)) from error


def _decode_lines(lines: Iterator[tuple[int, str]]) -> Iterator[Any]:
    for number, line in lines:
        try:
            yield load_json(line)
        except InvalidMessage as error:
            raise UnreadableTranscript(-1, f"line {number}: {error}") from error


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


def _conversations(value: Any, format: Format) -> list[Any]:
    """Return the values that may be conversations: the whole, or each item of a list."""
    if format.find(value):
        return [value]
    if isinstance(value, list) and any(format.find(each) for each in value):
        return list(value)
    return []


def _read(conversations: Sequence[Any], name: str, format: Format) -> Reading:
    transcripts: list[Transcript] = []
    refused: list[Refused] = []
    for number, value in enumerate(conversations, 1):
        raw = format.find(value)
        where = f"conversation {number}" + (f" ({printable(raw.name)})" if raw and raw.name else "")
        if raw is None:
            refused.append(Refused(where, f"no conversation in the format {name}: {_shape(value)}"))
            continue
        try:
            read = format.parse(raw.turns)
        except UnreadableTranscript as error:
            refused.append(Refused(where, str(error)))
            continue
        losses = raw.losses + read.losses
        name_or_number = raw.name or str(number)
        transcripts.append(replace(read, name=name_or_number, losses=losses, number=number))
    return Reading(name, tuple(transcripts), tuple(refused))
