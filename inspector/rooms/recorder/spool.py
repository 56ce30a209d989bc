"""Reads the files of the spool (the folder of recorded calls). The proxy and the module
`in_process` write these files.
"""

from __future__ import annotations

import fcntl
import heapq
import json
import os
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from chatmemory.messages.json_values import JsonDict, JsonValue
from inspector.rooms.calls.bodies import (
    ANTHROPIC,
    GEMINI,
    OPENAI,
    OWN_FIELDS,
    RESPONSES,
    error_in,
    finish_in,
    is_request,
    loaded,
    model_in,
    session_in,
    usage_in,
)
from inspector.rooms.calls.call import (
    Dropped,
    DropReason,
    NewCall,
    ReceivedAnswer,
    SentRequest,
    Source,
)
from inspector.rooms.calls.repeated import ReadBody, read_body
from inspector.rooms.recorder import streams
from inspector.rooms.recorder.proxy import routes
from inspector.rooms.recorder.proxy.secrets import Fingerprints

_FORMATS = {
    routes.COMPLETIONS: OPENAI,
    routes.RESPONSES: RESPONSES,
    routes.MESSAGES: ANTHROPIC,
    routes.GEMINI: GEMINI,
}
_KNOWN = {
    "api.openai.com": "openai",
    "api.anthropic.com": "anthropic",
    "generativelanguage.googleapis.com": "gemini",
}
_KILLED = {
    "how": "cut",
    "error": ("the recorder was killed before the answer was complete"),
    "duration": None,
}
EMPTY_SECONDS = 60  # after which an empty file that nobody has locked is removed
_FRAME = 5  # bytes before the content of a frame


@dataclass(frozen=True)
class RecordedExchange:
    """A recorded call: request and answer.

    - `name`: the name of the call; see `CallFrames`.
    - `head`: the stored values of the request besides its body, such as the path and some headers.
    - `body`: the body of the request.
    - `answer`: the status and some headers of the answer. None if no answer came.
    - `answer_body`: the body of the answer, or the part of the body that came.
    - `end`: how the call ended, such as `{"how": "ended", "duration": 1.25, "error": ""}`. The
      duration is in seconds, or None if the recorder was killed.
    """

    name: str
    head: dict[str, Any]  # with JsonDict, mypy misreads `_KNOWN.get`
    body: bytes
    answer: JsonDict | None
    answer_body: bytes
    end: JsonDict


def waiting(folder: Path, size: int | None = None) -> list[Path]:
    """Return the files of the spool whose calls can be stored, the oldest first. With `size`,
    return at most that many files.

    Files that a running process still writes are locked, and are left out. Old files without calls
    are removed from the folder.
    """
    with os.scandir(folder) as files:  # thousands may wait
        names = [each.name for each in files]
    found = (name for name in names if name.endswith(".call") or _is_left(folder / name))
    oldest = sorted(found) if size is None else heapq.nsmallest(size, found)
    return [folder / name for name in oldest]


def _is_left(path: Path) -> bool:
    """Return whether a file has calls of a proxy that was killed. Old files without calls are
    removed.

    A running proxy opens files for its next calls. For a moment, these are empty and not locked.
    """
    if path.suffix != ".part":
        return False
    with suppress(OSError), path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        is_empty = file.read(1) in (b"", b"\0")
        if is_empty and time.time() - os.fstat(file.fileno()).st_mtime > EMPTY_SECONDS:
            path.unlink()
        return not is_empty and path.exists()  # it may just have been renamed to .call
    return False


class CallFrames(NamedTuple):
    """The bytes of one call in a file of the spool.

    The calls in the file `NAME.call` have the names "NAME", "NAME.1", "NAME.2" and so on.
    """

    name: str
    data: memoryview


def read(path: Path) -> list[CallFrames]:
    """Return the calls in a file of the spool. An incomplete end of the file is ignored.

    Raises FileNotFoundError.
    """
    data = memoryview(path.read_bytes())
    frames = [*_frames(data)]
    starts = [each.content.start - _FRAME for each in frames if each.kind == "H"]
    ends = [*starts[1:], frames[-1].content.stop if frames else 0]
    names = [path.stem, *(f"{path.stem}.{n}" for n in range(1, len(starts)))]
    found = [
        CallFrames(name, data[start:end])
        for name, start, end in zip(names, starts, ends, strict=False)
    ]
    return found or [CallFrames(path.stem, data)]


def exchange_of(call: CallFrames) -> RecordedExchange:
    """Decode the bytes of a call. Raises ValueError if the bytes are not a recorded call."""
    frames: dict[str, list[memoryview]] = {}
    for each in _frames(call.data):
        frames.setdefault(each.kind, []).append(call.data[each.content])
    parts = {kind: json.loads(bytes(frames[kind][0])) for kind in "HAE" if kind in frames}
    if not isinstance(parts.get("H"), dict):
        raise ValueError(f"the recorded call {call.name} has no request")
    bodies = {kind: b"".join(frames.get(kind, ())) for kind in "QB"}
    end = {**_KILLED, **parts.get("E", {})}
    return RecordedExchange(call.name, parts["H"], bodies["Q"], parts.get("A"), bodies["B"], end)


class _Frame(NamedTuple):
    """A frame: its letter, and where its content is in the file."""

    kind: str
    content: slice


def _frames(data: memoryview) -> Iterator[_Frame]:
    """Yield the frames of a file. If a call was interrupted, zeros follow its last frame."""
    place = 0
    while place + _FRAME <= len(data) and data[place]:
        (size,) = struct.unpack_from(">I", data, place + 1)
        end = place + _FRAME + size
        if end > len(data) or (size and _is_cut(data, end)):
            return
        yield _Frame(chr(data[place]), slice(place + _FRAME, end))
        place = end


def _is_cut(data: memoryview, end: int) -> bool:
    """Return whether only zeros follow the position `end`: then only a part of the frame was
    written.
    """
    return data[end - 1] == 0 and not bytes(data[end:]).strip(b"\0")


def call_of(exchange: RecordedExchange) -> NewCall | Dropped:
    """Convert a recorded call to a model call for the database. If the call cannot be stored,
    return the reason.
    """
    head = exchange.head
    if "passed" in head:
        return Dropped(DropReason.PASSED, str(head["passed"]))
    if "unwritten" in head:
        return Dropped(DropReason.UNWRITTEN, count=int(head["unwritten"]))
    if exchange.end.get("is_cut"):
        return Dropped(DropReason.TOO_LARGE, Source.RECORDER)
    if encoding := _undecodable(exchange, "Q"):
        return Dropped(DropReason.ENCODING, encoding)
    format, model = _FORMATS[routes.call_of_path(head["path"])], routes.model_of_path(head["path"])
    body = read_body(exchange.body, OWN_FIELDS[format][0])
    if not is_request(body.request, model):
        return Dropped(DropReason.UNREADABLE, Source.RECORDER)
    return _call(exchange, body, format, model)


def _undecodable(exchange: RecordedExchange, kind: str) -> str:
    """Return the encoding of a body that cannot be decoded, or ""."""
    return str(exchange.end.get("undecodable", {}).get(kind, ""))


def _call(exchange: RecordedExchange, body: ReadBody, format: str, model: str) -> NewCall:
    request = body.request
    answer, is_ended = _answer(exchange, format)
    answer, in_pieces = _without_secrets(exchange, answer)
    how = exchange.end["how"]
    has_ended = how == "ended" or is_ended
    error = _error(exchange, answer) or ("" if has_ended else str(exchange.end["error"]))
    response = answer if exchange.answer and exchange.answer["status"] < 400 else None
    headers = {
        **(exchange.answer or {}).get("headers", {}),
        **exchange.head["headers"],
    }
    finish = finish_in(response, format)
    removed = int(exchange.end.get("removed", 0)) + in_pieces
    return NewCall(
        key=key_of(exchange.name),
        source=Source.RECORDER,
        format=format,
        sent=SentRequest(request, body.style, headers, is_exact=removed == 0, removed=removed),
        received=ReceivedAnswer(
            None if response and error_in(response) else response,
            usage_in(response, format),
            finish=finish if has_ended else how,
            error=error,
            duration=exchange.end["duration"],
        ),
        at=datetime.fromtimestamp(exchange.head["at"], UTC),
        provider=_KNOWN.get(exchange.head["provider"], exchange.head["provider"])[:64],
        model=model_in(request) or model[:255],
        session=exchange.head["conversation"][:1000] or session_in(request),
    )


def key_of(name: str) -> str:
    """Return the unique key of a recorded call in the database, so that no call is stored twice.
    `name` is `CallFrames.name`.
    """
    return f"recorder:{name}"


def _without_secrets(exchange: RecordedExchange, answer: JsonValue) -> tuple[JsonValue, int]:
    """Return an answer without the secrets that were divided between events of a stream, and the
    number of removals.
    """
    if not (found := exchange.head.get("fingerprints")):
        return answer, 0
    fingerprints = Fingerprints(**found)
    places = 0

    def cleaned(value: JsonValue) -> JsonValue:
        nonlocal places
        if isinstance(value, str):
            value, count = fingerprints.removed_from(value)
            places += count
            return value
        if isinstance(value, dict):
            return {name: cleaned(each) for name, each in value.items()}
        return [*map(cleaned, value)] if isinstance(value, list) else value

    return cleaned(answer), places


def _answer(exchange: RecordedExchange, format: str) -> tuple[JsonValue, bool]:
    """Return the answer as JSON, and whether it is complete."""
    body = exchange.answer_body
    if body.lstrip()[:1] == b"{":
        found = loaded(body)
        return found, isinstance(found, dict)
    return streams.answer_of(body, format)


def _error(exchange: RecordedExchange, answer: JsonValue) -> str:
    """Return the error message of a call without an answer: that of the provider, or the HTTP
    status.
    """
    status = exchange.answer["status"] if exchange.answer else 200
    message = error_in(answer)
    if encoding := _undecodable(exchange, "B"):
        message = f"the answer has an encoding that cannot be decoded: {encoding}"
    if status >= 400:
        words = message or exchange.answer_body[:2_000].decode("utf-8", "replace").strip()
        return f"{status}: {words}" if words else str(status)
    if not message and answer is None and exchange.end["how"] == "ended":
        return f"the answer {'cannot be read' if exchange.answer_body.strip() else 'is empty'}"
    return message
