"""The arithmetic of a step, line by line, in the order in which it was decided."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from chatmemory.core.eviction import Reason
from chatmemory.core.naming import named
from chatmemory.core.policies import Policy, can_decide
from chatmemory.core.window import Totals
from chatmemory.explain.causes import reason_of
from chatmemory.explain.wording import capitalized, role
from chatmemory.ledger.changes import ArrivedMessage, ChangeResult, EvictedMessage

SHORT_HEAD, SHORT_TAIL = 40, 5


@dataclass(frozen=True)
class ReceiptLine:
    """A line of a receipt.

    `kind` is total, plus, minus, over (above the limit), ahead (within it, and above the low mark)
    or fits. `amount` is in `unit` and negative
    for minus; `tokens` is the same in tokens where the unit is another. A `sub` line belongs to the
    line above it.
    """

    label: str
    amount: int
    kind: str
    unit: str
    tokens: int | None = None
    sub: bool = False
    seq: int | None = None


def receipt(change: ChangeResult) -> tuple[ReceiptLine, ...]:
    """Return the arithmetic of a change in the order in which it happened.

    The first line plus the signed lines gives the last line; `over` and `ahead` are the sum so far.
    Empty if no policy decided the change.
    """
    if not can_decide(change.policy) or change.kind not in ("add", "set"):
        return ()
    return tuple(_Receipt(change, change.policy).lines())


def shortened(lines: Sequence[ReceiptLine]) -> Sequence[ReceiptLine]:
    """Return the beginning and the end of a very long receipt, with one sum between them."""
    left_out = len(lines) - SHORT_HEAD - SHORT_TAIL
    if left_out <= 1:
        return lines
    gap = _summed(lines[SHORT_HEAD : SHORT_HEAD + left_out], f"… {left_out:,} more lines")
    return [*lines[:SHORT_HEAD], gap, *lines[-SHORT_TAIL:]]


def _summed(lines: Sequence[ReceiptLine], label: str) -> ReceiptLine:
    """Return one line that stands for several, with the sum of those that are signed."""
    signed = [line for line in lines if line.kind in ("plus", "minus")]
    amount = sum(line.amount for line in signed)
    tokens = sum(line.tokens or 0 for line in signed) if lines[0].tokens is not None else None
    kind = "minus" if amount < 0 else "plus"
    return ReceiptLine(label, amount, kind, lines[0].unit, tokens)


class _Receipt:
    """The lines of a receipt, made by repeating the decisions of a change with running totals."""

    def __init__(self, change: ChangeResult, policy: Policy) -> None:
        self.change = change
        self.policy = change.policy_before if can_decide(change.policy_before) else policy
        self.totals = change.before
        self.arrived = {message.seq for message in change.arrived}
        removed = (Reason.REPLACED, Reason.SET, Reason.CLEARED)
        self.removed = [message for message in change.evicted if message.reason in removed]
        self.evicted = deque(each for each in change.evicted if each.reason not in removed)
        self.oldest = next((message.seq for message in self.evicted), None)

    def lines(self) -> Iterator[ReceiptLine]:
        yield self.total("In memory before", "total")
        if self.change.kind == "add" and self.over:
            yield self.total(f"Already {self.over_by}", "over")
            yield from self.evictions(only_before=True)
        self.policy = self.change.policy or self.policy
        for evicted in self.removed:
            yield from self.leave(evicted)
        for arrived in self.change.arrived:
            yield from self.arrive(arrived)
        if self.over:
            yield self.total(f"Needed, {self.over_by}", "over")
        yield from self.evictions()
        yield self.total("In memory after", "over" if self.over else "fits")

    def evictions(self, only_before: bool = False) -> Iterator[ReceiptLine]:
        """Yield what leaves; with `only_before`, what leaves before anything arrives."""
        is_ahead = False
        while self.evicted:
            first = self.evicted[0]
            goes_on = first.reason is Reason.ORPHANED or (is_ahead and self.is_above_mark)
            if only_before and (first.seq in self.arrived or not (self.over or goes_on)):
                return
            yield from self.leave(self.evicted.popleft())
            next_reason = self.evicted[0].reason if self.evicted else None
            if self.over and next_reason not in (None, Reason.ORPHANED):
                yield self.total(f"Still {self.over_by}", "over")
            elif next_reason is Reason.CAPACITY and self.is_above_mark and not is_ahead:
                is_ahead = True
                mark = f"{self.policy.low_mark:,}"
                yield self.total(f"Within the limit; on to the low mark, {mark}", "ahead")

    def arrive(self, arrived: ArrivedMessage) -> Iterator[ReceiptLine]:
        if not self.totals.count and self.policy.overhead:
            yield self.line("Every request starts with", self.policy.overhead, 0, kind="plus")
        self.totals = Totals(self.totals.count + 1, self.totals.tokens + arrived.tokens)
        label = f"{capitalized(named(arrived.seq))} {role(arrived.type, arrived.has_calls)} arrives"
        load = self.policy.cost(arrived.tokens)
        yield self.line(label, load, arrived.tokens, kind="plus", seq=arrived.seq)

    def leave(self, evicted: EvictedMessage) -> Iterator[ReceiptLine]:
        self.totals = Totals(self.totals.count - 1, self.totals.tokens - evicted.tokens)
        yield self.line(
            self.label(evicted),
            -self.policy.cost(evicted.tokens),
            -evicted.tokens,
            kind="minus",
            sub=evicted.reason is Reason.ORPHANED,
            seq=evicted.seq,
        )
        if not self.totals.count and self.policy.overhead:
            left = -self.policy.overhead
            yield self.line("Nothing is left to send", left, 0, kind="minus", sub=True)

    def total(self, label: str, kind: str) -> ReceiptLine:
        """Return a line with the sum so far."""
        return self.line(label, self.load, self.totals.tokens, kind=kind)

    def line(self, label: str, amount: int, tokens: int, **kind: Any) -> ReceiptLine:
        shown = tokens if self.policy.unit != "tokens" else None
        return ReceiptLine(label, amount, unit=self.policy.short_unit, tokens=shown, **kind)

    def label(self, evicted: EvictedMessage) -> str:
        name = f"{capitalized(named(evicted.seq))} {role(evicted.type, evicted.has_calls)}"
        if evicted.misfit:
            return f"{name} itself"
        if evicted.reason is Reason.ORPHANED:
            return f"{capitalized(named(evicted.seq))} its result"
        if evicted.reason is Reason.TURN:
            return f"{name}, rest of its turn"
        if evicted.reason is Reason.CAPACITY:
            return f"{name}, {'the' if evicted.seq == self.oldest else 'next'} oldest"
        return f"{name}, {reason_of(evicted)}"

    @property
    def load(self) -> int:
        return self.policy.load(*self.totals)

    @property
    def is_above_mark(self) -> bool:
        return self.load > self.policy.low_mark

    @property
    def over(self) -> int:
        return max(0, self.load - self.policy.limit)

    @property
    def over_by(self) -> str:
        limit = " the limit" if self.policy.unit == "tokens" else ""
        return f"{self.over:,} over{limit}"
