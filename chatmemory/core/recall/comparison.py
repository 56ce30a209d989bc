"""A history under one policy: what it held, what it lost and what its prompts would have been."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from chatmemory.core.loads import Keeping, smallest_limit
from chatmemory.core.messages import MessageType
from chatmemory.core.policies import Policy
from chatmemory.core.recall.facts import History, IncidentKind, Use, needs, repeats
from chatmemory.core.recall.prompts import Prompts, Refusals, prompt_sizes, prompts_of
from chatmemory.core.window import Entry


@dataclass(frozen=True)
class Compared:
    """The replay of a history under a policy; None as a policy keeps everything.

    `left` are the departures (see `replay`). `recalls` counts what is needed, and `lost` is what of
    it was not held, in order. `incidents` are the facts that came up again while they were
    forgotten, from a user or a tool.
    """

    policy: Policy | None
    history: History
    left: Sequence[int]
    recalls: int
    lost: tuple[Use, ...]
    incidents: tuple[Use, ...]
    prompts: Prompts

    @property
    def held(self) -> int:
        return self.recalls - len(self.lost)

    def count_of(self, kind: IncidentKind) -> int:
        """Return how many incidents of a kind there are."""
        return sum(use.kind is kind for use in self.incidents)

    @property
    def forgotten(self) -> int:
        """How many messages are not in the window at the end, without those that were ignored."""
        return sum(
            until < len(self.history) and not self.ignores(position)
            for position, until in enumerate(self.left)
        )

    def ignores(self, position: int) -> bool:
        """Return whether a message never came in: a system message that equals the one in force.

        Another one stays at least while the next messages arrive.
        """
        is_system = self.history.entries[position].type is MessageType.SYSTEM
        return is_system and self.left[position] == position

    def has(self, position: int, at: int) -> bool:
        """Return whether the message at a position is in the window after `at` messages."""
        return position < at <= self.left[position]

    def prompt_sizes(self) -> list[int]:
        """Return the tokens that the window after each message would be sent with."""
        return prompt_sizes(self.history, self.left)


def replay(history: History, policy: Policy | None, refusals: Refusals | None = None) -> Compared:
    """Replay a history under a policy; providers are asked with the `refusals` of the history."""
    left = history.loads.left_at(policy)
    keeps_first = policy is not None and policy.always_keep_system_message_first
    needed = list(needs(history, left))
    return Compared(
        policy,
        history,
        left,
        len(needed),
        tuple(use for use in needed if not use.is_held),
        tuple(use for use in repeats(history, left) if not use.is_held),
        prompts_of(history, left, keeps_first, refusals),
    )


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
    if policy is not None:
        keeping = smallest_limit_for(history.entries[:at], said, policy)
    return Followed(_forgotten(left, mentions), keeping)


def smallest_limit_for(
    said: Sequence[Entry], mentions: Sequence[int], policy: Policy
) -> Keeping | None:
    """Return the smallest limit that holds one of the mentions: the latest system message, which
    stays while others leave, or the latest other one, as a system message can be replaced.
    """
    systems = [position for position in mentions if said[position].type is MessageType.SYSTEM]
    others = [position for position in mentions if said[position].type is not MessageType.SYSTEM]
    latest = (*others[-1:], *systems[-1:])
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
