"""The styles in which programs write JSON, so that the same bytes can be written again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from inspector.rooms.calls.patches import Patch, patch, patched, spelled

_SEPARATORS = {"compact": (",", ":"), "spaced": (", ", ": ")}
STYLES = tuple(
    f"{spaces}{characters}{order}"
    for order in ("", "-sorted")
    for spaces in _SEPARATORS
    for characters in ("", "-ascii")
)


def written(value: Any, style: str) -> bytes:
    """Return JSON in a style of STYLES."""
    spaces, *others = style.split("-")
    text = json.dumps(
        value,
        separators=_SEPARATORS[spaces],
        ensure_ascii="ascii" in others,
        sort_keys="sorted" in others,
    )
    return text.encode(errors="surrogatepass")


def plain(text: str, length: int) -> str:
    """Return the beginning of a text from outside, in a form that every database can hold."""
    return text[:length].replace("\0", "").encode(errors="replace").decode()


def separator(style: str) -> bytes:
    """Return what stands between the items of a list."""
    return _SEPARATORS[style.split("-")[0]][0].encode()


def difference_in_style(rendered: dict[str, Any], target: Any, style: str) -> Patch | None:
    """Return the patch from a rendered request to the target: in the order of its members if the
    style has this order. With the style "", the rebuilt request is equal as JSON only.
    """
    plain = patch(rendered, target)
    if not style or style.endswith("sorted"):
        return plain
    is_in_order = spelled(patched(rendered, plain), True) == spelled(target, True)
    return plain if is_in_order else patch(rendered, target, in_order=True)


def style_of(body: bytes, request: Any) -> str:
    """Return the style in which a request was written as these bytes; "" if there is none."""
    return next((each for each in _styles(body) if written(request, each) == body), "")


def _styles(body: bytes) -> Iterator[str]:
    """Return the styles that a text may have, the likely ones first, by the space behind its first
    name. Texts without escapes are the same with and without "ascii".
    """
    is_spaced = body.partition(b'":')[2][:1] == b" "
    is_escaped = body.isascii() and b"\\u" in body
    for style in sorted(STYLES, key=lambda each: each.startswith("spaced") != is_spaced):
        if is_escaped or "ascii" not in style:
            yield style
