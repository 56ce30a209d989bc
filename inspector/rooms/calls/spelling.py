"""The ways in which programs write JSON ("styles"): spaces, escapes. A known style reproduces the
bytes of a request from its JSON value.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from chatmemory.messages.json_values import JsonDict, JsonValue
from inspector.rooms.calls.patches import Patch, patch, patched, spelled

_SEPARATORS = {"compact": (",", ":"), "spaced": (", ", ": ")}
STYLES = tuple(
    f"{spaces}{characters}{order}"
    for order in ("", "-sorted")
    for spaces in _SEPARATORS
    for characters in ("", "-ascii")
)


def written(value: JsonValue, style: str) -> bytes:
    """Return a value as JSON bytes in one of the STYLES."""
    spaces, *others = style.split("-")
    text = json.dumps(
        value,
        separators=_SEPARATORS[spaces],
        ensure_ascii="ascii" in others,
        sort_keys="sorted" in others,
    )
    return text.encode(errors="surrogatepass")


def plain(text: str, length: int) -> str:
    """Return the first `length` characters of a text that a program sent, without characters that
    some databases reject.
    """
    return text[:length].replace("\0", "").encode(errors="replace").decode()


def separator(style: str) -> bytes:
    """Return the bytes between two items of a list, in a style."""
    return _SEPARATORS[style.split("-")[0]][0].encode()


def difference_in_style(rendered: JsonDict, target: JsonValue, style: str) -> Patch | None:
    """Return the patch from rendered messages to the request `target`. The patch preserves the
    order of members, except in styles that sort members.

    If the style is unknown (""), the order may differ: the patch reproduces equal JSON, but not the
    same bytes.
    """
    plain = patch(rendered, target)
    if not style or style.endswith("sorted"):
        return plain
    is_in_order = spelled(patched(rendered, plain), True) == spelled(target, True)
    return plain if is_in_order else patch(rendered, target, in_order=True)


def style_of(body: bytes, request: JsonValue) -> str:
    """Return the style that reproduces exactly the bytes of a request; "" if none of STYLES
    does.
    """
    return next((each for each in _styles(body) if written(request, each) == body), "")


def _styles(body: bytes) -> Iterator[str]:
    """Yield the styles that a text may have, the likely styles first. The space after the first
    name tells which are likely. Styles with "ascii" are only tried if the text has escapes.
    """
    is_spaced = body.partition(b'":')[2][:1] == b" "
    is_escaped = body.isascii() and b"\\u" in body
    for style in sorted(STYLES, key=lambda each: each.startswith("spaced") != is_spaced):
        if is_escaped or "ascii" not in style:
            yield style
