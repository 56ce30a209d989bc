"""Addresses: memory ids in URLs. Every id is one path segment.

A-Z a-z 0-9 - _ stand for themselves, and so does a dot unless the id is "." or "..". Every other
byte of the UTF-8 form is ~XX: `acme/7` is `acme~2F7`.
"""

from __future__ import annotations

import re

_BYTE = re.compile(r"~([0-9A-Fa-f]{2})|[A-Za-z0-9._-]")
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.")


def address(memory_id: str) -> str:
    """Return the path segment of an id."""
    if memory_id in (".", ".."):
        return memory_id.replace(".", "~2E")
    return "".join(
        character if character in _PLAIN else "".join(f"~{b:02X}" for b in character.encode())
        for character in memory_id
    )


def memory_id_at(segment: str) -> str:
    """Return the id of a path segment.

    Raises ValueError for a segment that is no address: an id as it is, such as `a~41`, must not be
    taken for that of another conversation.
    """
    pieces = list(_BYTE.finditer(segment))
    if sum(len(piece[0]) for piece in pieces) != len(segment):
        raise ValueError(f"{segment!r} is not the address of a memory id")
    raw = b"".join(bytes.fromhex(p[1]) if p[1] else p[0].encode() for p in pieces)
    if b"\0" in raw:
        raise ValueError("a memory id cannot contain NUL")
    memory_id = raw.decode()
    if address(memory_id).upper() != segment.upper():  # hexadecimal digits may be small
        raise ValueError(f"{segment!r} is not the address of {memory_id!r}")
    return memory_id
