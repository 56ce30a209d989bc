"""Reads whole files: detects their format, and returns each conversation."""

from __future__ import annotations

from array import array
from codecs import getincrementaldecoder, register_error
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from io import BytesIO, StringIO, TextIOWrapper
from itertools import chain, count, islice
from typing import IO

from chatmemory.exceptions import InvalidMessage, UnreadableTranscript
from chatmemory.formats.account import Account, Places, beside, fault, line_name, refusing_faults
from chatmemory.formats.databases import MAGIC, is_database, sessions_of, unwritten_log
from chatmemory.formats.format import Format, Loss, RawTranscript, Refused, Transcript
from chatmemory.formats.known import known_beginning, known_shape, shape_of, why_unread
from chatmemory.formats.order import is_newest_first
from chatmemory.formats.packed import Packed, is_list
from chatmemory.formats.registry import format_named, readable_formats
from chatmemory.formats.words import has_content
from chatmemory.messages.codec import JsonBounds, JsonLine, bytes_of, check_density, json_lines
from chatmemory.messages.json_values import JsonList, JsonValue
from chatmemory.messages.texts import printable

_BOM = "\ufeff"
LOOKED_AT = 20  # the lines of a JSON Lines file that decide about its format


@dataclass(frozen=True)
class Reading:
    """The result of reading a file: its format, and its conversations in order. `refused` has the
    conversations and lines that could not be read.
    """

    format: str
    transcripts: tuple[Transcript, ...]
    refused: tuple[Refused, ...]


@dataclass(frozen=True)
class TranscriptStream:
    """The result of opening a file: its format, and its `conversations` in order, each read on
    demand.

    In place of an unreadable conversation, there is a `Refused`.
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
    """Return every conversation of a JSON or JSON Lines file, given as a file or as its content.
    Conversations without a name are named by their position, from 1.

    With "auto", the format is detected. It is the first format in which the whole file is one
    conversation, or else the format with the most conversations.

    Raises UnreadableTranscript if the content is not JSON, exceeds the `bounds`, or has no
    conversation. `called` is the name of the file in the error.
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
    """Return the conversations of a file as a stream.

    A JSON Lines file is read line by line, or session by session if its records name their session.
    Any other file is decoded as a whole. In place of a line that cannot be read, there is a
    `Refused` with the number of the line. An unexpected exception is logged, and becomes an
    UnreadableTranscript.
    """
    with refusing_faults(called):
        stream = _stream(content, format, called, bounds)
    return replace(stream, conversations=_guarded(stream.conversations, called))


def _of_database(
    content: bytes | IO[bytes],
    known: Mapping[str, Format],
    bounds: JsonBounds | None,
    called: str,
) -> TranscriptStream:
    """Return the conversations of a database, one for each session. Raises UnreadableTranscript."""
    found = sessions_of(content, bounds)
    if found is None or found[0] not in known:
        raise UnreadableTranscript(-1, known_beginning(MAGIC) or "")
    name, sessions = found
    conversations = _read_each(sessions, name, known[name], bounds)
    if unwritten_log(content):
        why = (
            f"the newest changes of {called} are in a file -wal beside it, which is not read: "
            "quit the program that writes it, and import again"
        )
        conversations = chain([Refused("the write-ahead log", why)], conversations)
    return TranscriptStream(name, conversations)


def _read_each(
    sessions: Iterator[JsonValue], name: str, format: Format, bounds: JsonBounds | None
) -> Iterator[Transcript | Refused]:
    numbers = count(1)
    for session in sessions:
        yield from _read([session], name, format, bounds, [Places(root=session)], numbers)


def _guarded(
    conversations: Iterator[Transcript | Refused], called: str
) -> Iterator[Transcript | Refused]:
    with refusing_faults(called):
        yield from conversations


def _stream(
    content: str | bytes | IO[bytes], format: str, called: str, bounds: JsonBounds | None
) -> TranscriptStream:
    known = readable_formats() if format == "auto" else {format: format_named(format)}
    if not isinstance(content, str) and is_database(content):
        return _of_database(content, known, bounds, called)
    head, lines = _begun(_lines(content, bounds))
    first = [line.value for line in head if not line.problem]
    if format == "auto" and (shape := known_shape(first if len(head) > 1 else first[0])):
        raise UnreadableTranscript(-1, why_unread(shape, called))
    every, are_lines = chain(head, lines), len(head) > 1
    if are_lines:
        if name := _format_of_lines(first, known):
            return TranscriptStream(name, _of_lines(every, name, known[name], bounds))
        if name := _format_of_records(first, known):
            return TranscriptStream(name, _of_records(every, None, name, known[name], bounds))
    several = Packed if are_lines else list
    items = several(every)
    if not are_lines and isinstance(first[0], list):
        items = [JsonLine(n, each) for n, each in enumerate(first[0], 1)]
    good = [item.number for item in items if not item.problem]
    values = several(item.value for item in items if not item.problem)
    document = None if are_lines else first[0]
    if name := _format_of_records(values, known):
        return TranscriptStream(name, _of_records(items, document, name, known[name], bounds))
    value = values if are_lines else first[0]
    if name := _detected(value, known):
        is_whole = known[name].find(value) is not None
        found = [value] if is_whole else value
        problems = [_refused_line(item) for item in items if item.problem]
        places = _places_of(value, is_whole, good if are_lines else ())
        read = _read(found, name, known[name], bounds, places)
        return TranscriptStream(name, chain(problems, read))
    what = "no conversation" if format == "auto" else f"no conversation in the format {format}"
    description = (
        f"JSON Lines, which begin with {shape_of(first[0])}" if are_lines else shape_of(value)
    )
    raise UnreadableTranscript(-1, f"{what} found: {called} is {description}")


def _places_of(value: JsonValue, is_whole: bool, lines: Sequence[int]) -> Iterator[Places]:
    """Yield the positions of the records for each conversation of a file.

    With `is_whole`, the value is one conversation, else a list of conversations. `lines` are the
    numbers of the lines if the file is JSON Lines.
    """
    if is_whole:
        yield Places(lines, root=value)
    elif lines:
        yield from (Places(root=each, line=n) for n, each in zip(lines, value, strict=True))
    else:
        yield from (Places(root=each, prefix=f"[{n}]") for n, each in enumerate(value))


def _begun(lines: Iterator[JsonLine]) -> tuple[list[JsonLine], Iterator[JsonLine]]:
    """Return the first lines, and an iterator over the rest, which raises the errors of the file.

    Raises UnreadableTranscript if no line could be read.
    """
    first: list[JsonLine] = []
    try:
        for line in islice(lines, LOOKED_AT):
            first.append(line)
    except UnreadableTranscript as error:
        if not any(not line.problem for line in first):
            raise
        return first, _raising(error)
    return first, lines


def _raising(error: UnreadableTranscript) -> Iterator[JsonLine]:
    raise error
    yield


def _format_of_lines(first: Sequence[JsonValue], known: Mapping[str, Format]) -> str | None:
    """Return the format of a file that has a conversation in each line, by its first lines. None if
    the lines are parts of one conversation, or no line is a conversation.
    """
    is_one = any(each.find(first) for each in known.values())
    return None if is_one or _format_of_records(first, known) else _detected(first, known)


def _format_of_records(values: Sequence[JsonValue], known: Mapping[str, Format]) -> str | None:
    """Return the format in which more than half of the values are records of a session. None if
    there is no such format.
    """
    tests = {name: each.is_record for name, each in known.items() if each.is_record}
    counts = Counter(name for value in values for name, is_one in tests.items() if is_one(value))
    for name in tests:
        if 2 * counts[name] > len(values):
            are_all = counts[name] == len(values)
            if known[name].find(values if are_all else Packed(filter(tests[name], values))):
                return name
    return None


def _lines(content: str | bytes | IO[bytes], bounds: JsonBounds | None) -> Iterator[JsonLine]:
    try:
        if isinstance(content, str):
            check_density(content)
            yield from json_lines(StringIO(content.removeprefix(_BOM), newline="\n"), bounds)
        else:
            file = BytesIO(content) if isinstance(content, bytes) else content
            yield from _lines_of_file(file, bounds)
        return
    except InvalidMessage as error:
        why = str(error)  # the error itself holds the decoded text
    raise UnreadableTranscript(-1, why)


def _lines_of_file(file: IO[bytes], bounds: JsonBounds | None) -> Iterator[JsonLine]:
    text = TextIOWrapper(file, "utf-8-sig", errors=_NO_UTF8, newline="\n")
    try:
        if text.read(1) != _BOM:
            text.seek(0)
        yield from json_lines(text, bounds)
    except InvalidMessage:
        if why := _why_no_text(file):
            raise UnreadableTranscript(-1, why) from None
        raise
    finally:
        if not file.closed:  # somebody may have left off, and closed the file
            text.detach()


_NO_UTF8 = "chatmemory.no_utf8"
# A line that is not UTF-8 is not JSON either: each of its bad bytes becomes a NUL.
register_error(_NO_UTF8, lambda error: ("\0", error.end))  # type: ignore[attr-defined]  # its types want a str error handler


def _why_no_text(file: IO[bytes]) -> str | None:
    """Return why a file is not text: it is empty, of a known binary kind, or not UTF-8. None if the
    file is text.
    """
    file.seek(0)
    first = file.read(2**10)
    if not first.strip() and not file.read(1):
        return "the file is empty"
    if why := known_beginning(first):
        return why
    place = _place_without_utf8(file)
    return f"the file is not UTF-8: {place}" if place else None


def _place_without_utf8(file: IO[bytes]) -> str | None:
    """Return a text about the first byte of a file that is not UTF-8, with its position. None if
    all bytes are UTF-8.
    """
    file.seek(0)
    decoder, place = getincrementaldecoder("utf-8")(), 0
    while True:
        piece = file.read(2**20)
        waiting = len(decoder.getstate()[0])
        try:
            decoder.decode(piece, final=not piece)
        except UnicodeDecodeError as error:
            return f"{error.reason} at byte {place - waiting + error.start}"
        if not piece:
            return None
        place += len(piece)


def _detected(value: JsonValue, formats: Mapping[str, Format]) -> str | None:
    """Return the name of the format of a value, or None.

    This is the first format in which the whole value is one conversation. Otherwise it is the
    format that finds the most conversations in a list. A format with `claims` is only tried if it
    claims the value or an item.
    """
    if len(formats) > 1:
        formats = {
            name: each
            for name, each in formats.items()
            if each.claims is None or _is_in(value, each.claims)
        }
    whole = next((name for name, each in formats.items() if each.find(value)), None)
    if whole or not is_list(value):
        return whole
    counts = Counter(name for item in value for name, each in formats.items() if each.find(item))
    return max(formats, key=counts.__getitem__) if counts else None


def _is_in(value: JsonValue, claims: Callable[[JsonValue], bool]) -> bool:
    """Return whether a format claims a value, or an item of the list."""
    return claims(value) or (is_list(value) and any(map(claims, value)))


def _of_lines(
    lines: Iterable[JsonLine], name: str, format: Format, bounds: JsonBounds | None
) -> Iterator[Transcript | Refused]:
    """Yield the conversations of a JSON Lines file. A line is a conversation, or in some formats
    several lines are.
    """
    if format.conversations:
        problems: list[Refused] = []
        places = Places()
        values = _without(lines, problems, places)
        yield from _gathered(values, format.conversations, bounds, [places])
        yield from problems
        return
    number = count(1)
    for line in lines:
        if line.problem:
            yield _refused_line(line)
        else:
            places = Places(root=line.value, line=line.number)
            yield from _read([line.value], name, format, bounds, [places], number)


def _without(
    lines: Iterable[JsonLine], problems: list[Refused], places: Places
) -> Iterator[JsonValue]:
    """Yield the values of lines, and add the numbers of the lines to `places`. Lines that are not
    JSON are added to `problems`.
    """
    for line in lines:
        if line.problem:
            problems.append(_refused_line(line))
        else:
            places.numbers.append(line.number)
            yield line.value


def _gathered(
    values: Iterable[JsonValue],
    conversations: Callable[[Iterable[JsonValue]], Iterator[Transcript | Refused]],
    bounds: JsonBounds | None,
    places: Sequence[Places],
) -> Iterator[Transcript | Refused]:
    """Yield the conversations of a format in which several values make one conversation.

    `places` has the positions for each value, or one item for all values.
    """
    numbers = count(1)
    for read in conversations(values):
        if isinstance(read, Refused):
            yield read if read.turn is None else replace(read, where=_value_at(places, read.turn))
            continue
        losses = tuple(
            each if each.turn is None else replace(each, place=_value_at(places, each.turn))
            for each in read.losses
        )
        read = replace(read, losses=losses)
        number = next(numbers)
        name = read.name or str(number)
        where = f"conversation {number} ({printable(name)})"
        try:
            _check_sizes(read, bounds)
        except UnreadableTranscript as error:
            yield Refused(where, str(error))
            continue
        if has_content(read):
            yield replace(read, name=name, number=number)
        else:
            yield Refused(where, "it has no message with content")


def _of_records(
    items: Iterable[JsonLine],
    document: JsonValue,
    name: str,
    format: Format,
    bounds: JsonBounds | None,
) -> Iterator[Transcript | Refused]:
    """Yield the sessions of records. Lines that are not records are yielded as refused before their
    session.

    The records are lines, or are in one JSON `document`.
    """
    assert format.is_record is not None
    are_lines = document is None
    numbers = count(1)
    session: str | None = None
    several = Packed if are_lines else list
    values: JsonList | Packed[JsonValue] = several()
    lines = array("L")
    for item in items:
        if item.problem:
            yield _refused_line(item)
            continue
        if not format.is_record(item.value):
            why = f"this is not a record of the format {name}, but {shape_of(item.value)}"
            yield Refused(line_name(item.number) if are_lines else f".[{item.number - 1}]", why)
            continue
        id = format.session_of(item.value) if format.session_of else None
        if session and id and id != session:
            places = Places(lines, root=document)
            yield from _read([values], name, format, bounds, [places], numbers)
            values, lines = several(), array("L")
        session = id or session
        values.append(item.value)
        if are_lines:
            lines.append(item.number)
    yield from _read([values], name, format, bounds, [Places(lines, root=document)], numbers)


def _value_at(places: Sequence[Places], n: int) -> str:
    """Return the position of the value with index `n` in the file, in words."""
    return places[0].of_value(n) if len(places) == 1 else places[n].of_value()


def _refused_line(line: JsonLine) -> Refused:
    return Refused(line_name(line.number), line.problem)


def _read(
    values: Iterable[JsonValue],
    name: str,
    format: Format,
    bounds: JsonBounds | None,
    places: Iterable[Places],
    numbers: Iterator[int] | None = None,
) -> Iterator[Transcript | Refused]:
    """Yield the conversations of values. `places` has the positions of the records of each
    value.
    """
    if format.conversations:
        yield from _gathered(values, format.conversations, bounds, [*places])
        return
    numbers = numbers or count(1)
    for value, its_places in zip(values, places, strict=False):
        if format.is_empty and format.is_empty(value):
            yield Refused(f"conversation {next(numbers)}", "it has no messages yet", is_empty=True)
            continue
        found = _found(value, format)
        if not found:
            why = f"this is not a conversation in the format {name}, but {shape_of(value)}"
            yield Refused(f"conversation {next(numbers)}", why)
        for raw in found:
            own = its_places.of(raw.places) if raw.places else its_places
            yield from _read_one(raw, next(numbers), format, bounds, own, value)


def _found(value: JsonValue, format: Format) -> Sequence[RawTranscript]:
    found = format.find(value)
    if found is None:
        return ()
    return format.find_each(value) if format.find_each else (found,)


def _read_one(
    raw: RawTranscript,
    number: int,
    format: Format,
    bounds: JsonBounds | None,
    places: Places,
    value: JsonValue,
) -> Iterator[Transcript | Refused]:
    """Yield one conversation of a value, then its branches."""
    where = f"conversation {number}" + (f" ({printable(raw.name)})" if raw.name else "")
    raw, places = _in_order(raw, places) if format.is_record is None else (raw, places)
    account = Account(raw.turns, places)
    try:
        read = format.parse(account, ())
        _check_sizes(read, bounds)
        losses = (*read.losses, *account.losses(read, format.content_of, format.kinds))
        whole = value[0] if isinstance(value, list) and len(value) == 1 else value
        if format.is_whole and isinstance(whole, dict):
            losses = (*losses, *beside(whole, raw.turns, read))
    except UnreadableTranscript as error:
        at = f"{account.place(error.index)}: " if 0 <= error.index < len(account) else ""
        yield Refused(where, f"{at}{error.why}")
        return
    except Exception as error:
        at = where if account.at is None else f"{where}, {account.place(account.at)}"
        yield Refused(at, fault(error, at))
        return
    if not has_content(read):
        yield Refused(where, f"it has no message with content: it is {shape_of([*raw.turns[:1]])}")
        return
    for each in account.left_out:
        yield Refused(account.place(each.turn), each.why)
    losses = (*raw.losses, *(_with_place(each, account) for each in losses))
    name = raw.name or str(number)
    yield replace(read, name=name, losses=losses, number=number, branches=())
    for n, branch in enumerate(read.branches, 1):
        yield replace(branch, name=f"{name}-branch-{n}", number=number, is_branch=True)


def _in_order(raw: RawTranscript, places: Places) -> tuple[RawTranscript, Places]:
    """Return a conversation with its oldest message first, and the positions of its messages.
    Without times, the order is unchanged.
    """
    is_reversed, losses = is_newest_first(raw.turns)
    raw = replace(raw, losses=(*raw.losses, *losses))
    if not is_reversed:
        return raw, places
    numbers = range(len(raw.turns) - 1, -1, -1)
    several = Packed if isinstance(raw.turns, Packed) else list
    turns = several(raw.turns[n] for n in numbers)
    return replace(raw, turns=turns), places.of(numbers)


def _with_place(loss: Loss, account: Account) -> Loss:
    return loss if loss.turn is None else replace(loss, place=account.place(loss.turn))


def _check_sizes(read: Transcript, bounds: JsonBounds | None) -> None:
    """Raise UnreadableTranscript if the texts of a message are larger than `bounds` allows."""
    if bounds is None:
        return
    for index, message in enumerate(read.messages):
        if bytes_of(message) > bounds.each:
            why = f"the message takes more than {bounds.each:,} bytes of memory: {bounds.remedy}"
            raise UnreadableTranscript(read.turns[index] if read.turns else index, why)
