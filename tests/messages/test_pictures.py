"""Pictures are counted by OpenAI's rules, with sizes from the first bytes of inline data."""

from __future__ import annotations

import base64
import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import ImageContent, OpenAiTokenCountEstimator, UserMessage
from chatmemory.messages.contents import DetailLevel, Image
from chatmemory.messages.estimators.pictures import Tiles, picture_rule

from ..counting_calls import CountedLines

# What 300 x 1200 costs, scaled to 300 x 1200: one column of three tiles. An unknown size costs 765.
OF_300_X_1200 = 85 + 3 * 170
OF_UNKNOWN_SIZE = 765


def png(width: int, height: int) -> bytes:
    header = struct.pack(">II", width, height) + b"\x08\x06\0\0\0" + b"sum!"
    return b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + header


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\0\0\0"


def jpeg(width: int, height: int, before: bytes = b"", frame: int = 0xC0) -> bytes:
    start = struct.pack(">BBHBHHB", 0xFF, frame, 17, 8, height, width, 3)
    return b"\xff\xd8" + before + start + b"\0" * 9


def webp(kind: bytes, body: bytes) -> bytes:
    return b"RIFF\0\0\0\0WEBP" + kind + struct.pack("<I", len(body)) + body


def vp8(width: int, height: int) -> bytes:
    return webp(b"VP8 ", b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", width, height))


def vp8l(width: int, height: int) -> bytes:
    return webp(b"VP8L", b"\x2f" + struct.pack("<I", width - 1 | height - 1 << 14) + b"\0" * 5)


def vp8x(width: int, height: int) -> bytes:
    sides = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return webp(b"VP8X", b"\0" * 4 + sides)


APP0 = b"\xff\xe0" + struct.pack(">H", 16) + b"JFIF\0" + b"\0" * 9
TABLES = b"\xff\xc4" + struct.pack(">H", 2_000) + b"\0" * 1_998
PICTURES = {
    "png": png(300, 1200),
    "gif": gif(300, 1200),
    "jpeg": jpeg(300, 1200),
    "jpeg, progressive": jpeg(300, 1200, frame=0xC2),
    "jpeg behind segments": jpeg(300, 1200, APP0 + TABLES),
    "jpeg behind fill bytes": jpeg(300, 1200, APP0 + b"\xff\xff\xff"),
    "webp, lossy": vp8(300, 1200),
    "webp, lossy, with hints for scaling": vp8(300 | 0x4000, 1200 | 0x8000),
    "webp, lossless": vp8l(300, 1200),
    "webp, extended": vp8x(300, 1200),
}


image_tokens = Tiles().tokens


def tokens(data: bytes) -> int:
    image = Image(base64_data=base64.b64encode(data).decode())
    return image_tokens(image, DetailLevel.HIGH)


def inline(data: bytes, level: DetailLevel = DetailLevel.HIGH) -> int:
    url = "data:image/png;base64," + base64.b64encode(data).decode()
    return image_tokens(Image(url=url), level)


def test_pictures_cost_by_tiles():
    # OpenAI's published examples.
    assert tokens(png(1024, 1024)) == 765
    assert tokens(png(2048, 4096)) == 1105
    assert inline(png(4000, 4000), DetailLevel.LOW) == 85
    picture = ImageContent(Image(base64_data=base64.b64encode(png(2048, 4096)).decode()))
    message = UserMessage([replace(picture, detail_level=DetailLevel.HIGH)])
    estimator = OpenAiTokenCountEstimator("gpt-4o")
    assert estimator.estimate_token_count_in_message(message) == 4 + 1105


def cost(model: str, width: int, height: int, level: DetailLevel = DetailLevel.HIGH) -> int:
    data = base64.b64encode(png(width, height)).decode()
    return picture_rule(model).tokens(Image(base64_data=data), level)


@pytest.mark.parametrize(
    ("model", "width", "height", "tokens"),
    [
        ("gpt-4o-mini", 1024, 1024, 2833 + 4 * 5667),
        ("gpt-4o-mini-2024-07-18", 128, 64, 2833 + 5667),  # 8,512 with the 12 tokens of its text
        ("gpt-4.1-mini", 1024, 1024, 1659),  # 1,024 patches
        ("gpt-4.1-mini", 1800, 2400, 2353),  # 1,452 patches, as published
        ("gpt-4.1-mini", 128, 64, 13),
        ("gpt-4.1-nano", 128, 64, 20),
        ("gpt-4.1-nano-2025-04-14", 1024, 1024, 2520),
        ("o4-mini", 1024, 1024, 1762),
        ("gpt-5-mini", 4000, 4000, 2465),  # 39 x 39 patches
        ("gpt-5-nano", 100_000, 1, 3779),  # never more than 1,536
    ],
)
def test_small_models_count_otherwise(model, width, height, tokens):
    assert cost(model, width, height) == tokens


def test_low_detail_is_cheaper_where_tiles_are_counted():
    low = [cost(name, 900, 900, DetailLevel.LOW) for name in ("gpt-4o", "gpt-4o-mini", "o4-mini")]
    assert low == [85, 2833, cost("o4-mini", 900, 900)]


@given(st.sampled_from(["gpt-4.1-mini", "o4-mini"]), *[st.integers(1, 20_000)] * 2)
def test_a_picture_costs_no_more_than_all_patches(model, width, height):
    most = {"gpt-4.1-mini": 2489, "o4-mini": 2642}[model]
    assert 1 < cost(model, width, height) <= most


@pytest.mark.parametrize("picture", PICTURES.values(), ids=PICTURES.keys())
def test_the_size_is_read_of_a_whole_picture_and_of_one_cut_short_or_not(picture):
    assert tokens(picture) == inline(picture) == OF_300_X_1200
    costs = {tokens(picture[:length]) for length in range(len(picture))}
    assert costs <= {OF_300_X_1200, OF_UNKNOWN_SIZE}


def test_the_size_is_read_from_wrapped_base64():
    """Only a part of a long picture is decoded; line breaks must not shift the end of that part."""
    text = base64.b64encode(png(300, 1200) + b"\0" * 400_000).decode()
    for width in (75, 76, 77, 78):
        wrapped = "\n".join(text[at : at + width] for at in range(0, len(text), width))
        assert image_tokens(Image(base64_data=wrapped), DetailLevel.HIGH) == OF_300_X_1200


def test_a_picture_of_unknown_size_counts_as_a_square_of_1024():
    for image in (
        Image("https://example.org/cat.png"),
        Image(base64_data="!!"),
        Image(None, "QQ="),
    ):
        assert image_tokens(image, DetailLevel.AUTO) == OF_UNKNOWN_SIZE
    for make in (png, gif, jpeg, vp8):
        for sides in ((0, 1200), (300, 0), (0, 0)):
            assert tokens(make(*sides)) == OF_UNKNOWN_SIZE


@pytest.mark.parametrize(
    "data",
    [
        b"<svg width='" + b"9" * 400 + b"' height='5'>",
        b"P5 " + b"9" * 20_000,
        b"BM" + b"\xff" * 100,
        b"\0\0\0\x18ftypavif" + b"\0" * 100,
        b"II*\0" + b"\xff" * 1_000,
        webp(b"ANIM", b"\0" * 30),
        b"\xff\xd8" + b"\xff\xe0\0\2" * 7_000,
        b"\xff\xd8" + b"\xff" * 28_000,
        b"\xff\xd8" + b"\0" * 28_000,
    ],
    ids=["svg", "netpbm", "bmp", "avif", "tiff", "webp", "segments", "fill bytes", "zeros"],
)
def test_other_and_hostile_data_has_no_size_and_is_read_once(data):
    with CountedLines() as lines:
        assert tokens(data) == OF_UNKNOWN_SIZE
    assert lines.count < 1_000 + 10 * len(data)


@given(st.sampled_from([*PICTURES.values()]), st.binary(max_size=40), st.integers(0, 60))
def test_any_bytes_have_a_token_count(picture, noise, at):
    for data in (noise, picture[:at] + noise + picture[at + len(noise) :]):
        # Nothing costs more than 768 x 2048 pixels do.
        assert 85 < tokens(data) <= 85 + 8 * 170
