"""A history under one policy: what it held, what it lost and what its prompts would have been."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chatmemory.core.messages import MessageType
from chatmemory.core.policies import Policy
from chatmemory.core.recall.histories import History
from chatmemory.core.recall.prompts import Prompts, prompt_sizes, prompts_of
from chatmemory.core.recall.refusals import Refusals
from chatmemory.core.recall.scores import Use, uses


@dataclass(frozen=True)
class Compared:
    """The replay of a history under a policy; None as a policy keeps everything.

    `left` are the departures (see `replay`). `lost` are the recalls that were not held, in order,
    and `said_again` the facts that users said again while they were forgotten.
    """

    policy: Policy | None
    history: History
    left: Sequence[int]
    recalls: int
    lost: tuple[Use, ...]
    said_again: tuple[Use, ...]
    prompts: Prompts

    @property
    def held(self) -> int:
        return self.recalls - len(self.lost)

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


def compare(history: History, policy: Policy | None, refusals: Refusals | None = None) -> Compared:
    """Replay a history under a policy; providers are asked with the `refusals` of the history."""
    left = history.loads.left_at(policy)
    keeps_first = policy is not None and policy.always_keep_system_message_first
    recalls = list(uses(history, left, MessageType.AI))
    repeats = uses(history, left, MessageType.USER)
    return Compared(
        policy,
        history,
        left,
        len(recalls),
        tuple(use for use in recalls if not use.is_held),
        tuple(use for use in repeats if not use.is_held),
        prompts_of(history, left, keeps_first, refusals),
    )
