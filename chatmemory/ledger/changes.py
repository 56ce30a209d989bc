"""What a change did, as callers are told: the same for stored and for simulated changes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from chatmemory.core.eviction import Reason
from chatmemory.core.messages import ChatMessage, MessageType
from chatmemory.core.policies import Policy
from chatmemory.core.window import Totals


@dataclass(frozen=True)
class NewMessage:
    """A message to be added, with what its sender says about it."""

    message: ChatMessage
    client_id: str | None = None
    said_at: datetime | None = None


@dataclass(frozen=True)
class ArrivedMessage:
    """A message that came into the window. It is new, or it returned after it had left."""

    seq: int
    type: MessageType
    has_calls: bool
    tokens: int
    origin: str
    is_new: bool = True

    @property
    def was_said(self) -> bool:
        """Whether it is new in the history, too."""
        return self.is_new and self.origin == "SAID"


@dataclass(frozen=True)
class EvictedMessage:
    """A message that left the window; `because_seq` is its tool call, or what replaced it."""

    seq: int
    type: MessageType
    has_calls: bool
    tokens: int
    reason: Reason
    because_seq: int | None = None


@dataclass(frozen=True)
class ChangeResult:
    """What one change did to a conversation. `step` is None when it changed nothing.

    `kind` is that of the step. `seq` is the message that the change is about: the one that was
    added, is known already, or was redacted. `arrived` and `evicted` leave out messages that only
    changed their place. The totals are those of the stays, `policy` is the one then in force.
    """

    kind: str
    step: int | None
    policy: Policy | None
    before: Totals
    after: Totals
    seq: int | None = None
    arrived: tuple[ArrivedMessage, ...] = ()
    evicted: tuple[EvictedMessage, ...] = ()

    @property
    def ignored(self) -> bool:
        return self.step is None
