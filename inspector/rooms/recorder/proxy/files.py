"""Writes the files of the spool (the folder of recorded calls). A file has one call, or several
calls that began within 0.2 seconds.

A call consists of frames. A frame is a letter, a length in four bytes, and the content; see
`recording` for the letters. A file is locked while it is open. When the file is closed, its name
gets the ending `.call`.
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
from threading import Event, Lock, Thread

logger = logging.getLogger("chatmemory.recorder")

_BUFFERED = 2**20
_AHEAD = 8  # files that are opened before their calls
_BEHIND = 64  # files that wait to be closed
_ROOM = bytes(2**21)  # zeros, which a call overwrites in a third of the time of new pages
_FULL = 7 * 2**18  # bytes after which a file takes no further call
_SHARED_SECONDS = 0.2  # in which a file takes further calls after its first one has begun

_size = struct.Struct(">I").pack
_numbers = itertools.count()


class Unwritten:
    """Counts the calls that could not be written, such as when the disk is full."""

    def __init__(self) -> None:
        self._lock, self._count = Lock(), 0

    def add(self, count: int) -> None:
        with self._lock:
            self._count += count

    def write(self, folder: Path) -> None:
        """Write the number of unwritten calls to a new file of the spool, and count from 0 again.
        If this fails, the number stays as it was. For 0 calls, no file is written.
        """
        with self._lock:
            count, self._count = self._count, 0
        if count:
            file = SpoolFile(folder, self, count)
            file.begin(json.dumps({"unwritten": count}).encode())
            file.end(b"{}")
            file.close()


class SpoolFile:
    """A file of the spool (the folder of recorded calls). The constructor opens the file; calls can
    begin later.

    If writing fails, the call is still passed on, and `weight` is added to the count in
    `unwritten`. `weight` is 1 for a call. For a file that only stores a number of unwritten calls,
    `weight` is this number.
    """

    def __init__(self, folder: Path, unwritten: Unwritten, weight: int = 1) -> None:
        self._folder, self._unwritten, self._weight = folder, unwritten, weight
        self._waiting: list[bytes] = []
        self._size = self._written = 0
        self._start = 0  # of the newest call
        self._name, self._path = "", f"{folder}/{_new_name()}.part"
        self._began = 0.0
        self.is_over = False
        self._error: OSError | None = None
        self._file: int | None = None
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        try:
            self._file = os.open(self._path, flags, 0o600)
            fcntl.flock(self._file, fcntl.LOCK_EX)  # until it is closed or this process ends
        except OSError as error:
            self._error = error

    @property
    def is_open(self) -> bool:
        return self._file is not None

    @property
    def has_one_call(self) -> bool:
        return self._start == 0 and self._name != ""

    @property
    def seconds_left(self) -> float:
        """The seconds that are left to begin another call in a file that already has a call. 0 or
        negative if this time is over.
        """
        return self._began + _SHARED_SECONDS - time.monotonic()

    @property
    def takes_more(self) -> bool:
        """Whether another call may be written to this file. False if the file is closed, full or
        too old.
        """
        is_new = not self._name
        return self.is_open and (is_new or (self._written < _FULL and self.seconds_left > 0))

    def make_room(self) -> None:
        """Reserve space on the disk with zeros, which are cut off when the file is closed."""
        if self._file is not None:
            with suppress(OSError):  # the call itself finds out
                os.pwrite(self._file, _ROOM, 0)

    def begin(self, head: bytes) -> None:
        """Begin a call. `head` is the content of its first frame, as JSON."""
        if not self._name:
            self._name, self._began = _new_name(), time.monotonic()
        self._start = self._written
        if self._error:
            self.give_up(self._error)
        self.add(b"H", head)

    def add(self, kind: bytes, data: bytes) -> None:
        """Add a frame to the call. `kind` is the letter of the frame. The frame is written by the
        next `flush`, or at once if many bytes wait.
        """
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
                raise OSError("the call was written only in part")
            self._written += len(data)
        except OSError as error:
            self.give_up(error)

    def end(self, end: bytes) -> None:
        """Write the last frame of a call. `end` says as JSON how the call ended."""
        self.add(b"E", end)
        self.flush()

    def close(self) -> None:
        """Close the file, or remove it if it has no call."""
        if self._file is None:
            return
        file, self._file = self._file, None
        with suppress(OSError):
            if self._written:
                os.ftruncate(file, self._written)
                os.rename(self._path, f"{self._folder}/{self._name}.call")
            else:
                os.unlink(self._path)
        os.close(file)

    def give_up(self, error: Exception) -> None:
        """Remove the unfinished call, close the file, and count the call as unwritten."""
        why = error.strerror if isinstance(error, OSError) else type(error).__name__
        logger.warning("a call was passed on, but not recorded: %s", why)
        self._unwritten.add(self._weight)
        self._written = self._start
        self.close()


class FileKeeper:
    """The supply of files for new calls. Its thread opens files before calls begin, and closes
    files after calls have ended, so that calls rarely wait.

    Calls that follow each other soon share a file, because creating a file is slow.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._unwritten = folder, Unwritten()
        self._ready: deque[SpoolFile] = deque()  # new files, and then those that have calls
        self._used: SimpleQueue[SpoolFile | None] = SimpleQueue()
        self._ending = Event()
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def take(self) -> SpoolFile:
        """Return a file for a new call: the file that was last given back, or else a new file."""
        with suppress(IndexError):
            return self._ready.pop()
        return self._new()

    def give_back(self, file: SpoolFile) -> None:
        """Give back the file of an ended call. The file takes further calls until it is full or too
        old, and is then closed.
        """
        if file.takes_more:
            self._ready.append(file)
            if file.has_one_call:
                self._used.put(file)
        elif self._used.qsize() < _BEHIND:
            file.is_over = True
            self._used.put(file)
        else:
            file.close()

    def end(self) -> None:
        """Close all files."""
        self._ending.set()
        self._used.put(None)
        self._thread.join()

    def _new(self) -> SpoolFile:
        return SpoolFile(self._folder, self._unwritten)

    def _run(self) -> None:
        while file := self._used.get():
            if not (file.is_over or self._has_taken_back(file)):
                continue
            file.close()
            self._unwritten.write(self._folder)
            while len(self._ready) < _AHEAD and (new := self._new()).is_open:
                new.make_room()
                self._ready.appendleft(new)
        while self._ready:
            self._ready.popleft().close()

    def _has_taken_back(self, file: SpoolFile) -> bool:
        """Wait until a file is too old for another call. Return True if no call is using the
        file.
        """
        self._ending.wait(max(0.0, file.seconds_left))
        with suppress(ValueError):
            self._ready.remove(file)
            return True
        return False


def _new_name() -> str:
    return f"{time.time_ns()}-{os.getpid()}-{next(_numbers)}"
