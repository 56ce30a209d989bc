"""The bars beside the rows of memory: read down, a staircase to the limit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from inspector.conversation.rows import MemoryRow

ROW_HEIGHT = 3


@dataclass(frozen=True)
class Falls:
    """Paths in a box of `width` units of load by three units for each row.

    `track` is all the room, `past` the rows above, `this` the row, and `over` a row that ends
    beyond the limit.
    """

    width: int
    height: int
    track: str
    past: str
    this: str
    over: str


def falls(rows: Sequence[MemoryRow], width: int) -> Falls:
    """Return the bars of some rows, one below the other."""
    bars = list(enumerate(rows))
    return Falls(
        width=width,
        height=ROW_HEIGHT * max(1, len(rows)),
        track=_path((i, 0, width) for i, _ in bars),
        past=_path((i, 0, row.past) for i, row in bars),
        this=_path((i, row.past, row.this) for i, row in bars if not row.is_over),
        over=_path((i, row.past, row.this) for i, row in bars if row.is_over),
    )


def _path(bars: Iterable[tuple[int, int, int]]) -> str:
    """Return bars of (row, start, length) as a path; a bar is the middle third of its row."""
    return "".join(
        f"M{start} {ROW_HEIGHT * i + 1}h{length}v1h-{length}z"
        for i, start, length in bars
        if length
    )
