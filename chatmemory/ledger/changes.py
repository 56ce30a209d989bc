"""Defines the result of a change. Stored and simulated changes have the same kind of result."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from chatmemory.windows.eviction import Eviction
from chatmemory.windows.policies import Policy
from chatmemory.windows.stored_policies import can_decide
from chatmemory.windows.transitions import Change
from chatmemory.windows.window import NOTHING, SAID, Entry, Totals


def totals_before(
    policy: Policy | None,
    before: Totals,
    after: Totals,
    arrived: Iterable[Entry],
    evicted: Iterable[Eviction],
) -> Totals:
    """Return the totals of a window before a change. Their cost is what the limit of a policy
    bounds, such as the number of tokens or turns.

    The cost is measured by the policy in force after the change. It is the cost after the change,
    minus the costs of the arrivals, plus the costs of the evicted messages. Without an installed
    policy, the cost is 0.
    """
    if not can_decide(policy):
        return Totals(before.count, before.tokens)
    gained, lost = (sum(map(policy.weigh, some)) for some in (arrived, evicted))
    return Totals(before.count, before.tokens, after.cost - gained + lost)


# Wide: receivers of the signal read these names, and an import makes a result for each message.
@dataclass(unsafe_hash=True)
class ChangeResult:
    """The result of one change of a conversation. `step` is the number of the step, or None if
    nothing was changed.

    `kind` is the kind of the step. `seq` is the number of the message that was added, pinned or
    redacted, or was already known. `arrived` has the messages that came into the window, and
    `evicted` the messages that left. Messages that only changed their position are in neither. An
    arrival with a seq up to `last_seq` was in the history before. `before` and `after` are the
    totals of the window.

    `policy` is the policy in force after the change. An add first trims under `policy_before`,
    because LangChain4j reads the limit twice. If an added message left at once, `pinned` are the
    totals of the pinned messages in `after`. `passed_pins` is True if messages left for lack of
    room although older messages, which are pinned, stayed.

    With `by_client`, the change comes from a client that decides what is in its window: no policy
    decided the change, even if a policy is in force. For a stored step that changed the policy,
    `replaced` is the policy before the step, if an earlier step recorded it.

    A result is never changed. The class is not frozen, because an import makes a result for each
    message, and a frozen class takes four times as long.
    """

    kind: str
    step: int | None
    policy: Policy | None
    before: Totals
    after: Totals
    policy_before: Policy | None = None
    seq: int | None = None
    arrived: tuple[Entry, ...] = ()
    evicted: tuple[Eviction, ...] = ()
    pinned: Totals = NOTHING
    passed_pins: bool = field(default=False, compare=False)
    by_client: bool = False
    replaced: Policy | None = field(default=None, compare=False)
    last_seq: int = 0

    @property
    def is_of_draft(self) -> bool:
        """Whether the change adds a message of a simulation. Simulated messages get the seqs -1, -2
        and so on.
        """
        return self.seq is not None and self.seq < 0

    def eviction_of(self, seq: int) -> Eviction | None:
        """Return the eviction of a message in this change, or None if the message was not
        evicted.
        """
        return next((each for each in self.evicted if each.seq == seq), None)

    @cached_property
    def misfit(self) -> Eviction | None:
        """The eviction of a message that was larger than the limit, in the step that added this
        message; None if there is none.
        """
        return next((each for each in self.evicted if each.misfit), None)

    @property
    def clears(self) -> bool:
        """Whether the change replaces tool results by placeholders, so that no message leaves."""
        return self.kind == Change.CLEAR_RESULTS

    @property
    def only_replaces(self) -> bool:
        """Whether each message that left was replaced at its position: a tool result by a
        placeholder, or an index message by a new one.
        """
        return self.clears or (self.kind == Change.INDEX and bool(self.arrived))

    @property
    def said_count(self) -> int:
        """The number of arrived messages that are also new in the history, without summaries and
        other inserted messages.
        """
        return sum(each.seq > self.last_seq and each.origin == SAID for each in self.arrived)

    @property
    def gained(self) -> int:
        """The tokens of the messages that arrived."""
        return sum(each.tokens for each in self.arrived)

    @property
    def lost(self) -> int:
        """The tokens of the messages that left."""
        return sum(each.tokens for each in self.evicted)

    @property
    def ignored(self) -> bool:
        return self.step is None
