"""Captions: one sentence per step, which can be understood without anything else."""

from __future__ import annotations

from dataclasses import dataclass

from chatmemory.core.eviction import Reason
from chatmemory.core.naming import named
from chatmemory.core.stored_policies import can_decide
from chatmemory.explain.causes import cause_of
from chatmemory.explain.wording import (
    amount,
    capitalized,
    counted,
    decapitalized,
    in_unit,
    oldest,
    policy_words,
    role,
    seqs,
)
from chatmemory.ledger.changes import ChangeResult

_WHOLE = {Reason.SET: "not in the new list", Reason.CLEARED: "cleared"}  # reasons of whole lists


@dataclass(frozen=True)
class Caption:
    """The parts of a sentence: the event, the gain (+85), the loss, and its reasons."""

    event: str
    gain: str = ""
    loss: str = ""
    detail: str = ""

    @property
    def summary(self) -> str:
        event = " ".join(filter(None, [self.event, self.gain])) + "."
        if not self.loss:
            return " ".join(filter(None, [event, self.detail]))
        return f"{event} {self.loss}: {self.detail}" if self.detail else f"{event} {self.loss}."


def caption(change: ChangeResult) -> Caption:
    """Return the caption of a change; that of what a draft would do is in the conditional."""
    in_tokens = change.policy is None or change.policy.unit != "messages"
    gained, lost = change.gained, change.lost
    left = "would leave" if change.is_of_draft else "left"
    loss = f"{counted(len(change.evicted), 'message')} {left}" if change.evicted else ""
    return Caption(
        event=_event(change),
        gain=f"+{gained:,}" if in_tokens and gained else "",
        loss=f"{loss} {amount(-lost)}" if loss and in_tokens and lost else loss,
        detail=_reasons(change) if change.evicted else _fit(change),
    )


def _fit(change: ChangeResult) -> str:
    """Say whether an add that evicted nothing fits."""
    if change.kind != "add" or not can_decide(change.policy):
        return ""
    over = change.policy.load(*change.after) - change.policy.limit
    is_, fits = ("would be", "would fit") if change.is_of_draft else ("is", "fits")
    return (
        f"Memory {is_} {in_unit(over, change.policy)} over the limit."
        if over > 0
        else f"It {fits}."
    )


def _event(change: ChangeResult) -> str:
    match change.kind:
        case "policy":
            return f"The policy became {policy_words(change.policy, change.replaced)}"
        case "labels":
            return "The labels changed"
        case "clear":
            return "Memory was cleared"
        case "redact":
            return f"Message #{change.seq} was redacted"
        case "pin" | "unpin":
            return f"Message #{change.seq} was {change.kind}ned"
    if len(change.arrived) == 1:
        (arrived,) = change.arrived
        if arrived.seq < 0:
            return f"{capitalized(named(arrived.seq))} would arrive"
        name = role(arrived.type, arrived.has_calls)
        noun = name if name.startswith("Tool") else f"{name} message"
        verb = "was put into memory, never said" if arrived.is_injected else "arrived"
        return f"{noun} #{arrived.seq} {verb}"
    if change.kind == "add" and not change.arrived:
        return "A message came that left at once"
    if change.kind == "set":
        injected = sum(each.is_injected for each in change.arrived)
        some = f", {injected:,} of them never said" if injected else ""
        never_said = ", never said" if injected == len(change.arrived) > 0 else some
        return f"Memory was set; {len(change.arrived):,} messages came{never_said}"
    return f"{len(change.arrived):,} drafts would arrive"  # all of a simulation


def _reasons(change: ChangeResult) -> str:
    """`#25 and #26 were the oldest, results #27 and #28 left with #26.`

    What would happen: `#25 and #26 are the oldest, results #27 and #28 would leave with #26.`
    """
    would = change.is_of_draft
    was, were, left = ("is", "are", "would leave") if would else ("was", "were", "left")
    misfit = change.misfit
    by_reason: dict[Reason, list[int]] = {}
    for each in change.evicted:
        if not each.misfit:
            by_reason.setdefault(each.reason, []).append(each.seq)
    parts = []
    if first := by_reason.get(Reason.CAPACITY):
        parts.append(f"{seqs(first)} {was if len(first) == 1 else were} the {oldest(change)}")
    if orphans := by_reason.get(Reason.ORPHANED):
        results = "result" if len(orphans) == 1 else "results"
        parts.append(f"{results} {seqs(orphans)} {left} with {_calls(change)}")
    if rest := by_reason.get(Reason.TURN):
        parts.append(f"{seqs(rest)} {was if len(rest) == 1 else were} the rest of a turn")
    if misfit:
        cause = cause_of(misfit.reason, misfit.misfit).told(would).removesuffix(".")
        parts.append(f"{named(misfit.seq)} could not stay: {decapitalized(cause)}")
    if replaced := by_reason.get(Reason.REPLACED):
        parts.append(f"{seqs(replaced)} {'would be' if would else 'was'} replaced")
    for reason, words in _WHOLE.items():
        if messages := by_reason.get(reason):
            parts.append(f"{seqs(messages)} {words}")
    return ", ".join(parts) + "."


def _calls(change: ChangeResult) -> str:
    """Return the tool calls whose results left with them, as text."""
    orphaned = (each for each in change.evicted if each.reason is Reason.ORPHANED)
    calls = dict.fromkeys(each.because_seq for each in orphaned if each.because_seq is not None)
    return seqs(list(calls)) if calls else "a call"
