"""Needs: where a conversation needed something that was said before. One definition for files and
stored conversations, and for all that count: `recall`, `incidents`, `check`, the lab, comparisons,
the API and agents.

A need is a fact that the assistant used after a user or a tool had said it; a message in which the
user says again what he had said; or a result that was fetched again by an equal call. The needs
of a conversation follow from its messages alone. What memory held decides which of them were lost:
a lost need is an incident, and each incident of these kinds is lost needs. Values of calls, such
as `membership=gold`, are no needs, and neither is what only a tool had said and the user says for
the first time.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import NamedTuple

from chatmemory.recall.history import History
from chatmemory.recall.kinds import IncidentKind
from chatmemory.recall.needed import REPEATS


class Need(NamedTuple):
    """A need at the position of a message: an incident if memory had lost it.

    `parts` are the names of its facts, or of its call, each with the last message that mentions it.
    `fact` is the part whose mention leaves first, as written, `mention` its last mention, and
    `until` the position at which its last mention in the window left, or the history's length.
    """

    position: int
    kind: IncidentKind
    fact: str
    mention: int
    until: int
    parts: tuple[tuple[str, int], ...]

    @property
    def is_held(self) -> bool:
        """Whether all of it was in the window just before the message."""
        return self.until >= self.position

    def depends_on(self, known: Container[str]) -> int | None:
        """Return the earliest mention that must be in memory; None if all facts are `known`
        anyway.
        """
        return min((mention for name, mention in self.parts if name not in known), default=None)


ChooseNeeds = Callable[[Iterable[Need]], Iterable[Need]]


def needs(history: History, left: Sequence[int]) -> Iterator[Need]:
    """Yield the needs of a history in order. They are the same under every limit.

    An assistant's message has a need for each fact that it uses. A user's message or a call has one
    need for all that it repeats, of each kind.

    `left` has, for each message, the position at which its text left in a replay (see
    `Departures.of_texts`).
    """
    until: dict[str, int] = {}
    for position, (needed, mentions) in enumerate(history.needed):
        for kind, parts, fact in needed:
            first, last = min(parts, key=lambda part: (until[part[0]], part[1]))
            written = fact or history.read[position].facts.own[first]
            yield Need(position, kind, written, last, until[first], parts)
        for name in mentions:
            until[name] = max(until.get(name, -1), left[position])


def all_of_them(found: Iterable[Need]) -> Iterable[Need]:
    return found


def repeats(found: Iterable[Need]) -> Iterator[Need]:
    """Yield the repetitions by users and the repeated calls."""
    return (need for need in found if need.kind in REPEATS)
