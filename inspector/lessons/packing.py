"""Chats in links: a script, compressed, in the characters that an address may have.

A link comes from anybody, so unpacking stops at the longest chat, however much a link expands to.
"""

from __future__ import annotations

import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode

from chatmemory import InvalidValue

CHARACTERS_MAX = 8_000
PACKED_MAX = 5_800  # a link of 6,000 characters, less its address and the other fields
_BYTES_MAX = 4 * CHARACTERS_MAX
_DAMAGED = "This link is damaged: ask for it again, or write a chat."
_TOO_LONG = f"A chat may have {CHARACTERS_MAX:,} characters: leave something out."


def pack(script: str) -> str:
    """Return a script as a part of a link. Raises InvalidValue if it is too long for one."""
    _check(script)
    packed = urlsafe_b64encode(zlib.compress(_encoded(script), 9)).decode().rstrip("=")
    if len(packed) > PACKED_MAX:
        raise InvalidValue("This chat does not fit into a link: leave something out.")
    return packed


def unpack(packed: str) -> str:
    """Return the script of a link. Raises InvalidValue for what `pack` would not return."""
    if len(packed) > PACKED_MAX or not packed.isascii():
        raise InvalidValue(_DAMAGED)
    inflater = zlib.decompressobj()
    try:
        compressed = urlsafe_b64decode(packed + "=" * (-len(packed) % 4))
        script = inflater.decompress(compressed, _BYTES_MAX + 1).decode()
    except (ValueError, zlib.error) as error:
        raise InvalidValue(_DAMAGED) from error
    if not inflater.eof or inflater.unused_data:
        raise InvalidValue(_DAMAGED if len(script) <= CHARACTERS_MAX else _TOO_LONG)
    _check(script)
    return script


def _check(script: str) -> None:
    if len(script) > CHARACTERS_MAX:
        raise InvalidValue(_TOO_LONG)


def _encoded(script: str) -> bytes:
    try:
        return script.encode()
    except UnicodeEncodeError as error:
        raise InvalidValue("The chat has characters that are no text.") from error
