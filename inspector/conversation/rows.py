"""The rows of the panes, complete for the templates, and the functions that build them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from django.utils.html import format_html
from django.utils.text import Truncator

from chatmemory import MessageType
from chatmemory.explain import place_of, reason_of, role, short_reason
from chatmemory.queries import TEXT_SIZE, ConversationState, MessageDetail
from inspector.conversation.glyphs import glyph

# The number of characters that a row shows of a text.
SHOWN = TEXT_SIZE - 1


@dataclass(frozen=True)
class HistoryRow:
    """A row of the history pane. Its button sends `number` as the parameter `param`."""

    row: MessageDetail
    name: str
    param: str
    number: int
    tokens: int
    glyph: str
    role: str
    css: str
    text: str
    tag: str
    is_code: bool
    is_in: bool
    leaves_now: bool
    is_horizon: bool


@dataclass(frozen=True)
class MemoryRow:
    """A row of the memory pane; `past` and `this` draw the cumulative bar in units of the limit.

    `soon` marks one that leaves first. Its button sends `number` as the parameter `param`.
    """

    seq: int
    name: str
    param: str
    number: int
    glyph: str
    css: str
    text: str
    is_code: bool
    amount: int
    past: int
    this: int
    soon: str = ""
    is_over: bool = False
    note: str = ""


@dataclass(frozen=True)
class Elsewhere:
    """Messages of the window that the pane does not show; a link leads to `seq`."""

    count: int
    tokens: int
    seq: int


@dataclass(frozen=True)
class JustEvicted:
    """The messages that just left: the first rows, the number of others, and what all took away.

    `load` is in the policy's unit and `amount` in tokens; both are negative.
    """

    rows: tuple[MemoryRow, ...]
    more: int
    load: int
    amount: int


def css_of(*names: str | bool) -> str:
    """Return the CSS classes of a row, without empty and false ones."""
    return " ".join(name for name in names if isinstance(name, str) and name)


def shown(text: str, phrase: str) -> str:
    """Return what a row shows of a text, with the phrase marked; a hit is never cut off."""
    place = place_of(text, phrase) if phrase else None
    if place is None:
        return _cut(text)
    begin = max(0, place.start - SHOWN // 2)
    before = ("…" if begin else "") + text[begin : place.start]
    return format_html("{}<mark>{}</mark>{}", before, text[place], _cut(text[place.stop :]))


def _cut(text: str) -> str:
    return Truncator(text).chars(SHOWN) if len(text) > SHOWN else text


class Pairable(Protocol):
    """What may be a tool call or its result."""

    @property
    def type(self) -> MessageType: ...

    @property
    def has_calls(self) -> bool: ...


def pairing(rows: Sequence[Pairable | None], i: int) -> str:
    """Return a row's position among a tool call and its results: p-start, p-mid, p-end or ""."""

    def is_result(position: int) -> bool:
        row = rows[position] if position < len(rows) else None
        return row is not None and row.type is MessageType.TOOL_EXECUTION_RESULT

    row = rows[i]
    if row is not None and row.has_calls and is_result(i + 1):
        return "p-start"
    if is_result(i):
        return "p-mid" if is_result(i + 1) else "p-end"
    return ""


def pairings(rows: Sequence[Pairable | None]) -> list[str]:
    """Return the pairing of each row; None is no message."""
    return [pairing(rows, i) for i in range(len(rows))]


def is_code(type: MessageType, has_calls: bool) -> bool:
    """Return whether a message is shown in a fixed-width font."""
    return has_calls or type in (MessageType.TOOL_EXECUTION_RESULT, MessageType.CUSTOM)


@dataclass(frozen=True)
class Look:
    """How the messages of one kind look: shape, name and font."""

    glyph: str
    role: str
    is_code: bool


# By the type of a message, and whether it has tool calls.
LOOKS = {
    (type, has_calls): Look(glyph(type, has_calls), role(type, has_calls), is_code(type, has_calls))
    for type in MessageType
    for has_calls in (False, True)
}


def _over_limit(state: ConversationState) -> str:
    """Return what becomes of a message that a limit hides."""
    if state.window.no_room:
        return "would be over the limit" if state.is_simulated else "over the limit"
    return "would leave" if state.is_simulated else "leaves at the next add"


def tag(state: ConversationState, row: MessageDetail) -> str:
    """Return the reason for which a message is not in memory; empty if it is."""
    if row.seq in state.in_window:
        return ""
    if state.simulated is not None and state.change and row.seq in state.evicted:
        return f"would leave · {reason_of(state.change.evicted[state.evicted[row.seq]])}"
    departure = row.departure(state.at)
    if departure is None or departure.reason is None:
        return _over_limit(state)
    cause = short_reason(departure.reason, departure.misfit, departure.is_left_out)
    return f"forgotten at step {departure.left_step:,} · {cause}"
