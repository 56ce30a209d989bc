"""Token counts of pictures, by OpenAI's published tile rule for gpt-4o and its relatives.

Low detail costs a base amount. Otherwise the picture is scaled to fit 2048 x 2048, then until its
shorter side is at most 768, and every tile of 512 x 512 costs more.
"""

from __future__ import annotations

import base64
import binascii
import io
import math

import imagesize

from chatmemory.core.contents import DetailLevel, Image

BASE = 85
PER_TILE = 170
UNKNOWN_SIZE = (1024, 1024)
_HEADER_CHARACTERS = 400_000
# OpenAI's formats: PNG, GIF, JPEG, WebP. imagesize reads more, some of them slowly when hostile.
_SIGNATURES = (b"\x89PNG\r\n\x1a\n", b"GIF87a", b"GIF89a", b"\xff\xd8", b"RIFF")
_VP8_SIDE = 0x3FFF


def image_tokens(image: Image, level: DetailLevel) -> int:
    """Return the tokens of a picture; one whose size cannot be read counts as 1024 x 1024."""
    if level is DetailLevel.LOW:
        return BASE
    width, height = _size(image) or UNKNOWN_SIZE
    scale = min(1, 2048 / max(width, height))
    scale = min(scale, 768 / min(width, height))
    tiles = math.ceil(width * scale / 512) * math.ceil(height * scale / 512)
    return BASE + PER_TILE * tiles


def _size(image: Image) -> tuple[int, int] | None:
    """Return width and height from the first bytes of an inline picture, where they are there."""
    data = image.base64_data or _inline(image.url)
    if not data:
        return None
    characters = "".join(data[:_HEADER_CHARACTERS].split())  # base64 may be wrapped in lines
    try:
        header = base64.b64decode(characters[: len(characters) // 4 * 4])
    except (binascii.Error, ValueError):
        return None
    if not header.startswith(_SIGNATURES):
        return None
    width, height = imagesize.get(io.BytesIO(header), exif_rotation=False)
    if width > 0 and header.startswith(b"RIFF") and header[12:16] == b"VP8 ":
        # The upper two bits of each side are a hint for scaling, which imagesize leaves in.
        width, height = width & _VP8_SIDE, height & _VP8_SIDE
    return (width, height) if width > 0 and height > 0 else None


def _inline(url: str | None) -> str | None:
    return url.partition(";base64,")[2] if url and url.startswith("data:") else None
