"""Following something through a replay: when it was forgotten, and which limit still holds it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chatmemory.core.keeping import Keeping, smallest_limit
from chatmemory.core.policies import Policy
from chatmemory.core.recall.histories import History

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
    keeping = None
    if policy is not None and said:
        keeping = smallest_limit(history.entries[:at], said[-1], policy, MOST_ADDS)
    return Followed(_forgotten(left, mentions), keeping)


def _forgotten(left: Sequence[int], mentions: Sequence[int]) -> int | None:
    held_until = -1
    for position in mentions:
        if 0 <= held_until < position:
            return held_until
        held_until = max(held_until, left[position])
    return held_until if 0 <= held_until < len(left) else None
