"""Writes the files of the spool (the folder of recorded calls): one file for each call.

A file consists of frames: a letter, the length in four bytes, and the content; `recording` lists
them. A file is locked while its call is in progress, and is renamed to `.call` afterwards.
"""

from __future__ import annotations

import fcntl
import itertools
import json
import logging
import os
import struct
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, Thread

logger = logging.getLogger("chatmemory.recorder")

_BUFFERED = 2**20
_AHEAD = 16  # files that are opened before their calls
_BEHIND = 64  # files of calls that have ended and that wait to be closed
_ROOM = bytes(2**15)  # zeros, which a call overwrites in a third of the time of new pages

_size = struct.Struct(">I").pack
_numbers = itertools.count()


class Unwritten:
    """Counts the calls that could not be written. The next file that can be written contains this
    number.
    """

    def __init__(self) -> None:
        self._lock, self._count = Lock(), 0

    def add(self, count: int) -> None:
        with self._lock:
            self._count += count

    def write(self, folder: Path) -> None:
        """Write the number to a file of its own, unless it is 0 or the file cannot be written."""
        with self._lock:
            count, self._count = self._count, 0
        if count:
            file = SpoolFile(folder, self, count)
            file.begin(json.dumps({"unwritten": count}).encode())
            file.end(b"{}")
            file.close()


class SpoolFile:
    """A file of the spool, which can be opened before its call begins.

    If the file cannot be written, the call continues without it. `weight` is the number of calls
    that are then counted as lost.
    """

    def __init__(self, folder: Path, unwritten: Unwritten, weight: int = 1) -> None:
        self._folder, self._unwritten, self._weight = folder, unwritten, weight
        self._waiting: list[bytes] = []
        self._size = self._written = 0
        self._name, self._path = "", f"{folder}/{_new_name()}.part"
        self._error: OSError | None = None
        self._file: int | None = None
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        try:
            self._file = os.open(self._path, flags, 0o600)
            fcntl.flock(self._file, fcntl.LOCK_EX)  # until the call or this process ends
        except OSError as error:
            self._error = error

    @property
    def is_open(self) -> bool:
        return self._file is not None

    def make_room(self) -> None:
        """Reserve space by filling the file with zeros, which are cut off when it is closed."""
        if self._file is not None:
            with suppress(OSError):  # the call itself finds out
                os.pwrite(self._file, _ROOM, 0)

    def begin(self, head: bytes) -> None:
        """Begin a call. The time of its start becomes the name of the file."""
        self._name = _new_name()
        if self._error:
            self.give_up(self._error)
        self.add(b"H", head)

    def add(self, kind: bytes, data: bytes) -> None:
        """Add a frame. It is written with the next `flush`, or at once if many bytes wait."""
        self._waiting += (kind, _size(len(data)), data)
        self._size += len(data)
        if self._size > _BUFFERED:
            self.flush()

    def flush(self) -> None:
        data = b"".join(self._waiting)
        self._waiting, self._size = [], 0
        if self._file is None or not data:
            return
        try:
            if os.pwrite(self._file, data, self._written) != len(data):
                raise OSError("a part was written")
            self._written += len(data)
        except OSError as error:
            self.give_up(error)

    def end(self, end: bytes) -> None:
        """Write how the call ended, as JSON. This completes the file."""
        self.add(b"E", end)
        self.flush()

    def close(self) -> None:
        """Close the file, or remove it if no call has begun."""
        if self._file is None:
            return
        file, self._file = self._file, None
        with suppress(OSError):
            if self._name:
                os.ftruncate(file, self._written)
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


class FileKeeper:
    """Opens files before calls begin and closes them after calls have ended, in its own thread. So
    no call waits for the file system.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._unwritten = folder, Unwritten()
        self._ready: deque[SpoolFile] = deque()
        self._ended: SimpleQueue[SpoolFile | None] = SimpleQueue()
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def take(self) -> SpoolFile:
        """Return an open file for a new call."""
        with suppress(IndexError):
            return self._ready.popleft()
        return self._new()

    def give_back(self, file: SpoolFile) -> None:
        """Have the file of an ended call closed soon by the thread."""
        if self._ended.qsize() < _BEHIND:
            self._ended.put(file)
        else:
            file.close()

    def end(self) -> None:
        """Close all files."""
        self._ended.put(None)
        self._thread.join()

    def _new(self) -> SpoolFile:
        return SpoolFile(self._folder, self._unwritten)

    def _run(self) -> None:
        while file := self._ended.get():
            file.close()
            self._unwritten.write(self._folder)
            if len(self._ready) < _AHEAD and (new := self._new()).is_open:
                new.make_room()
                self._ready.append(new)
        while self._ready:
            self._ready.popleft().close()


def _new_name() -> str:
    return f"{time.time_ns()}-{os.getpid()}-{next(_numbers)}"
