"""The arithmetic of a step, line by line, in the order in which it was decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

from chatmemory.core.eviction import Reason
from chatmemory.core.long_lists import SEQ, TOKENS, seqs_of, tokens_of
from chatmemory.core.naming import named
from chatmemory.core.policies import Policy, can_decide
from chatmemory.core.trimming import costs, fewest_to_leave
from chatmemory.core.window import Totals
from chatmemory.explain.causes import reason_of
from chatmemory.explain.wording import capitalized, role
from chatmemory.ledger.changes import REASON, ArrivedMessage, ChangeResult, EvictedMessage

SHORT_HEAD, SHORT_TAIL = 40, 5


@dataclass(frozen=True)
class ReceiptLine:
    """A line of a receipt.

    `kind` is total, plus, minus, over (above the limit), ahead (within it, and above the low mark)
    or fits. `amount` is in `unit` and negative for minus; `tokens` is the same in tokens where the
    unit is another. A `sub` line belongs to the line above it.
    """

    label: str
    amount: int
    kind: str
    unit: str
    tokens: int | None = None
    sub: bool = False
    seq: int | None = None


class Receipt(Sequence[ReceiptLine]):
    """The lines of a receipt, each written when it is asked for.

    A step can have hundreds of thousands of lines, of which pages show 46 (see `shortened`).
    """

    def __init__(self, change: ChangeResult, policy: Policy) -> None:
        self._change = change
        self._sums = _Sums(change, policy)
        self._lines = self._sums.lines()

    def __len__(self) -> int:
        return len(self._lines)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # like that of a list

    @overload
    def __getitem__(self, index: int) -> ReceiptLine: ...
    @overload
    def __getitem__(self, index: slice) -> list[ReceiptLine]: ...
    def __getitem__(self, index: int | slice) -> ReceiptLine | list[ReceiptLine]:
        if isinstance(index, slice):
            return [self._line(i) for i in range(len(self))[index]]
        return self._line(range(len(self))[index])

    def summed(self, part: range, label: str) -> ReceiptLine:
        """Return one line that stands for a part of them, with the sum of those that are signed."""
        first = min(max(part.start, self._sums.decided_before), part.stop)
        sums = [self._signed(range(part.start, first)), self._signed(range(first, part.stop))]
        amount, tokens = (sum(each) for each in zip(*sums, strict=True))
        unit, in_tokens = self[part.start].unit, self[part.start].tokens
        kind = "minus" if amount < 0 else "plus"
        return ReceiptLine(label, amount, kind, unit, None if in_tokens is None else tokens)

    def _signed(self, part: range) -> tuple[int, int]:
        """Return the sum of signed lines that one policy decided, in its unit and in tokens."""
        if not part:
            return 0, 0
        policy, lines = self._sums.policy_of(part.start), self._lines[part.start : part.stop]
        arrived, evicted = self._change.arrived.columns, self._change.evicted.columns
        came = [arrived[which][TOKENS] for _, what, which, *_ in lines if what == ARRIVES]
        left = [evicted[which][TOKENS] for _, what, which, *_ in lines if what == LEAVES]
        told = [what for _, what, *_ in lines if what in (OVERHEAD, NOTHING_LEFT)]
        overhead = policy.overhead * (told.count(OVERHEAD) - told.count(NOTHING_LEFT))
        return costs(policy, came) - costs(policy, left) + overhead, sum(came) - sum(left)

    def exceeded(self, seq: int) -> ReceiptLine | None:
        """Return the line that says why a message had to leave; None if no limit made it leave."""
        over = None
        evicted = self._change.evicted.columns
        for i, (kind, what, which, *_) in enumerate(self._lines):
            if kind == "over" and what != STILL:
                over = i
            if what == LEAVES and evicted[which][SEQ] == seq:
                return None if over is None else self[over]
        return None

    def is_ahead(self, seq: int) -> bool:
        """Return whether a message left behind the line that says that the limit was kept again."""
        is_ahead, evicted = False, self._change.evicted.columns
        for kind, what, which, *_ in self._lines:
            if kind in ("over", "ahead"):
                is_ahead = kind == "ahead"
            if what == LEAVES and evicted[which][SEQ] == seq:
                return is_ahead
        return is_ahead

    def _line(self, i: int) -> ReceiptLine:
        kind, what, which, count, tokens = self._lines[i]
        policy, change = self._sums.policy_of(i), self._change
        if what == LEAVES:
            return self._moved(policy, "minus", change.evicted[which])
        if what == ARRIVES:
            return self._moved(policy, "plus", change.arrived[which])
        in_tokens = policy.unit != "tokens"
        if what in (OVERHEAD, NOTHING_LEFT):
            amount = policy.overhead if kind == "plus" else -policy.overhead
            sub = what == NOTHING_LEFT
            return ReceiptLine(what, amount, kind, policy.short_unit, 0 if in_tokens else None, sub)
        load = policy.load(count, tokens)
        if kind == "over" and what != AFTER:
            limit = "" if in_tokens else " the limit"
            what = f"{what} {load - policy.limit:,} over{limit}"
        if kind == "ahead":
            what = f"{what} {policy.low_mark:,}"
        return ReceiptLine(what, load, kind, policy.short_unit, tokens if in_tokens else None)

    def _moved(
        self, policy: Policy, kind: str, message: ArrivedMessage | EvictedMessage
    ) -> ReceiptLine:
        """Return the line of a message that arrives or leaves."""
        sign = -1 if kind == "minus" else 1
        is_orphan = isinstance(message, EvictedMessage) and message.reason is Reason.ORPHANED
        return ReceiptLine(
            self._leaves(message) if isinstance(message, EvictedMessage) else _arrives(message),
            sign * policy.cost(message.tokens),
            kind,
            policy.short_unit,
            sign * message.tokens if policy.unit != "tokens" else None,
            is_orphan,
            message.seq,
        )

    def _leaves(self, evicted: EvictedMessage) -> str:
        name = f"{capitalized(named(evicted.seq))} {role(evicted.type, evicted.has_calls)}"
        if evicted.misfit:
            return f"{name} itself"
        if evicted.reason is Reason.ORPHANED:
            return f"{capitalized(named(evicted.seq))} its result"
        if evicted.reason is Reason.TURN:
            return f"{name}, rest of its turn"
        if evicted.reason is Reason.CAPACITY:
            return f"{name}, {'the' if evicted.seq == self._sums.oldest else 'next'} oldest"
        return f"{name}, {reason_of(evicted)}"


def _arrives(arrived: ArrivedMessage) -> str:
    return f"{capitalized(named(arrived.seq))} {role(arrived.type, arrived.has_calls)} arrives"


def receipt(change: ChangeResult) -> Receipt | tuple[()]:
    """Return the arithmetic of a change in the order in which it happened.

    The first line plus the signed lines gives the last line; `over` and `ahead` are the sum so far.
    Empty if no policy decided the change.
    """
    if not can_decide(change.policy) or change.kind not in ("add", "set"):
        return ()
    return Receipt(change, change.policy)


def shortened(lines: Receipt | tuple[()]) -> Sequence[ReceiptLine]:
    """Return the beginning and the end of a very long receipt, with one sum between them."""
    left_out = len(lines) - SHORT_HEAD - SHORT_TAIL
    if left_out <= 1 or not lines:
        return lines
    gap = lines.summed(range(SHORT_HEAD, SHORT_HEAD + left_out), f"… {left_out:,} more lines")
    return [*lines[:SHORT_HEAD], gap, *lines[-SHORT_TAIL:]]


# A line that is not written yet: its kind, what it tells, which arrival or eviction it tells it of,
# and the totals so far.
_Line = tuple[str, str, int, int, int]
ARRIVES, LEAVES = "arrives", "leaves"
BEFORE, AFTER = "In memory before", "In memory after"
ALREADY, NEEDED, STILL = "Already", "Needed,", "Still"
ON_TO_MARK = "Within the limit; on to the low mark,"
OVERHEAD, NOTHING_LEFT = "Every request starts with", "Nothing is left to send"
REMOVED = (Reason.REPLACED, Reason.SET, Reason.CLEARED)


class _Sums:
    """The sums of a receipt, made by repeating the decisions of a change with running totals."""

    def __init__(self, change: ChangeResult, policy: Policy) -> None:
        self.change = change
        self.policy = change.policy_before if can_decide(change.policy_before) else policy
        self.totals = change.before
        self.left = change.evicted.columns
        self.removed = [i for i, each in enumerate(self.left) if each[REASON] in REMOVED]
        self.evicted = [i for i, each in enumerate(self.left) if each[REASON] not in REMOVED]
        self.oldest = self.left[self.evicted[0]][SEQ] if self.evicted else None
        self.decided_before = 0  # the number of lines that the policy before the change decided
        self._policy_before = self.policy
        self._lines: list[_Line] = []

    def policy_of(self, line: int) -> Policy:
        """Return the policy that decided a line."""
        return self._policy_before if line < self.decided_before else self.policy

    def lines(self) -> list[_Line]:
        self.total(BEFORE, "total")
        if self.change.kind == "add" and self.is_over:
            self.total(ALREADY, "over")
            self.evict(only_before=True)
        self.decided_before = len(self._lines)
        self.policy = self.change.policy or self.policy
        for position in self.removed:
            self.leave(position)
        for position, tokens in enumerate(tokens_of(self.change.arrived)):
            self.arrive(position, tokens)
        if self.is_over:
            self.total(NEEDED, "over")
        self.evict()
        self.total(AFTER, "over" if self.is_over else "fits")
        return self._lines

    def evict(self, only_before: bool = False) -> None:
        """Tell what leaves; with `only_before`, what leaves before anything arrives."""
        queue, left, lines, overhead = self.evicted, self.left, self._lines, self.policy.overhead
        over_until, above_until = self._bounds([left[i][TOKENS] for i in queue])
        reasons = [*(left[i][REASON] for i in queue), None]
        arrived = set(seqs_of(self.change.arrived)) if only_before else ()
        count, tokens = self.totals
        is_ahead, number = False, 0
        for number, position in enumerate(queue, 1):
            goes_on = reasons[number - 1] == Reason.ORPHANED or (is_ahead and number <= above_until)
            is_due = number <= over_until or goes_on
            if only_before and (left[position][SEQ] in arrived or not is_due):
                number -= 1
                break
            count, tokens = count - 1, tokens - left[position][TOKENS]
            lines.append(("minus", LEAVES, position, count, tokens))
            if overhead and not count:
                lines.append(("minus", NOTHING_LEFT, 0, count, tokens))
            following = reasons[number]
            if number < over_until and following not in (None, Reason.ORPHANED):
                lines.append(("over", STILL, 0, count, tokens))
            elif number < above_until and following == Reason.CAPACITY and not is_ahead:
                is_ahead = True
                lines.append(("ahead", ON_TO_MARK, 0, count, tokens))
        self.totals = Totals(count, tokens)
        self.evicted = queue[number:]

    def _bounds(self, tokens: Sequence[int]) -> tuple[int, int]:
        """Return how many must leave for the limit, and how many for the low mark."""
        policy = self.policy
        marks = (policy.limit, policy.low_mark)
        over, above = (fewest_to_leave(tokens, self.totals, policy, mark) for mark in marks)
        return over, above

    def leave(self, position: int) -> None:
        tokens = self.left[position][TOKENS]
        self.totals = Totals(self.totals.count - 1, self.totals.tokens - tokens)
        self._lines.append(("minus", LEAVES, position, *self.totals))
        if self.policy.overhead and not self.totals.count:
            self._lines.append(("minus", NOTHING_LEFT, 0, *self.totals))

    def arrive(self, position: int, tokens: int) -> None:
        count, before = self.totals
        if not count and self.policy.overhead:
            self._lines.append(("plus", OVERHEAD, 0, count, before))
        self.totals = Totals(count + 1, before + tokens)
        self._lines.append(("plus", ARRIVES, position, *self.totals))

    def total(self, what: str, kind: str) -> None:
        """Tell the sum so far."""
        self._lines.append((kind, what, 0, *self.totals))

    @property
    def is_over(self) -> bool:
        return self.policy.load(*self.totals) > self.policy.limit
