"""Windows as queries return them: the messages that the model sees, in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Generic, NamedTuple, TypeVar

from chatmemory.core.messages import ChatMessage, MessageType
from chatmemory.core.policies import Policy
from chatmemory.core.stored_policies import can_decide, load_of
from chatmemory.core.transitions import over_limit
from chatmemory.core.window import Entry, Totals, total


class NoRoom(StrEnum):
    """Why no add evicts what a lowered limit hides: every message is refused."""

    BESIDE_PINS = "BESIDE_PINS"  # what is pinned holds all room that there is
    REJECTED = "REJECTED"  # there is no room, and the policy rejects oversized messages


class WindowPlace(NamedTuple):
    """A message's place in the window, with the tokens that counted then.

    `entered_step` is 0 if the message is only simulated.
    """

    seq: int
    type: MessageType
    has_calls: bool
    tokens: int
    entered_step: int = 0
    pinned: bool = False


class WindowRow(NamedTuple):
    """A place in the window with its message."""

    seq: int
    type: MessageType
    has_calls: bool
    tokens: int
    entered_step: int
    pinned: bool
    text: str
    message: ChatMessage


Place = TypeVar("Place", WindowPlace, WindowRow)


@dataclass(frozen=True)
class WindowView(Generic[Place]):
    """The window at a step as the model sees it.

    `over_limit` are messages that are still stored in the window, but hidden by a lowered limit;
    the next add evicts them, unless there is `no_room` for any message. `stored` are the totals
    with them, as the ledger has them, and `in_order` the rows that were shown or hidden.
    """

    memory_id: str
    step: int
    policy: Policy | None
    rows: tuple[Place, ...]
    over_limit: tuple[Place, ...]
    in_order: tuple[Place, ...]

    @cached_property
    def seqs(self) -> list[int]:
        return [row.seq for row in self.rows]

    @cached_property
    def totals(self) -> Totals:
        return total(self.rows)

    @cached_property
    def stored(self) -> Totals:
        return total((*self.rows, *self.over_limit))

    @property
    def load(self) -> int | None:
        return load_of(self.policy, self.totals)

    @property
    def system_at_head(self) -> Place | None:
        """The system message that is the first of all messages, or None."""
        first = self.rows[0] if self.rows else None
        return first if first and first.type is MessageType.SYSTEM else None

    @cached_property
    def first_system(self) -> Place | None:
        """The system message that does not leave for want of room, or None.

        It may stand anywhere: it is skipped at the head, which it reaches when others have left.
        """
        return next((row for row in self.rows if row.type is MessageType.SYSTEM), None)

    @cached_property
    def no_room(self) -> NoRoom | None:
        """Why every message is refused, so that what a lowered limit hides does not leave; None if
        one can be let in.
        """
        if not can_decide(self.policy):
            return None
        room = self.room_without_pins(self.policy)
        return why_no_room(self.policy, self.held_by_pins(self.policy), room)

    def held_by_pins(self, policy: Policy) -> int:
        """Return what pinned messages hold of a limit."""
        return sum(policy.cost(row.tokens) for row in self.rows if row.pinned)

    def room_without_pins(self, policy: Policy) -> int:
        """Return how large a message fits beside the system message that does not leave."""
        system = self.first_system
        return policy.limit - policy.overhead - (policy.cost(system.tokens) if system else 0)

    @cached_property
    def horizon(self) -> int | None:
        """The number of the oldest message, except system messages and drafts."""
        said = (row for row in self.rows if row.type is not MessageType.SYSTEM)
        return min((row.seq for row in said if row.seq > 0), default=None)

    @property
    def messages(self: WindowView[WindowRow]) -> list[ChatMessage]:
        return [row.message for row in self.rows]


def why_no_room(policy: Policy, held: int, room: int) -> NoRoom | None:
    """Return why every message is refused where pins hold so much of the room for messages."""
    if policy.meters_only or room - held >= 1:
        return None
    if policy.keeps_newest and policy.cost(room + 1) > room:
        return None  # a message larger than the limit is kept
    if room >= 1:
        return NoRoom.BESIDE_PINS
    return NoRoom.REJECTED if policy.rejects_oversized else None


def view_of(
    memory_id: str, step: int, policy: Policy | None, rows: Iterable[Place]
) -> WindowView[Place]:
    """Return the window of some rows, with those that a lowered limit hides in `over_limit`."""
    stored = tuple(rows)
    hidden = hidden_by(policy, stored, total(stored))
    shown = tuple(row for row in stored if row.seq not in hidden) if hidden else stored
    over = tuple(row for row in stored if row.seq in hidden) if hidden else ()
    return WindowView(memory_id, step, policy, shown, over, stored)


def hidden_by(policy: Policy | None, rows: Iterable[Place], totals: Totals) -> set[int]:
    """Return which messages a limit hides, by seq; nothing without an installed policy.

    The rows may be the first ones of a stored window with these totals.
    """
    if not can_decide(policy):
        return set()
    evictions = over_limit(entries_of(rows), totals, policy)
    return {seq for each in evictions if isinstance(seq := each.entry.key, int)}


def entries_of(rows: Iterable[Place]) -> Iterator[Entry]:
    """Yield places as entries, whose keys are their seqs."""
    for row in rows:
        yield Entry(row.type, row.has_calls, row.tokens, key=row.seq, pinned=row.pinned)
