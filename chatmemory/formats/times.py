"""Reads the times of messages from the records of other programs.

A time is text in ISO 8601, or a number of seconds or milliseconds since 1970. Text without a time
zone is read as UTC.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from chatmemory.formats.format import Response, unwrapped
from chatmemory.formats.order import seconds_of
from chatmemory.messages.json_values import JsonMap, JsonValue

# The properties that hold the time of a record, in one program or another
_NAMES = (
    *("said_at", "created_at", "createdAt", "create_time", "timestamp", "sent_at", "sentAt"),
    *("time", "created", "date", "ts", "startTime", "start_time", "start"),
)
# The properties of a record that may hold an object with its time
_WITHIN = ("time", "info", "metadata", "message")
_EARLIEST = datetime(1990, 1, 1, tzinfo=UTC)  # numbers below are no times, such as durations
_AHEAD = timedelta(days=1)  # of clocks of other machines


def said_at_of(turn: JsonValue) -> datetime | None:
    """Return the time of a message of any format, in UTC. None if it has no time.

    A time before 1990, or more than a day in the future, is ignored, because it cannot be the time
    of a message.
    """
    about = turn.about if isinstance(turn, Response) else None
    for record in _records(unwrapped(turn), about):
        for name in _NAMES:
            if name in record and (found := moment_of(record[name])):
                return found
    return None


def known_times(times: Sequence[datetime | None]) -> tuple[datetime | None, ...]:
    """Return `times` as a tuple, or () if all of them are None."""
    return tuple(times) if any(times) else ()


def moment_of(value: JsonValue) -> datetime | None:
    """Return a time in UTC. The value is text in ISO 8601, or a number of seconds or milliseconds
    since 1970.

    None for any other value, and for a time before 1990 or more than a day in the future.
    """
    seconds = seconds_of(value)
    if seconds is None:
        return None
    try:
        found = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return None
    return found if _EARLIEST <= found <= datetime.now(UTC) + _AHEAD else None


def _records(turn: JsonValue, about: JsonValue) -> Iterator[JsonMap]:
    """Yield the objects that may have the time of a message: first the message, then objects within
    it.
    """
    for value in (turn, about):
        if isinstance(value, Mapping):
            yield value
            for name in _WITHIN:
                inner = value.get(name)
                if isinstance(inner, Mapping):
                    yield inner
                    if isinstance(inner.get("time"), Mapping):
                        yield inner["time"]
    parts = turn.get("parts") if isinstance(turn, Mapping) else None
    if isinstance(parts, list) and parts and isinstance(parts[0], Mapping):
        yield parts[0]
