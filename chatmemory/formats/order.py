"""Detects lists of messages that begin with the newest message, as some APIs and sites
return them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise

from chatmemory.formats.format import Loss
from chatmemory.messages.json_values import JsonValue

REVERSED = "the order of the list: its newest message is first, so the list is read backwards"
MIXED = (
    "the order of the times, which differs from the order of the messages: the "
    "messages are read in their order in the list"
)
_TIMES = (
    "created_at",
    "createdAt",
    "create_time",
    "timestamp",
    "sent_at",
    "sentAt",
    "time",
    "date",
)


def is_newest_first(turns: Sequence[JsonValue]) -> tuple[bool, tuple[Loss, ...]]:
    """Return whether a list begins with the newest message, and the losses to report.

    True if the times of the messages decrease. A loss says that the list is read backwards, or that
    its times are in no order. If a message has no time, the result is False without losses.
    """
    times: list[float] = []
    for turn in turns:
        time = time_of(turn)
        if time is None:
            return False, ()
        times.append(time)
    pairs = [*pairwise(times)]
    if all(before <= after for before, after in pairs):
        return False, ()
    if all(before > after for before, after in pairs):
        return True, (Loss("conversation", REVERSED),)
    return False, (Loss("conversation", MIXED),)


def time_of(turn: JsonValue) -> float | None:
    """Return the time of a message in seconds since 1970, or None if it has none."""
    for name in _TIMES if isinstance(turn, dict) else ():
        found = seconds_of(turn.get(name))
        if found is not None:
            return found
    return None


def seconds_of(value: JsonValue) -> float | None:
    """Return a time as seconds since 1970. The value is a number of seconds or milliseconds, or
    text in ISO 8601. None for any other value.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value / 1_000 if abs(value) > 1e11 else float(value)
    if not isinstance(value, str) or len(value) > 40:
        return None
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
