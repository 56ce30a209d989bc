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
    """A use of something that was said before: the message at `position` uses facts, or repeats a
    tool call. The need is an incident of this `kind` if memory had lost the facts or the call.

    `parts` has a pair for each fact, or for the call: its name, and the position of the last
    earlier message that mentions it. `fact` is the text to show: the part that memory loses first,
    or for a call, a fact in the tool result.

    `mention` and `until` are about the part that memory loses first. `mention` is the position of
    its last mention. `until` is the position of the message at whose arrival memory loses this
    part, or the history's length if it stays.
    """

    position: int
    kind: IncidentKind
    fact: str
    mention: int
    until: int
    parts: tuple[tuple[str, int], ...]

    @property
    def is_held(self) -> bool:
        """Whether memory had all `parts` of the need just before the message at `position`."""
        return self.until >= self.position

    def depends_on(self, known: Container[str]) -> int | None:
        """Return the position of the oldest message that must be in memory so that the need is
        held. This is the earliest position in `parts`.

        Parts whose names are in `known` are left out, because the system message mentions these
        names. None if all parts are left out.
        """
        return min((mention for name, mention in self.parts if name not in known), default=None)


def lost_by_kind(history: History, left: Sequence[int]) -> Counter[IncidentKind]:
    """Return how many needs of a history memory had lost, for each kind of incident.

    `left` has, for each message, the position at which its text left memory. The function `needs`
    finds more about each need, but takes longer.
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

    An assistant's message has a need for each fact that it uses. A user's message has one need for
    all facts that it repeats. A tool result has one need if an equal call had been answered before.
    `left` decides which needs are held: it has, for each message, the position at which the text
    left memory in a replay (see `Departures.of_texts`).
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
