"""The styles of messages by role. Each role has its own shape, and is recognizable without
color.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from chatmemory import MessageType
from chatmemory.explain.wording import role


@dataclass(frozen=True)
class MessageStyle:
    """The style of one kind of message. `glyph` names its color and shape: system, user, ai, call,
    result or index. `role` is the word for the kind on pages.

    `is_code` means that the text is shown in a fixed-width font.
    """

    glyph: str
    role: str
    is_code: bool


_GLYPHS = {
    MessageType.SYSTEM: "system",
    MessageType.USER: "user",
    MessageType.AI: "ai",
    MessageType.TOOL_EXECUTION_RESULT: "result",
    MessageType.CUSTOM: "system",
}
_CODE = (MessageType.TOOL_EXECUTION_RESULT, MessageType.CUSTOM)

# By the type of a message, and whether it has tool calls.
STYLES = {
    (type, has_calls): MessageStyle(
        glyph="call" if has_calls else _GLYPHS[type],
        role=role(type, has_calls),
        is_code=has_calls or type in _CODE,
    )
    for type in MessageType
    for has_calls in (False, True)
}

OF_INDEX = MessageStyle("index", "Index", is_code=False)


def glyph(type: MessageType, has_calls: bool = False) -> str:
    return STYLES[type, has_calls].glyph


# A CSS class of a row, or False if the row does not have it.
CssClass = str | Literal[False]


def css_of(*names: CssClass) -> str:
    """Join CSS classes into one text. Empty texts and False are left out."""
    return " ".join([name for name in names if name])


def with_ends(lives: Sequence[str]) -> list[str]:
    """Return the CSS classes of cells, and mark the ends of each run of `is-in` cells. The first
    cell of a run also gets `is-first`, and the last cell `is-last`.

    `lives` has a CSS class for each cell, such as `is-in` for a message in memory.

    ["is-out", "is-in", "is-in"] -> ["is-out", "is-in is-first", "is-in is-last"]
    """
    around = ["", *lives, ""]
    return [
        css_of(
            life,
            life == "is-in" != around[i] and "is-first",
            life == "is-in" != around[i + 2] and "is-last",
        )
        for i, life in enumerate(lives)
    ]


class Pairable(Protocol):
    """A row that may be a tool call or a tool result."""

    @property
    def type(self) -> MessageType: ...

    @property
    def has_calls(self) -> bool: ...


def pairing(rows: Sequence[Pairable | None], i: int) -> str:
    """Return the CSS class that draws row `i` as part of a tool call with its results:

    - `p-start` for a tool call, if the next row is a tool result.
    - `p-mid` for a tool result, if the next row is a tool result, too.
    - `p-end` for any other tool result.
    - "" for all other rows.
    """
    row, following = rows[i], rows[i + 1] if i + 1 < len(rows) else None
    is_followed = following is not None and following.type is MessageType.TOOL_EXECUTION_RESULT
    if row is None:
        return ""
    if row.has_calls:
        return "p-start" if is_followed else ""
    if row.type is MessageType.TOOL_EXECUTION_RESULT:
        return "p-mid" if is_followed else "p-end"
    return ""


def pairings(rows: Sequence[Pairable | None]) -> list[str]:
    """Return for each row the CSS class that draws the row as part of a tool call with its results
    (see `pairing`). The class is "" for None, which stands for a row without a message.
    """
    return [pairing(rows, i) for i in range(len(rows))]
