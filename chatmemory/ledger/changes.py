"""Defines the result of a change. Simulated and stored changes have results of the same class."""

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
    """Return the totals of a window before a change, with the cost under `policy`, the policy in
    force after the change.

    The numbers of messages and tokens are those of `before`. The cost is the part of the limit that
    the messages take (`Policy.weigh`). It is computed from `after`:

        cost before = cost after - costs of the arrivals + costs of the evicted messages

    The cost is 0 if there is no policy, or if its kind is not installed.
    """
    if not can_decide(policy):
        return Totals(before.count, before.tokens)
    gained, lost = (sum(map(policy.weigh, some)) for some in (arrived, evicted))
    return Totals(before.count, before.tokens, after.cost - gained + lost)


# Wide: receivers of the signal read these names, and an import makes a result for each message.
@dataclass(unsafe_hash=True)
class ChangeResult:
    """The result of one change of a conversation.

    - `kind`: the kind of the change, such as "add".
    - `step`: the number of the step; None if the change makes no step, such as when nothing
      changed.
    - `seq`: the seq of the only message that arrived, or of the message that was pinned, unpinned,
      redacted or already known. None for all other changes.
    - `arrived`, `evicted`: the messages that came into the window, and those that left. Messages
      that were only moved are in neither.
    - `before`, `after`: the totals of the window.
    - `last_seq`: the highest seq before the change; 0 if `step` is None. Only arrivals with a
      higher seq are new messages.
    - `policy`: the policy in force after the change; None if there is none.
    - `policy_before`: for an add, the policy that trims the window before the message is appended.
      None if a client decided, or if nothing changed. `policy` trims the window afterwards, because
      LangChain4j reads its limit twice.
    - `replaced`: the previous policy, for a step that changed the policy and was read from the
      ledger. None if it is unknown, and for any other change.
    - `pinned`: the totals of the pinned messages, if an added message left at once for lack of
      room. Otherwise all zero.
    - `passed_pins`: whether messages left for lack of room while older, pinned messages stayed.
    - `by_client`: whether a client decided the change, and no policy.

    Do not change a result. The class is not frozen, because an import makes many results, and a
    frozen class takes four times as long.
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
        """The eviction of an added message that left in the same step, because it was too large to
        stay. None if there is no such message.
        """
        return next((each for each in self.evicted if each.misfit), None)

    @property
    def clears(self) -> bool:
        """Whether the change only replaces tool results by placeholders."""
        return self.kind == Change.CLEAR_RESULTS

    @property
    def only_replaces(self) -> bool:
        """Whether each message that left was replaced at its position: a tool result by a
        placeholder, or the index by a new index.
        """
        return self.clears or (self.kind == Change.INDEX and bool(self.arrived))

    @property
    def said_count(self) -> int:
        """The number of messages that this change adds to the history. Summaries and other messages
        that are not in history do not count.
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
