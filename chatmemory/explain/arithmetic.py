"""The arithmetic of a step, line by line, in the order in which it was decided."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from chatmemory.core.eviction import Reason
from chatmemory.core.policies import Policy, can_decide
from chatmemory.core.window import Totals
from chatmemory.explain.wording import reason_of, role
from chatmemory.ledger.changes import ArrivedMessage, ChangeResult, EvictedMessage


@dataclass(frozen=True)
class ReceiptLine:
    """A line of a receipt.

    `kind` is total, plus, minus, over (above the limit) or fits. `amount` is negative for minus. A
    `sub` line belongs to the line above it.
    """

    label: str
    amount: int
    kind: str
    sub: bool = False
    seq: int | None = None


def receipt(change: ChangeResult) -> tuple[ReceiptLine, ...]:
    """Return the arithmetic of a change in the order in which it happened.

    The first line plus the signed lines gives the last line; every `over` line is the sum so far.
    Empty if no policy decided the change.
    """
    if not can_decide(change.policy) or change.kind not in ("add", "set"):
        return ()
    return tuple(_Receipt(change, change.policy).lines())


class _Receipt:
    """The lines of a receipt, made by repeating the decisions of a change with running totals."""

    def __init__(self, change: ChangeResult, policy: Policy) -> None:
        self.change = change
        self.policy = change.policy_before if can_decide(change.policy_before) else policy
        self.totals = change.before
        self.arrived = {message.seq for message in change.arrived}
        removed = (Reason.REPLACED, Reason.SET, Reason.CLEARED)
        self.removed = [message for message in change.evicted if message.reason in removed]
        self.evicted = [message for message in change.evicted if message.reason not in removed]
        self.oldest = next((message.seq for message in self.evicted), None)

    def lines(self) -> Iterator[ReceiptLine]:
        yield ReceiptLine("In memory before", self.load, "total")
        if self.change.kind == "add" and self.over:
            yield ReceiptLine(f"Over the limit, {self.over_by}", self.load, "over")
            yield from self.evictions(only_before=True)
        self.policy = self.change.policy or self.policy
        for evicted in self.removed:
            yield from self.leave(evicted)
        for arrived in self.change.arrived:
            yield from self.arrive(arrived)
        if self.over:
            yield ReceiptLine(f"Needed, {self.over_by}", self.load, "over")
        yield from self.evictions()
        yield ReceiptLine("In memory after", self.load, "over" if self.over else "fits")

    def evictions(self, only_before: bool = False) -> Iterator[ReceiptLine]:
        """Yield what leaves; with `only_before`, what leaves before anything arrives."""
        while self.evicted:
            first = self.evicted[0]
            is_due = self.over or first.reason is Reason.ORPHANED
            if only_before and (first.seq in self.arrived or not is_due):
                return
            yield from self.leave(self.evicted.pop(0))
            followed = self.evicted and self.evicted[0].reason is Reason.ORPHANED
            if self.over and self.evicted and not followed:
                yield ReceiptLine(f"Still {self.over_by}", self.load, "over")

    def arrive(self, arrived: ArrivedMessage) -> Iterator[ReceiptLine]:
        if not self.totals.count and self.policy.overhead:
            yield ReceiptLine("Every request starts with", self.policy.overhead, "plus")
        self.totals = Totals(self.totals.count + 1, self.totals.tokens + arrived.tokens)
        label = f"#{arrived.seq} {role(arrived.type, arrived.has_calls)} arrives"
        yield ReceiptLine(label, self.policy.cost(arrived.tokens), "plus", seq=arrived.seq)

    def leave(self, evicted: EvictedMessage) -> Iterator[ReceiptLine]:
        self.totals = Totals(self.totals.count - 1, self.totals.tokens - evicted.tokens)
        yield ReceiptLine(
            self.label(evicted),
            -self.policy.cost(evicted.tokens),
            "minus",
            sub=evicted.reason is Reason.ORPHANED,
            seq=evicted.seq,
        )
        if not self.totals.count and self.policy.overhead:
            yield ReceiptLine("Nothing is left to send", -self.policy.overhead, "minus", sub=True)

    def label(self, evicted: EvictedMessage) -> str:
        name = f"#{evicted.seq} {role(evicted.type, evicted.has_calls)}"
        if evicted.seq in self.arrived and evicted.reason is Reason.CAPACITY:
            return f"{name} itself"
        if evicted.reason is Reason.ORPHANED:
            return f"#{evicted.seq} its result"
        if evicted.reason is Reason.CAPACITY:
            return f"{name}, {'the' if evicted.seq == self.oldest else 'next'} oldest"
        return f"{name}, {reason_of(evicted)}"

    @property
    def load(self) -> int:
        return self.policy.load(*self.totals)

    @property
    def over(self) -> int:
        return max(0, self.load - self.policy.limit)

    @property
    def over_by(self) -> str:
        limit = " the limit" if self.policy.unit == "tokens" else ""
        return f"{self.over:,} over{limit}"
