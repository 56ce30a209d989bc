"""Rows of the panes, with no logic left for the templates, and the words that rows share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chatmemory.core.eviction import Reason
from chatmemory.core.messages import MessageType
from chatmemory.queries import Departure, MessageRow, WindowPlace


@dataclass(frozen=True)
class HistoryRow:
    """A row of the history pane."""

    row: MessageRow
    glyph: str
    role: str
    css: str
    tag: str
    is_in: bool
    leaves_now: bool
    is_horizon: bool


@dataclass(frozen=True)
class Kept:
    """A row of the memory pane; `past` and `this` draw the cumulative bar in units of the limit."""

    seq: int
    glyph: str
    css: str
    text: str
    is_code: bool
    amount: int
    past: int
    this: int
    is_draft: bool = False
    note: str = ""


@dataclass(frozen=True)
class Elsewhere:
    """Messages of the window that its pane does not show, with one of them to go to."""

    count: int
    tokens: int
    seq: int


@dataclass(frozen=True)
class Ghosts:
    """What just left: the first few rows, how many more, and what they weighed."""

    rows: tuple[Kept, ...]
    more: int
    amount: int


def css_of(*names: str | bool) -> str:
    """The classes of a row; an empty or false one is none."""
    return " ".join(name for name in names if isinstance(name, str) and name)


def pairing(rows: Sequence[MessageRow] | Sequence[WindowPlace], i: int) -> str:
    """Where a row stands in a tool call and its results: p-start, p-mid, p-end or nothing."""

    def result(position: int) -> bool:
        known = 0 <= position < len(rows)
        return known and rows[position].type is MessageType.TOOL_EXECUTION_RESULT

    if rows[i].has_calls and result(i + 1):
        return "p-start"
    if result(i):
        return "p-mid" if result(i + 1) else "p-end"
    return ""


def is_code(type: MessageType, has_calls: bool) -> bool:
    return has_calls or type in (MessageType.TOOL_EXECUTION_RESULT, MessageType.CUSTOM)


def short_reason(reason: Reason) -> str:
    return {
        Reason.CAPACITY: "capacity",
        Reason.ORPHANED: "left with its call",
        Reason.REPLACED: "replaced",
        Reason.CLEARED: "cleared",
        Reason.SET: "list was set",
        Reason.MOVED: "moved",
    }[reason]


def ghost_note(departure: Departure) -> str:
    if departure.reason is Reason.CAPACITY:
        return "oldest"
    if departure.reason is Reason.ORPHANED:
        return f"with #{departure.because_seq}"
    return short_reason(departure.reason)
