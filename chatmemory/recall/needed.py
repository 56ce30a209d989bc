"""Finds the facts and tool calls from earlier messages that each message uses again.

A replay decides later whether memory still had them; see `needs`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from chatmemory.recall.again import ReadMessage, Recurrence
from chatmemory.recall.facts import example_rank
from chatmemory.recall.kinds import IncidentKind

REPEATS = frozenset({IncidentKind.USER_REPEATED, IncidentKind.CALL_REPEATED})


class Needed(NamedTuple):
    """Facts, or a tool call, from earlier messages that a message uses again. If they had left
    memory, the message is an incident of this `kind`.

    - `parts`: for each fact, its name and the position of the last earlier message that mentions
      the fact. For a tool call, its name and the position of its last earlier result without an
      error.
    - `fact`: the text to show. If it is "", the fact in `parts` that leaves memory first is shown.
    """

    kind: IncidentKind
    parts: tuple[tuple[str, int], ...]
    fact: str


class NeededAt(NamedTuple):
    """What one message uses of earlier messages.

    - `needed`: the facts and tool calls that the message uses again.
    - `mentions`: the names of the facts and tool calls that the message mentions. Names that no
      message of the conversation uses again are left out.
    """

    needed: Sequence[Needed]
    mentions: Sequence[str]


def needed_at(read: Sequence[ReadMessage]) -> list[NeededAt]:
    """Return, for each message of a history, the facts and tool calls from earlier messages that it
    uses again.
    """
    last: dict[str, int] = {}
    found: list[list[Needed]] = []
    for position, each in enumerate(read):
        of_message = []
        for kind, names, fact in _needed_in(each):
            if parts := tuple((name, last[name]) for name in names if name in last):
                of_message.append(Needed(kind, parts, fact))
        found.append(of_message)
        last.update(dict.fromkeys(each.facts.mentions, position))
    ever = {name for of_message in found for need in of_message for name, _ in need.parts}
    return [
        NeededAt(of_message, [*(each.facts.mentions & ever)])
        for of_message, each in zip(found, read, strict=True)
    ]


def _needed_in(read: ReadMessage) -> Iterator[tuple[IncidentKind, Sequence[str], str]]:
    """Yield the needs of a message. Each has a kind, the names of its parts, and a text to show; ""
    for the part that leaves memory first.
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
    """Return the best example among the facts in a tool result; without a fact, the name of the
    call.
    """
    best = min(again.facts, key=example_rank, default=again.call)
    return own.get(best, best)
