"""How many tokens a picture costs, by OpenAI's published tile rule for gpt-4o and its kin.

Low detail costs a base amount. Otherwise the picture is scaled to fit 2048 x 2048, then until its
shorter side is at most 768, and every tile of 512 x 512 costs more.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct

from chatmemory.core.messages import DetailLevel, Image

BASE = 85
PER_TILE = 170
UNKNOWN_SIZE = (1024, 1024)
_HEADER_CHARACTERS = 400_000


def image_tokens(image: Image, level: DetailLevel) -> int:
    """Tokens of a picture; one whose size cannot be read counts as 1024 x 1024."""
    if level is DetailLevel.LOW:
        return BASE
    width, height = _size(image) or UNKNOWN_SIZE
    scale = min(1, 2048 / max(width, height))
    scale = min(scale, 768 / min(width, height))
    tiles = math.ceil(width * scale / 512) * math.ceil(height * scale / 512)
    return BASE + PER_TILE * tiles


def _size(image: Image) -> tuple[int, int] | None:
    """Width and height from the first bytes of an inline PNG, GIF, JPEG or WebP."""
    data = image.base64_data or _inline(image.url)
    if not data:
        return None
    try:
        header = base64.b64decode(data[: _HEADER_CHARACTERS // 4 * 4] + "==")
        size = _read_size(header)
    except (binascii.Error, struct.error, ValueError, IndexError):
        return None
    return size if size and min(size) > 0 else None


def _inline(url: str | None) -> str | None:
    return url.partition(";base64,")[2] if url and url.startswith("data:") else None


def _read_size(header: bytes) -> tuple[int, int] | None:
    if header.startswith(b"\x89PNG\r\n\x1a\n"):
        return struct.unpack(">II", header[16:24])
    if header[:6] in (b"GIF87a", b"GIF89a"):
        return struct.unpack("<HH", header[6:10])
    if header.startswith(b"\xff\xd8"):
        return _jpeg_size(header)
    if header[:4] == b"RIFF" and header[8:12] == b"WEBP":
        return _webp_size(header)
    return None


def _jpeg_size(header: bytes) -> tuple[int, int] | None:
    position = 2
    while position + 9 <= len(header):
        marker, length = header[position + 1], int.from_bytes(header[position + 2 : position + 4])
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", header[position + 5 : position + 9])
            return width, height
        position += 2 + max(length, 2)
    return None


def _webp_size(header: bytes) -> tuple[int, int] | None:
    kind = header[12:16]
    if kind == b"VP8X":
        return (
            1 + int.from_bytes(header[24:27], "little"),
            1 + int.from_bytes(header[27:30], "little"),
        )
    if kind == b"VP8L":
        bits = int.from_bytes(header[21:25], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    width, height = struct.unpack("<HH", header[26:30])
    return width & 0x3FFF, height & 0x3FFF
