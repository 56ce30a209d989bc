"""Reads the files of the spool. The proxy writes one for each call."""

from __future__ import annotations

import fcntl
import json
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from inspector.rooms.calls.bodies import (
    ANTHROPIC,
    OPENAI,
    RESPONSES,
    error_in,
    finish_in,
    is_request,
    loaded,
    model_in,
    session_in,
    usage_in,
)
from inspector.rooms.calls.call import NewCall, Source
from inspector.rooms.recorder import streams

_FORMATS = {"completions": OPENAI, "responses": RESPONSES, "messages": ANTHROPIC}
_KNOWN = {"api.openai.com": "openai", "api.anthropic.com": "anthropic"}
_FRAME = 5  # bytes before the content of a frame


@dataclass(frozen=True)
class RecordedExchange:
    """The content of a file: the request, the answer if there is any, and how the call ended."""

    name: str
    head: dict[str, Any]
    body: bytes
    answer: dict[str, Any] | None
    answer_body: bytes
    end: dict[str, Any]


def waiting(folder: Path) -> list[Path]:
    """Return the files of ended calls, oldest first, and of calls whose proxy was killed.

    A proxy holds a lock on the file of each call in flight.
    """
    return sorted(path for path in folder.iterdir() if path.suffix == ".call" or _is_left(path))


def _is_left(path: Path) -> bool:
    if path.suffix != ".part":
        return False
    with suppress(OSError), path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return path.exists()  # otherwise it has just been renamed to .call
    return False


def read(path: Path) -> RecordedExchange:
    """Read a file. An incomplete frame at its end is left out.

    Raises ValueError for a file that the proxy has not written.
    """
    frames: dict[str, list[bytes]] = {}
    for kind, content in _frames(path.read_bytes()):
        frames.setdefault(kind, []).append(content)
    parts = {kind: json.loads(frames[kind][0]) for kind in "HAE" if kind in frames}
    if not isinstance(parts.get("H"), dict):
        raise ValueError(f"{path.name} has no request")
    bodies = {kind: b"".join(frames.get(kind, ())) for kind in "QB"}
    end = parts.get("E", {"how": "cut", "error": "the recorder was killed", "duration": None})
    return RecordedExchange(path.stem, parts["H"], bodies["Q"], parts.get("A"), bodies["B"], end)


def _frames(data: bytes) -> Iterator[tuple[str, bytes]]:
    place = 0
    while place + _FRAME <= len(data):
        (size,) = struct.unpack_from(">I", data, place + 1)
        end = place + _FRAME + size
        if end > len(data):
            return
        yield chr(data[place]), data[place + _FRAME : end]
        place = end


def call_of(exchange: RecordedExchange) -> NewCall | None:
    """Return the call of a file; None if its request cannot be read."""
    request = loaded(exchange.body)
    if not is_request(request) or exchange.end.get("is_cut"):
        return None
    format = _FORMATS[exchange.head["path"].rstrip("/").rpartition("/")[2]]
    answer, is_ended = _answer(exchange, format)
    how = exchange.end["how"]
    has_ended = how == "ended" or is_ended
    error = _error(exchange, answer) or ("" if has_ended else str(exchange.end["error"]))
    response = answer if exchange.answer and exchange.answer["status"] < 400 else None
    headers = {
        **(exchange.answer["headers"] if exchange.answer else {}),
        **exchange.head["headers"],
    }
    finish = finish_in(response, format)
    return NewCall(
        key=f"recorder:{exchange.name}",
        source=Source.RECORDER,
        format=format,
        request=request,
        response=None if response and error_in(response) else response,
        at=datetime.fromtimestamp(exchange.head["at"], UTC),
        provider=_KNOWN.get(exchange.head["provider"], exchange.head["provider"])[:64],
        model=model_in(request),
        duration=exchange.end["duration"],
        usage=usage_in(response, format),
        finish=finish if has_ended else how,
        error=error,
        session=exchange.head["conversation"] or session_in(request),
        body=exchange.body,
        headers=headers,
    )


def _answer(exchange: RecordedExchange, format: str) -> tuple[Any, bool]:
    """Return the answer as JSON, and whether it is complete."""
    body = exchange.answer_body
    if body.lstrip()[:1] == b"{":
        found = loaded(body)
        return found, isinstance(found, dict)
    return streams.answer_of(body, format)


def _error(exchange: RecordedExchange, answer: Any) -> str:
    """Return the message that came in place of an answer: the provider's, or its status."""
    message = error_in(answer)
    status = exchange.answer["status"] if exchange.answer else 200
    if status >= 400:
        words = message or exchange.answer_body[:2_000].decode("utf-8", "replace").strip()
        return f"{status}: {words}" if words else str(status)
    return message
