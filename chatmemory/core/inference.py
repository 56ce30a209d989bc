"""The inference of an add from the list that a client sent after it.

A LangChain4j service decides its memory itself: it trims the window, appends a message, trims again
and sends the whole list. Its limit is not known here. An add is inferred if exactly one explains
the list: the same transition that `admit` decides for live adds, under whatever limits. A list that
no add explains, or more than one, was set. So was one that only lost its end: its last message
stands where it stood, and nothing need have come.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from chatmemory.core.exceptions import NoRoomBesidePins
from chatmemory.core.messages import MessageType, UserMessage
from chatmemory.core.policies import Policy
from chatmemory.core.transitions import Transition, admit
from chatmemory.core.window import Entry, Window


@dataclass(frozen=True)
class _DownTo(Policy):
    """The limit of a client, known by what it left: `limit` messages, which may be none."""

    kind: ClassVar[str] = "down_to"
    label: ClassVar[str] = "Down to"
    unit: ClassVar[str] = "messages"
    short_unit: ClassVar[str] = "msg"
    limit_name: ClassVar[str] = "messages"

    def __post_init__(self) -> None:
        """Accept 0, which no client can set: a message that is too large leaves nothing."""

    def load(self, count: int, tokens: int) -> int:
        return count

    def cost(self, tokens: int) -> int:
        return 1


# Stands for a message that left in the add that brought it. The list does not tell what it was.
_UNSEEN = Entry.of(UserMessage("unseen"))


def inferred_add(
    window: Window, before: Sequence[str], arrivals: Sequence[Entry], after: Sequence[str]
) -> Transition | None:
    """Return the only add that makes the new list of the window; None if there are none or several.

    `before` and `after` are the payloads of both lists, `arrivals` the entries of the new one. The
    transition has no policy, as the client's is not known. It has no arrival if the added message
    left at once; the evictions are then all that could leave.
    """
    found: dict[Hashable, Transition] = {}
    is_beginning = list(after) == list(before[: len(after)])
    candidates = [(_UNSEEN, False)] if is_beginning else _possible_arrivals(arrivals)
    for transition in _possible_adds(window, len(before), candidates, len(arrivals)):
        if _list_after(transition, window, before, after) == list(after):
            evicted = frozenset((each.entry, each.reason) for each in transition.evictions)
            found.setdefault((transition.arrivals, evicted), transition)
    return _by_client(*found.values()) if len(found) == 1 else None


def _possible_adds(
    window: Window, length: int, candidates: Iterable[tuple[Entry, bool]], remaining: int
) -> Iterator[Transition]:
    """Yield the adds of these messages that may leave as many as the new list has.

    What leaves after the message came left for want of room. If the limit was lowered before, the
    same messages left before it came; system messages and tool results then fare differently.
    """
    for arrival, is_first in candidates:
        for limit_before in (length, remaining, remaining - 1):
            try:
                transition = _admit(window, arrival, is_first, limit_before, remaining)
            except NoRoomBesidePins:
                continue
            if not transition.ignored:
                yield transition


def _admit(window: Window, arrival: Entry, is_first: bool, *limits: int) -> Transition:
    """Return the add under a limit before the message is appended and another after it."""
    before, after = (_DownTo(limit, always_keep_system_message_first=is_first) for limit in limits)
    return admit(window, arrival, before, lambda: after)


def _possible_arrivals(arrivals: Sequence[Entry]) -> Iterator[tuple[Entry, bool]]:
    """Yield the message that was added, and whether it goes to the head."""
    yield _UNSEEN, False
    if arrivals:
        yield arrivals[-1], False
    if arrivals and arrivals[0].type is MessageType.SYSTEM:
        yield arrivals[0], True


def _list_after(
    transition: Transition, window: Window, before: Sequence[str], after: Sequence[str]
) -> list[str] | None:
    """Return the payloads after an add; None if a message of the new list left at once."""
    evicted = {eviction.entry for eviction in transition.evictions}
    (arrival,) = transition.arrivals
    if (arrival is _UNSEEN) != (arrival in evicted):
        return None
    stayed = [
        payload for entry, payload in zip(window, before, strict=True) if entry not in evicted
    ]
    if arrival is _UNSEEN:
        return stayed
    return [after[0], *stayed] if transition.at_head else [*stayed, after[-1]]


def _by_client(transition: Transition) -> Transition:
    """Return the add as one that the client decided, without a message that nobody saw."""
    return transition._replace(
        policy=None,
        policy_before=None,
        arrivals=tuple(entry for entry in transition.arrivals if entry is not _UNSEEN),
        evictions=tuple(each for each in transition.evictions if each.entry is not _UNSEEN),
    )
