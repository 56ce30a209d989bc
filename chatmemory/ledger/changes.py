"""The results of changes, the same for stored and for simulated ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from chatmemory.messages.message import ChatMessage, MessageType
from chatmemory.windows.eviction import Eviction, Reason
from chatmemory.windows.policies import Policy
from chatmemory.windows.stored_policies import can_decide
from chatmemory.windows.transitions import CannotFit, Change
from chatmemory.windows.window import NOTHING, Entry, Totals

_INJECTED = "SYNTHETIC"


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message to be added, with the client's id for it and the time at which it was said. A
    redaction keeps both.
    """

    message: ChatMessage
    client_id: str | None = None
    said_at: datetime | None = None


class ArrivedMessage(NamedTuple):
    """A message that entered the window, as a new message or again after it had left."""

    seq: int
    type: MessageType
    has_calls: bool
    tokens: int
    origin: str
    is_new: bool = True

    @classmethod
    def of(cls, entry: Entry, last_seq: int) -> ArrivedMessage:
        """Return the arrival of an entry. Messages up to `last_seq` were known before."""
        return cls(
            entry.seq,
            entry.type,
            entry.has_calls,
            entry.tokens,
            entry.origin,
            is_new=entry.seq > last_seq,
        )

    @property
    def was_said(self) -> bool:
        """Whether the message is also new in the history."""
        return self.is_new and self.origin == "SAID"

    @property
    def is_injected(self) -> bool:
        """Whether a client put the message into the window; it is not part of the history."""
        return self.origin == _INJECTED


class EvictedMessage(NamedTuple):
    """A message that left the window.

    `because_seq` is the tool call with which a result left, or the system message that replaced it.
    `misfit` is why a message left in the step that added it.
    """

    seq: int
    type: MessageType
    has_calls: bool
    tokens: int
    reason: Reason
    because_seq: int | None = None
    misfit: CannotFit | None = None

    @classmethod
    def of(cls, eviction: Eviction, misfit: CannotFit | None = None) -> EvictedMessage:
        """Return the message of a recorded eviction. A replacement by its own stub is not named."""
        entry, reason, because = eviction
        cause = because.seq or None if because and reason is not Reason.STUBBED else None
        return cls(
            entry.seq,
            entry.type,
            entry.has_calls,
            entry.tokens,
            reason,
            cause,
            misfit,
        )


def totals_before(
    policy: Policy | None,
    before: Totals,
    after: Totals,
    arrived: Iterable[ArrivedMessage],
    evicted: Iterable[EvictedMessage],
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
    redacted. `arrived` and `evicted` do not contain messages that only changed their position.
    `before` and `after` are the totals of the stays; `policy` is the policy in force after the
    change. An add first trims under `policy_before`, because LangChain4j reads the limit twice. If
    a message left at once, `pinned` is the part of `after` that pinned messages hold. `passed_pins`
    is True if pinned messages are older than some that left for want of room. A change `by_client`
    is a list of a client that decides its memory: no policy decided it, even if one is in force. A
    stored change of the policy has the policy that it `replaced`, if an earlier step recorded it.

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
    arrived: tuple[ArrivedMessage, ...] = ()
    evicted: tuple[EvictedMessage, ...] = ()
    pinned: Totals = NOTHING
    passed_pins: bool = field(default=False, compare=False)
    by_client: bool = False
    replaced: Policy | None = field(default=None, compare=False)

    @property
    def is_of_draft(self) -> bool:
        """Whether it is the change of a draft: the seqs of drafts are counted down from -1."""
        return self.seq is not None and self.seq < 0

    def eviction_of(self, seq: int) -> EvictedMessage | None:
        """Return the eviction of a message, or None if it stayed."""
        return next((each for each in self.evicted if each.seq == seq), None)

    @cached_property
    def misfit(self) -> EvictedMessage | None:
        """The message that left in the step that added it, or None."""
        return next((each for each in self.evicted if each.misfit), None)

    @property
    def clears(self) -> bool:
        """Whether the change replaces tool results by stubs, so that no message leaves."""
        return self.kind == Change.CLEAR_RESULTS

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
