"""Following something through a replay: when it was forgotten, and which limit still holds it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from chatmemory.core.loads import Keeping, smallest_limit
from chatmemory.core.messages import MessageType
from chatmemory.core.policies import Policy
from chatmemory.core.recall.histories import History
from chatmemory.core.window import Entry

MOST_ADDS = 5_000


@dataclass(frozen=True)
class Followed:
    """What became of a phrase under a policy.

    `forgotten` is the position of the first message at whose arrival no message in the window held
    it any more; None if one always did. `keeping` is the smallest limit of the policy's kind that
    holds it at the chosen place; None without a policy, or if it is not known.
    """

    forgotten: int | None
    keeping: Keeping | None


def follow(
    history: History,
    left: Sequence[int],
    mentions: Sequence[int],
    policy: Policy | None,
    at: int,
) -> Followed:
    """Follow a phrase that the messages at some positions hold, which ascend.

    `at` is the number of messages after which the limit shall hold it.
    """
    said = [position for position in mentions if position < at]
    keeping = smallest_limit_for(history.entries[:at], said, policy) if policy is not None else None
    return Followed(_forgotten(left, mentions), keeping)


def smallest_limit_for(
    said: Sequence[Entry], mentions: Sequence[int], policy: Policy
) -> Keeping | None:
    """Return the smallest limit that holds one of the mentions: the latest, or the latest system
    message, which stays while others leave.
    """
    systems = [position for position in mentions if said[position].type is MessageType.SYSTEM]
    latest = dict.fromkeys([*mentions[-1:], *systems[-1:]])
    found = [smallest_limit(said, position, policy, MOST_ADDS) for position in latest]
    known = [each for each in found if each is not None]
    return min(known, key=lambda each: each.limit or math.inf, default=None)


def _forgotten(left: Sequence[int], mentions: Sequence[int]) -> int | None:
    held_until = -1
    for position in mentions:
        if 0 <= held_until < position:
            return held_until
        held_until = max(held_until, left[position])
    return held_until if 0 <= held_until < len(left) else None
