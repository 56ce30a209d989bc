"""Computes the tokens of pictures by the rules in OpenAI's guide "Images and vision".

Most models count tiles. A picture costs a base amount, plus an amount for each tile of 512 x 512
pixels. The picture is first scaled down to fit into 2048 x 2048, and then to a shorter side of at
most 768. With `DetailLevel.LOW`, a picture costs only the base amount.

Some small models, such as gpt-4.1-mini, count patches of 32 x 32 pixels. A picture with more than
1,536 patches is scaled down. Each patch costs 1.62 to 2.46 tokens, depending on the model. The
level of detail does not matter.
"""

from __future__ import annotations

import base64
import binascii
import io
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from chatmemory.messages.contents import DetailLevel, Image

UNKNOWN_SIZE = (1024, 1024)
_HEADER_CHARACTERS = 400_000
# OpenAI's formats: PNG, GIF, JPEG, WebP. imagesize reads more, some of them slowly when hostile.
_SIGNATURES = (b"\x89PNG\r\n\x1a\n", b"GIF87a", b"GIF89a", b"\xff\xd8", b"RIFF")
_VP8_SIDE = 0x3FFF


class PictureRule(Protocol):
    """A rule that computes the tokens of a picture. A picture of unknown size counts as 1024 x 1024
    pixels.

    `name` is the name of a model that uses the rule, such as "gpt-4.1-mini". Other models, such as
    gpt-5-mini, can use the same rule. `name` is "" for the rule that most models use.
    """

    @property
    def name(self) -> str: ...

    def tokens(self, image: Image, level: DetailLevel) -> int: ...


@dataclass(frozen=True)
class Tiles:
    base: int = 85
    per_tile: int = 170
    name: str = ""

    def tokens(self, image: Image, level: DetailLevel) -> int:
        if level is DetailLevel.LOW:
            return self.base
        width, height = _size(image) or UNKNOWN_SIZE
        scale = min(1, 2048 / max(width, height))
        scale = min(scale, 768 / min(width, height))
        tiles = math.ceil(width * scale / 512) * math.ceil(height * scale / 512)
        return self.base + self.per_tile * tiles


@dataclass(frozen=True)
class Patches:
    factor: Fraction
    name: str

    def tokens(self, image: Image, level: DetailLevel) -> int:
        width, height = _size(image) or UNKNOWN_SIZE
        if _patches(width, height) > PATCHES_MAX:
            scale = math.sqrt(SIDE**2 * PATCHES_MAX / (width * height))
            # A little smaller still, so that one of its sides is a whole number of patches.
            across, down = width * scale / SIDE, height * scale / SIDE
            scale *= min(_whole(across), _whole(down))
            width, height = max(1, int(width * scale)), max(1, int(height * scale))
        return math.ceil(min(_patches(width, height), PATCHES_MAX) * self.factor)


SIDE, PATCHES_MAX = 32, 1536


def _patches(width: int, height: int) -> int:
    return math.ceil(width / SIDE) * math.ceil(height / SIDE)


def _whole(patches: float) -> float:
    """Return the factor that scales a side to a whole number of patches, at least one."""
    return math.floor(patches) / patches if patches >= 1 else 1.0


_RULES: dict[str, PictureRule] = {
    "gpt-4o-mini": Tiles(2833, 5667, "gpt-4o-mini"),
    "gpt-4.1-mini": Patches(Fraction("1.62"), "gpt-4.1-mini"),
    "gpt-4.1-nano": Patches(Fraction("2.46"), "gpt-4.1-nano"),
    "gpt-5-mini": Patches(Fraction("1.62"), "gpt-4.1-mini"),
    "gpt-5-nano": Patches(Fraction("2.46"), "gpt-4.1-nano"),
    "o4-mini": Patches(Fraction("1.72"), "o4-mini"),
}


def picture_rule(model_name: str) -> PictureRule:
    """Return the rule by which a model counts the tokens of pictures. The model's name may end with
    a date or a suffix.
    """
    known = (rule for name, rule in _RULES.items() if model_name.startswith(name))
    return next(known, Tiles())


def _size(image: Image) -> tuple[int, int] | None:
    """Return width and height from the first bytes of an inline picture, if they can be read."""
    data = image.base64_data
    if not data and image.url and image.url.startswith("data:"):
        data = image.url.partition(";base64,")[2]
    if not data:
        return None
    characters = "".join(data[:_HEADER_CHARACTERS].split())  # base64 may be wrapped in lines
    try:
        header = base64.b64decode(characters[: len(characters) // 4 * 4])
    except (binascii.Error, ValueError):
        return None
    if not header.startswith(_SIGNATURES):
        return None
    import imagesize  # with it come modules for HTTP and mail, which nobody needs who counts texts

    width, height = imagesize.get(io.BytesIO(header), exif_rotation=False)
    if width > 0 and header.startswith(b"RIFF") and header[12:16] == b"VP8 ":
        # The upper two bits of each side are a hint for scaling that imagesize does not remove.
        width, height = width & _VP8_SIDE, height & _VP8_SIDE
    return (width, height) if width > 0 and height > 0 else None
