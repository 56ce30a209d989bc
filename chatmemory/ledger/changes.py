"""The results of changes. Stored and simulated changes have the same results."""

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
    """Return the totals before a change, with the costs of the policy in force after it.

    They are the totals after it, minus the arrivals, plus the evictions.
    """
    if not can_decide(policy):
        return Totals(before.count, before.tokens)
    gained, lost = (sum(map(policy.weigh, some)) for some in (arrived, evicted))
    return Totals(before.count, before.tokens, after.cost - gained + lost)


@dataclass(unsafe_hash=True)
class ChangeResult:
    """The result of one change of a conversation. `step` is None if nothing was changed.

    `kind` is the kind of the step. `seq` is the message that was added, was already known, or was
    redacted. `arrived` and `evicted` do not contain messages that only changed their position;
    arrivals up to `last_seq` were known before. `before` and `after` are the totals of the stays;
    `policy` is the policy in force after the change. An add first trims under `policy_before`,
    because LangChain4j reads the limit twice. If a message left at once, `pinned` is the part of
    `after` that pinned messages hold. `passed_pins` is True if pinned messages are older than some
    that left for want of room. A change `by_client` is a list of a client that decides its memory:
    no policy decided it, even if one is in force. A stored change of the policy has the policy that
    it `replaced`, if an earlier step recorded it.

    A result is never changed. It is not frozen, as an import makes one of each message, and a
    frozen one takes four times as long.
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
        """Whether it is the change of a draft: the seqs of drafts are counted down from -1."""
        return self.seq is not None and self.seq < 0

    def eviction_of(self, seq: int) -> Eviction | None:
        """Return the eviction of a message, or None if it stayed."""
        return next((each for each in self.evicted if each.seq == seq), None)

    @cached_property
    def misfit(self) -> Eviction | None:
        """The eviction of an oversized message in the step that added this message; None without
        one.
        """
        return next((each for each in self.evicted if each.misfit), None)

    @property
    def clears(self) -> bool:
        """Whether the change replaces tool results by stubs, so that no message leaves."""
        return self.kind == Change.CLEAR_RESULTS

    @property
    def only_replaces(self) -> bool:
        """Whether each message that left has another one in its place: a stub, or an index."""
        return self.clears or (self.kind == Change.INDEX and bool(self.arrived))

    @property
    def said_count(self) -> int:
        """The number of messages that are also new in the history."""
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
