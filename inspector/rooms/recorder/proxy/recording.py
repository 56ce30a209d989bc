"""Writes each call that passes the proxy to a file of the spool.

A file has frames: a letter, the length in four bytes, and the content.

    H  the request without its body, as JSON          Q  a piece of its body
    A  the status and some headers of the answer      B  a piece of its body, unpacked
    E  how it ended, as JSON: {"how": "ended", "duration": 1.25}
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import struct
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from .headers import kept_headers

logger = logging.getLogger("chatmemory.recorder")

REMOVED = b"[removed]"
COPIED = 32 * 2**20  # bytes of a request, and of an answer; the rest is passed on, not recorded

_numbers = iter(range(2**62))


class Secrets:
    """Replaces the values of secret headers that are echoed in a stream of bytes."""

    def __init__(self, secrets: Sequence[bytes]) -> None:
        self._secrets, self._pending = secrets, b""

    def clean(self, data: bytes, is_last: bool = False) -> bytes:
        """Return bytes without secrets. A possible beginning of a secret is held back until more
        bytes come.
        """
        data = self._pending + data
        for secret in self._secrets:
            data = data.replace(secret, REMOVED)
        pending = 0 if is_last else max((_begun(data, each) for each in self._secrets), default=0)
        end = len(data) - pending
        self._pending = data[end:]
        return data[:end]


def _begun(data: bytes, secret: bytes) -> int:
    """Return the number of bytes at the end of the data that may begin a secret."""
    longest = min(len(data), len(secret) - 1)
    return next((n for n in range(longest, 0, -1) if data.endswith(secret[:n])), 0)


class Recording:
    """The file of one call. If it cannot be written, the call goes on without it."""

    def __init__(self, folder: Path, head: dict[str, Any], secrets: Sequence[bytes]) -> None:
        self._began = time.monotonic()
        self._sizes = dict.fromkeys("QB", 0)
        self._cleaners = {kind: Secrets(secrets) for kind in "QB"}
        self._unpack: Callable[[bytes], bytes] = bytes
        self._file: int | None = None
        self.is_ended = False
        self._path = folder / f"{time.time_ns()}-{os.getpid()}-{next(_numbers)}.part"
        with self._trying():
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
            self._file = os.open(self._path, flags, 0o600)
            fcntl.flock(self._file, fcntl.LOCK_EX)  # until the call or this process ends
        self._frame("H", json.dumps(head).encode())

    def request_piece(self, data: bytes) -> None:
        self._piece("Q", data)

    def answer(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        found = {name.lower(): value for name, value in headers}
        self._unpack = _unpacker(found.get(b"content-encoding", b"").decode("latin1").lower())
        self._frame("A", json.dumps({"status": status, "headers": kept_headers(headers)}).encode())

    def answer_piece(self, data: bytes) -> None:
        if self._sizes["B"] <= COPIED:
            with suppress(zlib.error):
                self._piece("B", self._unpack(data))

    def end(self, how: str, error: str = "") -> None:
        """Close the file. It is complete from then on."""
        if self.is_ended:
            return
        self.is_ended = True
        for kind, cleaner in self._cleaners.items():
            self._frame(kind, cleaner.clean(b"", is_last=True))
        end = {
            "how": how,
            "error": error,
            "duration": time.monotonic() - self._began,
            "is_cut": max(self._sizes.values()) > COPIED,
        }
        self._frame("E", json.dumps(end).encode())
        if self._file is not None:
            with self._trying():
                os.rename(self._path, self._path.with_suffix(".call"))
            with suppress(OSError):
                os.close(self._file)
            self._file = None

    def _piece(self, kind: str, data: bytes) -> None:
        self._sizes[kind] += len(data)
        if data and self._sizes[kind] <= COPIED:
            self._frame(kind, self._cleaners[kind].clean(data))

    def _frame(self, kind: str, data: bytes) -> None:
        if self._file is None or (kind in "QB" and not data):
            return
        with self._trying():
            whole = kind.encode() + struct.pack(">I", len(data)) + data
            if os.write(self._file, whole) != len(whole):
                raise OSError("a part was written")

    @contextmanager
    def _trying(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        """Drop the file; the call continues without it."""
        logger.warning("a call is not recorded: %s", error.strerror or error)
        if self._file is not None:
            with suppress(OSError):
                os.close(self._file)
            with suppress(OSError):
                os.unlink(self._path)
        self._file = None


def _unpacker(encoding: str) -> Callable[[bytes], bytes]:
    """Return a function that unpacks an answer piece by piece, each up to a bound."""
    if encoding not in ("gzip", "x-gzip", "deflate"):
        return bytes
    unpacker = zlib.decompressobj(32 + zlib.MAX_WBITS)
    return lambda data: unpacker.decompress(data, COPIED + 1)
