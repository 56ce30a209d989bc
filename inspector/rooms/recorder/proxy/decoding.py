"""Decodes compressed HTTP bodies piece by piece: gzip, deflate, br and zstd."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import brotli

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

AT_ONCE = 2**16  # bytes that a decoder returns at a time


class _Decoder(Protocol):
    def pieces(self, data: bytes) -> Iterator[bytes]:
        """Yield the decoded content of these bytes, in pieces of a bounded size."""

    def is_whole(self) -> bool: ...


class _Zlib:
    """Decodes gzip, also of several members one after the other, and deflate with or without zlib's
    header.
    """

    def __init__(self, is_gzip: bool) -> None:
        self._is_gzip = is_gzip
        self._part: zlib._Decompress | None = None
        self._begun = b""
        self._is_behind = False  # a member, where zeros may stand

    def pieces(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._part is None and not (data := self._begin(data)):
                return
            part = self._part
            assert part is not None
            yield part.decompress(data, AT_ONCE)
            while part.unconsumed_tail:
                yield part.decompress(part.unconsumed_tail, AT_ONCE)
            data = b""
            if part.eof:
                data = part.unused_data if self._is_gzip else b""
                self._part, self._is_behind = None if self._is_gzip else part, True

    def _begin(self, data: bytes) -> bytes:
        """Begin a member as soon as its first two bytes are known."""
        data = self._begun + data
        data = data.lstrip(b"\0") if self._is_behind else data
        self._begun = data if len(data) < 2 else b""
        if len(data) < 2:
            return b""
        bits = 16 + zlib.MAX_WBITS
        if not self._is_gzip:
            has_frame = data[0] & 15 == 8 and (data[0] * 256 + data[1]) % 31 == 0
            bits = zlib.MAX_WBITS if has_frame else -zlib.MAX_WBITS
        self._part = zlib.decompressobj(bits)
        return data

    def is_whole(self) -> bool:
        return not self._begun and (self._part is None or self._part.eof)


class _Brotli:
    def __init__(self) -> None:
        self._part = brotli.Decompressor()
        self._has_begun = False

    def pieces(self, data: bytes) -> Iterator[bytes]:
        self._has_begun = self._has_begun or bool(data)
        while piece := self._part.process(data, output_buffer_limit=AT_ONCE):
            yield piece
            data = b""

    def is_whole(self) -> bool:
        return not self._has_begun or self._part.is_finished()


class _Zstd:
    """Decodes zstd, also of several frames one after the other."""

    def __init__(self) -> None:
        self._part: zstd.ZstdDecompressor | None = None

    def pieces(self, data: bytes) -> Iterator[bytes]:
        while data:
            part = self._part = self._part or zstd.ZstdDecompressor()
            yield part.decompress(data, AT_ONCE)
            while not part.needs_input and not part.eof:
                yield part.decompress(b"", AT_ONCE)
            data = part.unused_data if part.eof else b""
            self._part = None if part.eof else part

    def is_whole(self) -> bool:
        return self._part is None


_DECODERS: Mapping[str, Callable[[], _Decoder]] = {
    "gzip": lambda: _Zlib(is_gzip=True),
    "x-gzip": lambda: _Zlib(is_gzip=True),
    "deflate": lambda: _Zlib(is_gzip=False),
    "br": _Brotli,
    "zstd": _Zstd,
}
KNOWN = {*_DECODERS, "identity"}
_ERRORS = (zlib.error, brotli.error, zstd.ZstdError, EOFError)


class Body:
    """Decodes the body of a request or an answer. `encoding` is the value of Content-Encoding.

    `undecodable` is "" while decoding works. After an error, it has the encodings that could not be
    decoded, such as "gzip".
    """

    def __init__(self, encoding: str = "") -> None:
        self.undecodable = ""
        self._names: Sequence[str] = ()
        self._decoders: Sequence[_Decoder] = ()
        if not encoding:
            return
        names = [each.strip().lower() for each in encoding.split(",")]
        self._names = [each for each in names if each not in ("", "identity")]
        self.undecodable = next((each for each in self._names if each not in KNOWN), "")
        known = [] if self.undecodable else self._names
        self._decoders = [_DECODERS[each]() for each in reversed(known)]

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """Yield the decoded contents of some bytes. Once `undecodable` is set, yield nothing."""
        if self.undecodable:
            return
        found: Iterable[bytes] = (data,)
        for decoder in self._decoders:
            found = _through(decoder, found)
        try:
            yield from found
        except _ERRORS:
            self.undecodable = ", ".join(self._names)

    def end(self) -> None:
        """Note the end of the body. If the compressed data is incomplete, set `undecodable`."""
        if not self.undecodable and not all(each.is_whole() for each in self._decoders):
            self.undecodable = ", ".join(self._names)


def _through(decoder: _Decoder, pieces: Iterable[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        yield from decoder.pieces(piece)
