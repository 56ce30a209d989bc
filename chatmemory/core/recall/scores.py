"""Recalls: which facts the assistant used again, and whether it could still read them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from chatmemory.core.messages import MessageType
from chatmemory.core.recall.histories import History


class Use(NamedTuple):
    """A fact of a message that an earlier message held; `mention` is the last one that did.

    `until` is the position at which the last mention in the window left, or the history's length.
    """

    position: int
    fact: str
    mention: int
    until: int

    @property
    def is_held(self) -> bool:
        """Whether a message that mentions the fact was in the window just before the message."""
        return self.until >= self.position


def uses(history: History, left: Sequence[int], by: MessageType) -> Iterator[Use]:
    """Yield the facts that messages of a type took up again, each once per message.

    `left` is when each message left in a replay. By MessageType.AI they are recalls; by
    MessageType.USER those that are not held were said again while they were forgotten.
    """
    last: dict[str, int] = {}
    until: dict[str, int] = {}
    for position, (entry, facts) in enumerate(zip(history.entries, history.facts, strict=True)):
        if entry.type is by:
            for fact in sorted(facts & last.keys()):
                yield Use(position, fact, last[fact], until[fact])
        for fact in facts:
            last[fact] = position
            until[fact] = max(until.get(fact, -1), left[position])
