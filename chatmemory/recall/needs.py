"""Needs: where a conversation used something that was said before.

All figures use this single definition, for files and stored conversations: `recall`, `incidents`,
`check`, the lab, comparisons, the API and agents.

There are three kinds of needs:

- a fact that the assistant used after a user or a tool had said it;
- a message in which users repeat themselves;
- a tool result that was fetched again by an equal call.

The needs of a conversation follow from its messages alone. What memory held decides which needs
were lost: a lost need is an incident, and each incident of these kinds is a lost need. Values of
calls, such as `membership=gold`, are no needs. A fact that only a tool had given and the user says
for the first time is no need, either.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import NamedTuple

from chatmemory.recall.history import History
from chatmemory.recall.kinds import IncidentKind
from chatmemory.recall.needed import REPEATS


class Need(NamedTuple):
    """A use of something that was said before, by the message at `position`. The need is an
    incident if the fact or call had left memory.

    `parts` are the names of its facts, or of its call, each with the position of the last message
    that mentions it. `fact` is the part whose mention leaves memory first, as written, and
    `mention` the position of its last mention. `until` is the position at which its last mention
    left the window, or the history's length.
    """

    position: int
    kind: IncidentKind
    fact: str
    mention: int
    until: int
    parts: tuple[tuple[str, int], ...]

    @property
    def is_held(self) -> bool:
        """Whether all of its facts were in the window just before the message that needed them."""
        return self.until >= self.position

    def depends_on(self, known: Container[str]) -> int | None:
        """Return the position of the earliest mention that must be in memory. Parts in `known`,
        which the system message has, need no mention; None if all parts are in `known`.
        """
        return min((mention for name, mention in self.parts if name not in known), default=None)


def lost_by_kind(history: History, left: Sequence[int]) -> Counter[IncidentKind]:
    """Count the needs of a history whose facts memory had lost, by kind. `left` is as in `needs`,
    which takes longer.
    """
    until: dict[str, int] = {}
    lost: Counter[IncidentKind] = Counter()
    for position, (needed, mentions) in enumerate(history.needed):
        for kind, parts, _ in needed:
            if min([until[name] for name, _ in parts]) < position:
                lost[kind] += 1
        at = left[position]
        for name in mentions:
            if until.get(name, -1) < at:
                until[name] = at
    return lost


ChooseNeeds = Callable[[Iterable[Need]], Iterable[Need]]


def needs(history: History, left: Sequence[int]) -> Iterator[Need]:
    """Yield the needs of a history in order: the uses of something that was said before. The same
    needs exist under every limit.

    An assistant's message has a need for each fact that it uses. A user's message or a tool call
    has one need of each kind for all that it repeats. `left` has, for each message, the position at
    which its text left in a replay (see `Departures.of_texts`).
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
    """Yield the needs in which users repeat themselves or tool calls are repeated."""
    return (need for need in found if need.kind in REPEATS)
