"""Writes each call that passes the proxy to a file of the spool.

A file has frames: a letter, the length in four bytes, and the content.

    H  the request without its body, as JSON          Q  a piece of its body
    A  the status and some headers of the answer      B  a piece of its body
    E  how it ended, as JSON: {"how": "ended", "duration": 1.25, "removed": 0, …}

Bodies are decoded, and have no secret of the headers. A request that passes unrecorded has a file
without a body, and so have calls that could not be written: their number.
"""

from __future__ import annotations

import fcntl
import itertools
import json
import logging
import os
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from threading import Lock
from typing import Any, Concatenate, ParamSpec

from .decoding import Body
from .headers import CONVERSATION, ClientRequest, Headers, kept_headers, value_of
from .secrets import Cleaner, Fingerprints, Secrets, secrets_of, secrets_of_answer

logger = logging.getLogger("chatmemory.recorder")

COPIED = 32 * 2**20  # bytes of a request, and of an answer; the rest is passed on, not recorded
_BUFFERED = 2**20
_KEPT = 500  # characters of a header
P = ParamSpec("P")

_numbers = itertools.count()


class Unwritten:
    """The number of calls that could not be written. The next file that can be written contains
    it.
    """

    def __init__(self) -> None:
        self._lock, self._count = Lock(), 0

    def add(self, count: int) -> None:
        with self._lock:
            self._count += count

    def write(self, folder: Path) -> None:
        """Write the number to a file, if it is not 0 and there is room."""
        with self._lock:
            count, self._count = self._count, 0
        if count:
            file = SpoolFile(folder, self, count)
            file.begin({"unwritten": count})
            file.end({})
            file.close()


class SpoolFile:
    """A file of the spool, which can be opened before its call begins.

    If the file cannot be written, its call goes on without it. `weight` is the number of calls that
    are then lost.
    """

    def __init__(self, folder: Path, unwritten: Unwritten, weight: int = 1) -> None:
        self._folder, self._unwritten, self._weight = folder, unwritten, weight
        self._waiting: list[bytes] = []
        self._size = 0
        self._name, self._path = "", f"{folder}/{_new_name()}.part"
        self._error: OSError | None = None
        self._file: int | None = None
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
        try:
            self._file = os.open(self._path, flags, 0o600)
            fcntl.flock(self._file, fcntl.LOCK_EX)  # until the call or this process ends
        except OSError as error:
            self._error = error

    def begin(self, head: dict[str, Any]) -> None:
        """Begin a call, whose time is in the name of the file."""
        self._name = _new_name()
        if self._error:
            self.give_up(self._error)
        self.add("H", json.dumps(head).encode())

    def add(self, kind: str, data: bytes) -> None:
        """Add a frame, which is written with the next `flush`, or now if many bytes wait."""
        self._waiting += (kind.encode() + struct.pack(">I", len(data)), data)
        self._size += len(data)
        if self._size > _BUFFERED:
            self.flush()

    def flush(self) -> None:
        data = b"".join(self._waiting)
        self._waiting, self._size = [], 0
        if self._file is None or not data:
            return
        try:
            if os.write(self._file, data) != len(data):
                raise OSError("a part was written")
        except OSError as error:
            self.give_up(error)

    def end(self, end: dict[str, Any]) -> None:
        """Write how the call ended. The file is complete from then on."""
        self.add("E", json.dumps(end).encode())
        self.flush()

    def close(self) -> None:
        """Close the file, or remove it if no call has begun."""
        if self._file is None:
            return
        file, self._file = self._file, None
        with suppress(OSError):
            if self._name:
                os.rename(self._path, f"{self._folder}/{self._name}.call")
            else:
                os.unlink(self._path)
        os.close(file)

    def give_up(self, error: Exception) -> None:
        """Remove the file, and count its calls as unwritten."""
        why = error.strerror if isinstance(error, OSError) else type(error).__name__
        logger.warning("a call is not recorded: %s", why)
        self._unwritten.add(self._weight)
        if self._file is not None:
            with suppress(OSError):
                os.unlink(self._path)
            os.close(self._file)
        self._file = None


def _new_name() -> str:
    return f"{time.time_ns()}-{os.getpid()}-{next(_numbers)}"


class _Copy:
    """The copy of a body: decoded, without secrets, and up to a bound."""

    def __init__(self, kind: str, file: SpoolFile, secrets: Secrets) -> None:
        self.cleaner = Cleaner(secrets)
        self.body = Body()
        self._kind, self._file, self._size = kind, file, 0

    @property
    def is_cut(self) -> bool:
        return self._size > COPIED

    def add(self, data: bytes) -> None:
        if self.is_cut:
            return
        for piece in self.body.pieces(data):
            self._size += len(piece)
            if self.is_cut:
                return
            self._write(self.cleaner.clean(piece))

    def end(self, is_whole: bool = True) -> None:
        if is_whole:
            self.body.end()
        self._write(self.cleaner.clean(b"", is_last=True))

    def _write(self, data: bytes) -> None:
        if data:
            self._file.add(self._kind, data)


def _harmless(method: Callable[Concatenate[Recording, P], None]) -> Callable[..., None]:
    """Let a fault of the recording end the recording, and not the call."""

    @wraps(method)
    def tried(self: Recording, *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            method(self, *args, **kwargs)
        except Exception as error:
            self.give_up(error)

    return tried


class Recording:
    """The recording of one call. `times` are its start and its duration, if it has ended before."""

    def __init__(
        self,
        file: SpoolFile,
        request: ClientRequest,
        provider: str,
        times: tuple[float, float] | None = None,
    ) -> None:
        self._began = time.monotonic()
        self._duration = times[1] if times else None
        self.is_ended = False
        self._secrets = secrets = secrets_of(request.headers, request.target)
        head = {
            "at": times[0] if times else time.time(),
            "path": self._clean(request.path),
            "provider": provider,
            "conversation": self._clean(request.header(CONVERSATION).decode("utf-8", "replace")),
            "headers": self._kept(request.headers),
        }
        if secrets:
            head["fingerprints"] = Fingerprints.of(secrets).as_json()
        self._file = file
        file.begin(head)
        self._request = _Copy("Q", self._file, secrets)
        self._answer = _Copy("B", self._file, secrets)
        self._request.body = Body(value_of(request.headers, b"content-encoding").decode("latin1"))

    def _clean(self, text: str) -> str:
        return self._secrets.removed_from(text) if text else ""

    def _kept(self, headers: Headers) -> dict[str, str]:
        return {name: self._clean(value)[:_KEPT] for name, value in kept_headers(headers).items()}

    def give_up(self, error: Exception) -> None:
        self.is_ended = True
        self._file.give_up(error)

    @_harmless
    def request_piece(self, data: bytes, is_last: bool) -> None:
        """Write a piece of the request before it is passed on."""
        if data:
            self._request.add(data)
        if is_last:
            self._request.end()
        self._file.flush()

    @_harmless
    def answer(self, status: int, headers: Headers) -> None:
        """Keep the head of the answer, to be written with its first piece."""
        self._secrets = secrets_of_answer(headers, self._secrets)
        self._answer.cleaner.secrets = self._secrets
        self._answer.body = Body(value_of(headers, b"content-encoding").decode("latin1"))
        head = {"status": status, "headers": self._kept(headers)}
        self._file.add("A", json.dumps(head).encode())

    @_harmless
    def answer_piece(self, data: bytes, is_last: bool) -> None:
        """Write a piece of the answer before it is passed back."""
        if data:
            self._answer.add(data)
        if is_last:
            self._answer.end()
            self.end("ended")
        else:
            self._file.flush()

    @_harmless
    def end(self, how: str, error: str = "") -> None:
        """Write how the call ended, before the last bytes are passed back."""
        if self.is_ended:
            return
        self.is_ended = True
        copies = (self._request, self._answer)
        for each in copies:
            each.end(is_whole=False)
        request, answer = (each.body.undecodable for each in copies)
        end = {
            "how": how,
            "error": self._clean(error),
            "duration": self._duration or time.monotonic() - self._began,
            "is_cut": any(each.is_cut for each in copies),
            "removed": sum(each.cleaner.removed for each in copies),
            "undecodable": {"Q": self._clean(request), "B": self._clean(answer)},
        }
        self._file.end(end)

    def close(self) -> None:
        """Close the file, after the last bytes were passed back."""
        self._file.close()


def count_passed(file: SpoolFile, request: ClientRequest) -> None:
    """Record in the file that a request passed without being recorded, by the name of its path."""
    if name := request.passed_name:
        secrets = secrets_of(request.headers, request.target)
        file.begin({"passed": secrets.removed_from(name)})
        file.end({})
    file.close()
