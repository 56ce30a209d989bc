"""Needs: where a conversation used something that was said before.

- The assistant used a fact that a user or a tool had given.
- Users repeated themselves.
- A tool was called again with the same arguments, and gave a result again.

Needs follow from the messages alone. A replay decides which needs memory held and which were lost:
a lost need is an incident. All figures about recall count these needs.

Two uses can be incidents, but are not counted as needs:

- A tool call takes a value from earlier JSON, such as `membership=gold`.
- A user gives a fact that only a tool had given before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import NamedTuple

from chatmemory.recall.history import History
from chatmemory.recall.kinds import IncidentKind
from chatmemory.recall.needed import REPEATS


class Need(NamedTuple):
    """A use of something that was said earlier: the message at `position` uses facts, or repeats a
    tool call. In a replay, a need is an incident of this `kind` if memory had lost one of its
    `parts`.

    - `parts`: the facts, or the tool call. Each part has a name, and the position of the last
      earlier message that mentions the part.
    - `fact`, `mention` and `until` are about the part that memory loses first.
    - `fact`: the text to show for this part. For a tool call, this is a fact in its result, or the
      name of the call if the result has no fact.
    - `mention`: the position of the last earlier message that mentions this part.
    - `until`: the position of the message at whose arrival memory loses this part. It is the length
      of the history if memory never loses the part.
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
        """Return the position of the oldest message that memory must have for the need to be held:
        the lowest position in `parts`.

        Parts whose names are in `known` are left out. `known` are the names of the facts that the
        system message mentions. Returns None if no part is left.
        """
        return min((mention for name, mention in self.parts if name not in known), default=None)


def lost_by_kind(history: History, left: Sequence[int]) -> Counter[IncidentKind]:
    """Return the number of lost needs for each kind of incident. Faster than `needs`.

    `left[i]` is the position of the message at whose arrival memory lost the text of the message at
    position i.
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
    """Yield the needs of a history, in order: the uses of something that was said earlier.

    - A message of the assistant has a need for each fact that it uses.
    - A user message has one need for all facts that it repeats.
    - A tool result has a need if an equal tool call already had a result without an error.

    `left` decides which needs are held. `left[i]` is the position of the message at whose arrival
    memory lost the text of the message at position i (see `Departures.of_texts`).
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
