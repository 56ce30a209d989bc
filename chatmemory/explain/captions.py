"""Captions: a sentence for each step of the ledger."""

from __future__ import annotations

from dataclasses import dataclass

from chatmemory.explain.causes import cause_in, listed
from chatmemory.explain.wording import (
    MINUS,
    capitalized,
    counted,
    decapitalized,
    happened,
    in_unit,
    policy_words,
    role,
)
from chatmemory.ledger.changes import ChangeResult
from chatmemory.messages.message import MessageType
from chatmemory.messages.texts import named
from chatmemory.models import Step
from chatmemory.windows.eviction import Eviction
from chatmemory.windows.policies import Policy
from chatmemory.windows.stored_policies import can_decide
from chatmemory.windows.window import Entry, Totals


@dataclass(frozen=True)
class Caption:
    """The parts of the sentence about a step.

    - `event`: what happened.
    - `gain`, `loss`: what memory gained and lost, such as `+85 tokens` and `2 messages left memory,
      −60 tokens`.
    - `detail`: why the messages left, or another remark, such as `It fits.`
    """

    event: str
    gain: str = ""
    loss: str = ""
    detail: str = ""

    @property
    def summary(self) -> str:
        event = ", ".join(filter(None, [self.event, self.gain])) + "."
        if not self.loss:
            return " ".join(filter(None, [event, self.detail]))
        return f"{event} {self.loss}: {self.detail}" if self.detail else f"{event} {self.loss}."


def caption(change: ChangeResult, note: str = "") -> Caption:
    """Return the caption of a change. The caption of a simulated change says what would happen.

    `note` is the remark that is stored with the step. The caption of an add that evicted messages
    usually ends with this remark. Other captions ignore it.
    """
    in_tokens = change.policy is None or change.policy.unit != "messages"
    gained, lost = change.gained, change.lost
    if change.kind == "index" and change.arrived:
        return Caption(_event(change), gain=_gain(gained))
    if change.kind in ("compact", "stub"):
        return Caption(_event(change), detail=f"{lost:,} tokens became {gained:,}.")
    if misfit := _only_misfit(change):
        return Caption(_of_misfit(change, misfit, in_tokens), detail=_noted(change, note))
    left = "would leave memory" if change.is_of_draft else "left memory"
    loss = f"{counted(len(change.evicted), 'message')} {left}" if change.evicted else ""
    return Caption(
        event=_event(change),
        gain=_gain(gained) if in_tokens else "",
        loss=f"{loss}, {MINUS}{counted(lost, 'token')}" if loss and in_tokens and lost else loss,
        detail=_reasons(change, note) if change.evicted else _fit(change),
    )


def _gain(tokens: int) -> str:
    return f"+{counted(tokens, 'token')}" if tokens else ""


def _fit(change: ChangeResult) -> str:
    """Return words that say whether memory is within its limit after an add that evicted
    nothing.
    """
    if change.kind != "add" or not can_decide(change.policy):
        return ""
    is_, fits = ("would be", "would fit") if change.is_of_draft else ("is", "fits")
    return how_far_over(change.policy, change.after, is_) or f"It {fits}."


def how_far_over(policy: Policy | None, totals: Totals, is_: str = "would be") -> str:
    """Return a sentence about how far memory is over its limit: `Memory would be 55 tokens over the
    limit.` Returns "" if memory is within its limit.

    `is_` is the verb of the sentence.
    """
    if not can_decide(policy) or not policy.is_exceeded_by(totals):
        return ""
    return f"Memory {is_} {in_unit(policy.load(totals) - policy.limit, policy)} over the limit."


def _event(change: ChangeResult) -> str:
    match change.kind:
        case "policy":
            return f"The policy became {policy_words(change.policy, change.replaced)}"
        case "labels" | "clear" | "repair":
            return capitalized(happened(change.kind))
        case "redact":
            return f"Message #{change.seq} was redacted"
        case "compact" | "stub" | "index":
            return _became(change)
        case "pin" | "unpin":
            return f"Message #{change.seq} was {change.kind}ned"
    if len(change.arrived) == 1:
        (arrived,) = change.arrived
        if arrived.seq < 0:
            return f"{capitalized(named(arrived.seq))} would arrive"
        return f"{_noun(arrived)} #{arrived.seq} {_arrival(change, arrived)}"
    if change.kind == "add" and not change.arrived:
        return "A message arrived and left at once"
    if change.kind == "set":
        injected = sum(each.is_injected for each in change.arrived)
        some = f", {injected:,} of them not in history" if injected else ""
        injected_words = ", not in history" if injected == len(change.arrived) > 0 else some
        added = counted(len(change.arrived), "message")
        were = "was" if len(change.arrived) == 1 else "were"
        return f"The message list was replaced; {added} {were} added{injected_words}"
    return f"{len(change.arrived):,} drafts would arrive"  # all of a simulation


def _became(change: ChangeResult) -> str:
    """Return words about the summary, the placeholders or the index that replaced messages."""
    count = len(change.evicted)
    if change.kind == "index":
        return _indexed(change)
    if change.kind == "compact":
        return f"{counted(count, 'message')} became summary #{change.seq}"
    return f"{counted(count, 'old tool result')} {'was' if count == 1 else 'were'} cleared"


def _indexed(change: ChangeResult) -> str:
    if not change.arrived:
        return "The index of exact terms left memory"
    verb = "renewed" if change.evicted else "added"
    return f"The index of exact terms was {verb} as #{change.seq}"


def _arrival(change: ChangeResult, arrived: Entry) -> str:
    if arrived.is_injected:
        return "was put into memory, not in history"
    if change.kind == "add" and change.eviction_of(arrived.seq):
        is_own = arrived.type is MessageType.AI
        return "left memory as it arrived" if is_own else "never reached the model"
    return "arrived"


def _only_misfit(change: ChangeResult) -> Eviction | None:
    """Return the eviction of an added message that could not stay, if no other message left."""
    if change.kind != "add" or change.is_of_draft or change.by_client:
        return None
    if len(change.arrived) != 1 or len(change.evicted) != 1:
        return None
    misfit = change.eviction_of(change.arrived[0].seq)
    return misfit if misfit and misfit.misfit else None


def _of_misfit(change: ChangeResult, misfit: Eviction, in_tokens: bool) -> str:
    """Return one sentence about a message that left in the step that added it: `User message #2 (95
    tokens) arrived and left at once, so it never reached the model: it was too large for the
    limit`.
    """
    (arrived,) = change.arrived
    size = f" ({counted(misfit.tokens, 'token')})" if in_tokens else ""
    missed = "" if arrived.type is MessageType.AI else ", so it never reached the model"
    why = decapitalized(cause_in(change, misfit).sentence).removesuffix(".")
    return f"{_noun(arrived)} #{arrived.seq}{size} arrived and left at once{missed}: {why}"


def _noun(arrived: Entry) -> str:
    name = role(arrived.type, arrived.has_calls)
    return name if name.startswith("Tool") else f"{name} message"


def _reasons(change: ChangeResult, note: str) -> str:
    """Return why the messages of a change left, and the note of the step."""
    return " ".join(filter(None, [", ".join(listed(change)) + ".", _noted(change, note)]))


def _noted(change: ChangeResult, note: str) -> str:
    """Return the note of a step that added a message; "" for a copied message."""
    return note if change.kind == "add" and note not in (Step.IMPORTED, Step.BRANCHED) else ""
