"""Compares a model call with the previous one: where their shared prefix ends, and how many tokens
are sent again.

A prompt begins with the tools and the system message, and then has the other messages. The
beginning that two prompts share is read from the provider's prompt cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Difference(NamedTuple):
    """How the prompt of a call differs from the previous prompt.

    - `shared` is the number of tokens in the shared prefix; None if there is no previous prompt.
    - `place` is the number of messages in the shared prefix.
    - `is_broken` means that this prompt does not begin with the whole previous prompt.
    - `again` is the number of tokens after the shared prefix that belong to messages of the
      previous prompt. It is 0 if `is_broken` is False.
    """

    shared: int | None
    again: int
    is_broken: bool
    place: int


NOTHING_BEFORE = Difference(None, 0, False, 0)


class Place(NamedTuple):
    """A message of a prompt: its seq, its tokens, and `overrides`.

    `overrides` is JSON with the fields in which the message differs from the history, or None if
    there are none.
    """

    seq: int
    tokens: int
    overrides: str | None

    def is_same(self, other: Place | None) -> bool:
        """Return whether a message of another prompt has the same seq and the same `overrides`.
        Tokens are not compared.
        """
        return other is not None and (self.seq, self.overrides) == (other.seq, other.overrides)


@dataclass(frozen=True)
class Prompt:
    """The parts of a call's prompt that are compared with another prompt: the digests of its tools,
    and its messages (`places`).
    """

    tools: Sequence[str]
    places: Sequence[Place]


def difference(before: Prompt, now: Prompt, tool_tokens: int) -> Difference:
    """Compare the prompt `now` with the previous prompt. `tool_tokens` is the number of tokens of
    the tools in `now`.
    """
    place = 0
    if before.tools == now.tools:
        pairs = zip(before.places, now.places, strict=False)
        shortest = min(len(before.places), len(now.places))
        differ = (
            n for n, (one, other) in enumerate(pairs) if one != other and not one.is_same(other)
        )
        place = next(differ, shortest)
    is_broken = before.tools != now.tools or place < len(before.places)
    known = {each.seq for each in before.places} if is_broken else ()
    again = sum(each.tokens for each in now.places[place:] if each.seq in known)
    shared = sum(each.tokens for each in now.places[:place])
    shared += tool_tokens if before.tools == now.tools else 0
    return Difference(shared, again, is_broken, place)
