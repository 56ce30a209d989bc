"""What a step did, in one plain sentence; a reader who reads only this understands the step."""

from __future__ import annotations

from dataclasses import dataclass

from chatmemory.core.eviction import Reason
from chatmemory.explain.wording import amount, counted, policy_words, role, seqs
from chatmemory.ledger.changes import ChangeResult

_WHOLE = {Reason.SET: "not in the new list", Reason.CLEARED: "cleared"}


@dataclass(frozen=True)
class Caption:
    """A sentence in pieces: what happened, what came (+85), what left, what left for which
    reason.
    """

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
    """The sentence of a change."""
    in_tokens = change.policy is None or change.policy.unit != "messages"
    gained = sum(each.tokens for each in change.arrived)
    lost = sum(each.tokens for each in change.evicted)
    loss = f"{counted(len(change.evicted), 'message')} left" if change.evicted else ""
    no_loss = "It fits." if change.kind == "add" else ""
    return Caption(
        event=_event(change),
        gain=f"+{gained:,}" if in_tokens and gained else "",
        loss=f"{loss} {amount(-lost)}" if loss and in_tokens and lost else loss,
        detail=_reasons(change) if change.evicted else no_loss,
    )


def _event(change: ChangeResult) -> str:
    match change.kind:
        case "policy":
            return f"The policy became {policy_words(change.policy)}"
        case "labels":
            return "The labels changed"
        case "clear":
            return "Memory was cleared"
        case "redact":
            return f"Message #{change.seq} was redacted"
    if len(change.arrived) == 1:
        (arrived,) = change.arrived
        name = role(arrived.type, arrived.has_calls)
        noun = name if name.startswith("Tool") else f"{name} message"
        return f"{noun} #{arrived.seq} arrived"
    if change.kind == "set":
        return f"Memory was set; {len(change.arrived):,} messages came"
    return f"{len(change.arrived):,} messages arrived"


def _reasons(change: ChangeResult) -> str:
    """`#25 and #26 were the oldest, results #27 and #28 left with #26.`"""
    arrived = {each.seq for each in change.arrived}
    own = [each.seq for each in change.evicted if each.seq in arrived]
    by_reason: dict[Reason, list[int]] = {}
    for each in change.evicted:
        if each.seq not in arrived:
            by_reason.setdefault(each.reason, []).append(each.seq)
    said = []
    if oldest := by_reason.get(Reason.CAPACITY):
        said.append(f"{seqs(oldest)} {'was' if len(oldest) == 1 else 'were'} the oldest")
    if orphans := by_reason.get(Reason.ORPHANED):
        results = "result" if len(orphans) == 1 else "results"
        said.append(f"{results} {seqs(orphans)} left with {_calls(change)}")
    if own:
        said.append(f"{seqs(own)} is too big on its own")
    if replaced := by_reason.get(Reason.REPLACED):
        said.append(f"{seqs(replaced)} was replaced")
    for reason, words in _WHOLE.items():
        if gone := by_reason.get(reason):
            said.append(f"{seqs(gone)} {words}")
    return ", ".join(said) + "."


def _calls(change: ChangeResult) -> str:
    """The tool calls whose results left with them."""
    orphans = (each for each in change.evicted if each.reason is Reason.ORPHANED)
    calls = dict.fromkeys(each.because_seq for each in orphans if each.because_seq)
    return seqs(list(calls)) if calls else "a call"
