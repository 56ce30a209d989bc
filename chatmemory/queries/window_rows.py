"""Windows as queries return them: the messages that the model sees, in order."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Generic, NamedTuple, TypeVar

from chatmemory.core.departures import PINNED, Departures
from chatmemory.core.long_lists import SEQ, TOKENS, TYPE, LongList, seqs_of, tokens_of
from chatmemory.core.messages import ChatMessage, MessageType
from chatmemory.core.policies import Policy
from chatmemory.core.stored_policies import can_decide, load_of
from chatmemory.core.trimming import costs, departures
from chatmemory.core.window import Totals


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
    with them, as the ledger has them.
    """

    memory_id: str
    step: int
    policy: Policy | None
    rows: LongList[Place]
    over_limit: LongList[Place]

    @cached_property
    def seqs(self) -> list[int]:
        return seqs_of(self.rows)

    @cached_property
    def totals(self) -> Totals:
        return Totals(len(self.rows), sum(tokens_of(self.rows)))

    @cached_property
    def stored(self) -> Totals:
        hidden = sum(tokens_of(self.over_limit))
        return Totals(self.totals.count + len(self.over_limit), self.totals.tokens + hidden)

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
        types = [columns[TYPE] for columns in self.rows.columns]
        system = MessageType.SYSTEM.value
        return self.rows[types.index(system)] if system in types else None

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
        return costs(policy, [c[TOKENS] for c in self.rows.columns if c[PINNED]])

    def room_without_pins(self, policy: Policy) -> int:
        """Return how large a message fits beside the system message that does not leave."""
        system = self.first_system
        return policy.limit - policy.overhead - (policy.cost(system.tokens) if system else 0)

    @cached_property
    def horizon(self) -> int | None:
        """The number of the oldest message, except system messages and drafts."""
        system, columns = MessageType.SYSTEM.value, self.rows.columns
        return min([c[SEQ] for c in columns if c[SEQ] > 0 and c[TYPE] != system], default=None)

    @property
    def messages(self: WindowView[WindowRow]) -> list[ChatMessage]:
        return [row.message for row in self.rows]


def why_no_room(policy: Policy, held: int, room: int) -> NoRoom | None:
    """Return why every message is refused where pins hold so much of the room for messages."""
    if policy.meters_only or room - held >= 1:
        return None
    if room >= 1:
        return NoRoom.BESIDE_PINS
    return NoRoom.REJECTED if policy.rejects_oversized else None


def view_of(
    memory_id: str, step: int, policy: Policy | None, rows: LongList[Place]
) -> WindowView[Place]:
    """Return the window of some rows, with those that a lowered limit hides in `over_limit`."""
    return WindowView(memory_id, step, policy, *visible(rows, policy))


def visible(
    rows: LongList[Place], policy: Policy | None
) -> tuple[LongList[Place], LongList[Place]]:
    """Return the rows of a stored window that a read gives, and those that the policy hides."""
    return parted(rows, departures(rows.columns, totals_of(rows), policy))


def parted(rows: LongList[Place], left: Departures) -> tuple[LongList[Place], LongList[Place]]:
    """Return the rows that stay, and those that leave, both in order."""
    hidden = left.positions
    shown = sorted(set(range(len(rows))).difference(hidden)) if hidden else ()
    return rows.picked(shown) if hidden else rows, rows.picked(sorted(hidden))


def totals_of(rows: LongList[Place]) -> Totals:
    """Return the totals of some rows of a window."""
    return Totals(len(rows), sum(tokens_of(rows)))
