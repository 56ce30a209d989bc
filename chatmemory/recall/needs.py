"""Needs: where a conversation used something that was said before.

- The assistant used a fact that a user or a tool had given.
- Users repeated themselves.
- A tool was called again, and gave a result again.

Needs follow from the messages alone. What memory held decides which needs were lost: a lost need is
an incident. All figures use these needs: `recall`, `incidents`, `check`, the lab, comparisons, the
API and agents.

Two kinds of incidents are no needs: a value that a tool call takes from earlier JSON, such as
`membership=gold`; and a fact from a tool that a user gives for the first time.
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
    tool call. In a replay, it is an incident of this `kind` if memory had lost one of them.

    - `parts`: for each fact, or for the call, its name and the position of the last earlier message
      that mentions it. The other fields are about the part that memory loses first.
    - `fact`: the text to show for this part; for a call, a fact in the result.
    - `mention`: the position of the last mention of this part.
    - `until`: the position of the message at whose arrival memory loses this part; the length of
      the history if memory never loses it.
    """

    position: int
    kind: IncidentKind
    fact: str
    mention: int
    until: int
    parts: tuple[tuple[str, int], ...]

    @property
    def is_held(self) -> bool:
        """Whether memory had all `parts` just before the message at `position`."""
        return self.until >= self.position

    def depends_on(self, known: Container[str]) -> int | None:
        """Return the position of the oldest message that must be in memory so that the need is
        held: the lowest position in `parts`.

        `known` are names that the system message mentions. Their parts are left out. None if no
        part is left.
        """
        return min((mention for name, mention in self.parts if name not in known), default=None)


def lost_by_kind(history: History, left: Sequence[int]) -> Counter[IncidentKind]:
    """Return how many needs were lost, for each kind of incident. Faster than `needs`.

    `left` has, for each message, the position of the message at whose arrival its text left memory.
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
    """Yield the needs of a history, in order: the uses of something that was said before.

    - A message of the assistant has a need for each fact that it uses.
    - A user message has one need for all facts that it repeats.
    - A tool result has a need if an equal tool call had a result before.

    `left` decides which needs are held. It has, for each message, the position of the message at
    whose arrival its text left memory (see `Departures.of_texts`).
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
    """Yield the needs in which users repeat themselves, or tool calls are repeated."""
    return (need for need in found if need.kind in REPEATS)
