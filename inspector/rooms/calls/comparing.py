"""A call beside the one before: what changed, where the common beginning ends, and what it costs.

A provider reads from its cache what two prompts have in common at their beginnings: the tools, the
system message, then the messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Difference(NamedTuple):
    """What a call has in common with the one before.

    `shared` are the tokens of the common beginning, which has `place` messages. `again` are the
    tokens of messages behind its end that were sent before. The beginning `is_broken` if the call
    does not begin with the whole prompt of the one before.
    """

    shared: int | None
    again: int
    is_broken: bool
    place: int


NOTHING_BEFORE = Difference(None, 0, False, 0)


class Place(NamedTuple):
    """A message that was sent: its seq, its tokens, and what it had changed of itself."""

    seq: int
    tokens: int
    overrides: str | None

    def is_same(self, other: Place | None) -> bool:
        """Whether this is the same message, and was sent alike."""
        return other is not None and (self.seq, self.overrides) == (other.seq, other.overrides)


@dataclass(frozen=True)
class Prompt:
    """The tools of a call by digest, and its messages."""

    tools: Sequence[str]
    places: Sequence[Place]


def difference(before: Prompt, now: Prompt, tool_tokens: int) -> Difference:
    """Compare a call, whose tools have so many tokens, with the one before."""
    place = 0
    if before.tools == now.tools:
        pairs = zip(before.places, now.places, strict=False)
        shortest = min(len(before.places), len(now.places))
        differ = (n for n, (one, other) in enumerate(pairs) if not one.is_same(other))
        place = next(differ, shortest)
    is_broken = before.tools != now.tools or place < len(before.places)
    known = {each.seq for each in before.places}
    again = sum(each.tokens for each in now.places[place:] if each.seq in known)
    shared = sum(each.tokens for each in now.places[:place])
    shared += tool_tokens if before.tools == now.tools else 0
    return Difference(shared, again if is_broken else 0, is_broken, place)
