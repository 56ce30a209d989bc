"""A call beside the one before: what changed, where the common beginning ends, and what it costs.

A provider reads from its cache what two prompts have in common at their beginnings: the tools, the
system message, then the messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from chatmemory.queries import WindowRow


class Difference(NamedTuple):
    """What a call has in common with the one before.

    `shared` are the tokens of the common beginning, `again` those of messages that were sent before
    and stand behind its end. It `is_broken` if the call does not begin with all that the one before
    had. `place` is how many messages are common.
    """

    shared: int
    again: int
    is_broken: bool
    place: int


@dataclass(frozen=True)
class Prompt:
    """What a call was given: its tools by digest, their tokens, and the messages."""

    tools: tuple[str, ...]
    tool_tokens: int
    rows: Sequence[WindowRow]


def difference(before: Prompt, now: Prompt) -> Difference:
    """Return what a call has in common with the one before."""
    place = 0
    if before.tools == now.tools:
        pairs = zip(before.rows, now.rows, strict=False)
        same = (is_same(one, other) for one, other in pairs)
        shortest = min(len(before.rows), len(now.rows))
        place = next((n for n, equal in enumerate(same) if not equal), shortest)
    is_broken = before.tools != now.tools or place < len(before.rows)
    known = {row.seq for row in before.rows}
    again = sum(row.tokens for row in now.rows[place:] if row.seq in known)
    shared = sum(row.tokens for row in now.rows[:place])
    shared += now.tool_tokens if before.tools == now.tools else 0
    return Difference(shared, again if is_broken else 0, is_broken, place)


def is_same(one: WindowRow, other: WindowRow) -> bool:
    """Whether two messages of windows are the same, and are sent alike."""
    return one.seq == other.seq and one.message == other.message
