"""Fitting: messages for which a limit has no room, which are refused or leave at once, and why.

A message is *oversized* if the limit has no room for it even alone: beside the leading system
message, and with what every request costs. Pinned messages do not count in that.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NoReturn

from chatmemory.core.eviction import Eviction
from chatmemory.core.exceptions import NoRoomBesidePins, OversizedMessage
from chatmemory.core.messages import MessageType
from chatmemory.core.policies import Policy
from chatmemory.core.window import Entry, Totals, total


class CannotFit(StrEnum):
    """The cause for which a message cannot stay although all that can leave has left.

    What remains is what a policy never evicts: a leading system message, or nothing. Pinned
    messages do not count: an add that only they leave no room for is refused.
    """

    TOO_BIG = "TOO_BIG"
    TOO_BIG_BESIDE_SYSTEM = "TOO_BIG_BESIDE_SYSTEM"
    SYSTEM_TOO_BIG = "SYSTEM_TOO_BIG"
    SYSTEM_FILLS = "SYSTEM_FILLS"

    @property
    def is_of_system(self) -> bool:
        """Whether the system message leaves no room to any other."""
        return self in (CannotFit.SYSTEM_TOO_BIG, CannotFit.SYSTEM_FILLS)


def why_it_cannot_fit(policy: Policy, remaining: Totals, tokens: int) -> CannotFit:
    """Return why a message of `tokens` tokens could not stay beside what remained without it.

    `remaining` leaves out pinned messages.
    """
    if not remaining.count:
        return CannotFit.TOO_BIG
    if policy.is_exceeded_by(remaining):
        return CannotFit.SYSTEM_TOO_BIG
    if policy.is_exceeded_by(Totals(remaining.count + 1, remaining.tokens)):
        return CannotFit.SYSTEM_FILLS
    if policy.is_exceeded_by(Totals(1, tokens)):
        return CannotFit.TOO_BIG
    return CannotFit.TOO_BIG_BESIDE_SYSTEM


def is_oversized(policy: Policy, system: Entry | None, message: Entry) -> bool:
    """Return whether the limit has no room for a message beside the leading system message."""
    return policy.is_exceeded_by(total(_with(system, message)))


def check_oversized(
    policy: Policy, system: Entry | None, message: Entry, index: int | None = None
) -> None:
    """Raise OversizedMessage for a message that is oversized. `index` is its place in a list."""
    if not is_oversized(policy, system, message):
        return
    beside = [each for each in _with(system, message) if each != message]
    parts = {"the message": [message], "the system message": beside}
    sums = _sums(policy, {name: total(entries) for name, entries in parts.items()})
    raise OversizedMessage(
        f"the message is oversized, which the policy rejects: {sums}. Shorten it, or raise the "
        "limit",
        index,
    )


def check_list(policy: Policy, system: Entry | None, messages: Sequence[Entry]) -> None:
    """Raise OversizedMessage for the first message of a list that is oversized and not pinned."""
    for index, message in enumerate(messages):
        if not message.pinned:
            check_oversized(policy, system, message, index)


def refuse_beside_pins(
    policy: Policy, arrival: Entry, entries: Sequence[Entry], evictions: Sequence[Eviction]
) -> NoReturn:
    """Raise NoRoomBesidePins for a message that fits the limit only if nothing is pinned.

    `entries` are those in memory with the arrival in its place, and `evictions` what would leave.
    The sum has what would stay, the message, and what would leave with it.
    """
    gone = {eviction.entry for eviction in evictions}
    kept = [entry for entry in entries if entry not in gone]
    free = [entry for entry in kept if not entry.pinned]
    system = [entry for entry in free[:1] if entry.type is MessageType.SYSTEM and entry != arrival]
    others = [entry for entry in free[len(system) :] if entry != arrival]
    is_result = arrival.type is MessageType.TOOL_EXECUTION_RESULT
    parts = {
        "the message": [arrival],
        "what it answers": [*_left_with(arrival, evictions), *(others if is_result else [])],
        "the system message": system,
        "the newest message": [] if is_result else others,
        "what is pinned": [entry for entry in kept if entry.pinned],
    }
    sums = _sums(policy, {name: total(entries) for name, entries in parts.items()})
    raise NoRoomBesidePins(
        f"the message fits the limit, but not beside what is pinned: {sums}. Unpin a message, or "
        "raise the limit"
    )


def _left_with(arrival: Entry, evictions: Sequence[Eviction]) -> list[Entry]:
    """Return the tool call with which a result leaves, and its other results."""
    call = next((each.because for each in evictions if each.entry == arrival), None)
    left = [each.entry for each in evictions if call in (each.entry, each.because)]
    return [entry for entry in left if entry != arrival] if call else []


def _with(system: Entry | None, message: Entry) -> list[Entry]:
    return [message] if system is None or system == message else [system, message]


def _sums(policy: Policy, parts: dict[str, Totals]) -> str:
    """Return `900 for the message + 3 for every request = 903 of 800 tokens`."""
    count = sum(part.count for part in parts.values())
    tokens = sum(part.tokens for part in parts.values())
    needed = policy.load(count, tokens)
    terms = [
        f"{policy.load(*part) - policy.overhead:,} for {name}"
        for name, part in parts.items()
        if part.count
    ]
    if policy.overhead:
        terms.append(f"{policy.overhead:,} for every request")
    return f"{' + '.join(terms)} = {needed:,} of {policy.limit:,} {policy.unit}"
