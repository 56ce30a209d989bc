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

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from chatmemory.recall.again import ReadMessage, Recurrence
from chatmemory.recall.facts import example_rank
from chatmemory.recall.history import History
from chatmemory.recall.kinds import IncidentKind

REPEATS = frozenset({IncidentKind.USER_REPEATED, IncidentKind.CALL_REPEATED})


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
    """Yield the needs of a history in order: each fact that the assistant used once a message, and
    what users and calls repeat once for each message and kind. They are the same under every limit.

    `left` has, for each message, the position at which its text left in a replay (see
    `Departures.of_texts`).
    """
    last: dict[str, int] = {}
    until: dict[str, int] = {}
    for position, read in enumerate(history.read):
        for kind, names, fact in _needed_in(read):
            known = [name for name in names if name in last]
            if known:
                first = min(known, key=lambda name: (until[name], last[name]))
                parts = tuple((name, last[name]) for name in known)
                written = fact or read.facts.own[first]
                yield Need(position, kind, written, last[first], until[first], parts)
        for name in read.facts.mentions:
            last[name] = position
            until[name] = max(until.get(name, -1), left[position])


def _needed_in(read: ReadMessage) -> Iterator[tuple[IncidentKind, Sequence[str], str]]:
    """Yield the needs of a message: their kinds, the names of their parts, and what to show of
    each; "" for the part that leaves first.
    """
    for again in read.again:
        if again.kind is IncidentKind.USED_UNSEEN:
            used = sorted(name for name in again.facts if name not in read.facts.pairs)
            yield from ((again.kind, [name], "") for name in used)
        elif again.call:
            yield again.kind, [again.call], _shown(again, read.facts.own)
        elif again.kind in REPEATS:
            yield again.kind, again.facts, ""


def _shown(again: Recurrence, own: Mapping[str, str]) -> str:
    """Return the best known fact in a call's result, or the call if the result has none."""
    best = min(again.facts, key=example_rank, default=again.call)
    return own.get(best, best)


def all_of_them(found: Iterable[Need]) -> Iterable[Need]:
    return found


def repeats(found: Iterable[Need]) -> Iterator[Need]:
    """Yield the repetitions by users and the repeated calls."""
    return (need for need in found if need.kind in REPEATS)
