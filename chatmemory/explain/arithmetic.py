"""The arithmetic of a step, line by line, in the order in which it was decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress, takewhile
from typing import NamedTuple, overload

from chatmemory.core.eviction import Reason
from chatmemory.core.long_lists import SEQ, TOKENS, seqs_of, tokens_of
from chatmemory.core.naming import named
from chatmemory.core.policies import Policy
from chatmemory.core.stored_policies import can_decide
from chatmemory.core.trimming import costs, fewest_to_leave
from chatmemory.core.window import NOTHING, Totals
from chatmemory.explain.causes import reason_of
from chatmemory.explain.wording import capitalized, oldest, role
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
        moved, end = [line for line in lines if line >= 0], len(evicted)
        left = [evicted[line][TOKENS] for line in moved if line < end]
        came = [arrived[line - end][TOKENS] for line in moved if line >= end]
        told = [self._sums.told[line].what for line in lines if line < STILL_OVER]
        overhead = policy.overhead * (told.count(OVERHEAD) - told.count(NOTHING_LEFT))
        return costs(policy, came) - costs(policy, left) + overhead, sum(came) - sum(left)

    def exceeded(self, seq: int) -> ReceiptLine | None:
        """Return the line that says why a message had to leave; None if no limit made it leave."""
        sums = [i for i, line in enumerate(self._before(seq)) if line < STILL_OVER]
        over = [i for i in sums if self._sums.told[self._lines[i]].kind == "over"]
        return self[over[-1]] if over else None

    def is_ahead(self, seq: int) -> bool:
        """Return whether a message left behind the line that says that the limit was kept again."""
        kinds = [self._sums.told[line].kind for line in self._before(seq) if line < 0]
        return [kind for kind in kinds if kind in ("over", "ahead")][-1:] == ["ahead"]

    def _before(self, seq: int) -> Sequence[int]:
        """Return the lines before the one of a message that leaves; none if it does not."""
        seqs = seqs_of(self._change.evicted)
        return self._lines[: self._lines.index(seqs.index(seq))] if seq in seqs else ()

    def _line(self, i: int) -> ReceiptLine:
        line, policy, evicted = self._lines[i], self._sums.policy_of(i), self._change.evicted
        if line >= len(evicted):
            return self._moved(policy, "plus", self._change.arrived[line - len(evicted)])
        if line >= 0:
            return self._moved(policy, "minus", evicted[line])
        kind, what, totals = self._sums.told[line]
        in_tokens = policy.unit != "tokens"
        if what in (OVERHEAD, NOTHING_LEFT):
            amount = policy.overhead if kind == "plus" else -policy.overhead
            sub = what == NOTHING_LEFT
            return ReceiptLine(what, amount, kind, policy.short_unit, 0 if in_tokens else None, sub)
        totals = self._sums.totals_behind(i - 1) if line == STILL_OVER else totals
        load = policy.load(*totals)
        if kind == "over" and what != AFTER:
            limit = "" if in_tokens else " the limit"
            what = f"{what} {load - policy.limit:,} over{limit}"
        if kind == "ahead":
            what = f"{what} {policy.low_mark:,}"
        return ReceiptLine(
            what, load, kind, policy.short_unit, totals.tokens if in_tokens else None
        )

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
            which = "the" if evicted.seq == self._sums.oldest else "next"
            return f"{name}, {which} {oldest(self._change)}"
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


BEFORE, AFTER = "In memory before", "In memory after"
ALREADY, NEEDED, STILL = "Already", "Needed,", "Still"
ON_TO_MARK = "Within the limit; on to the low mark,"
OVERHEAD, NOTHING_LEFT = "Every request starts with", "Nothing is left to send"
REMOVED = {Reason.REPLACED.value, Reason.SET.value, Reason.CLEARED.value}
STILL_OVER = -1


class _Told(NamedTuple):
    """A line that is no message, not written yet: its kind, what it tells, and the sum so far."""

    kind: str
    what: str
    totals: Totals


class _Sums:
    """The sums of a receipt, made by repeating the decisions of a change with running totals.

    A line is a number, because there can be so many: the position of a message among those that
    left, and behind them among those that arrived, or else the negative key of what is `told`.
    """

    def __init__(self, change: ChangeResult, policy: Policy) -> None:
        self.change = change
        self.policy = change.policy_before if can_decide(change.policy_before) else policy
        self.totals = change.before
        self.left = change.evicted.columns
        self.reasons = [each[REASON] for each in self.left]
        self.removed: list[int] = []
        self.evicted: Sequence[int] = range(len(self.left))
        if not REMOVED.isdisjoint(self.reasons):
            self.removed = [i for i in self.evicted if self.reasons[i] in REMOVED]
            self.evicted = sorted(set(self.evicted).difference(self.removed))
        self.oldest = self.left[self.evicted[0]][SEQ] if self.evicted else None
        self.decided_before = 0  # the number of lines that the policy before the change decided
        self.told = {STILL_OVER: _Told("over", STILL, NOTHING)}
        self._policy_before = self.policy
        self._lines: list[int] = []

    def policy_of(self, line: int) -> Policy:
        """Return the policy that decided a line."""
        return self._policy_before if line < self.decided_before else self.policy

    def totals_behind(self, line: int) -> Totals:
        """Return the sum behind a line, from the last one that tells a sum."""
        last = next(i for i in range(line, -1, -1) if self._lines[i] < STILL_OVER)
        left = [self.left[i][TOKENS] for i in self._lines[last + 1 : line + 1] if i >= 0]
        return self.told[self._lines[last]].totals.without(Totals(len(left), sum(left)))

    def lines(self) -> list[int]:
        self.tell(BEFORE, "total")
        if self.change.kind == "add" and self.is_over:
            self.tell(ALREADY, "over")
            self.evict(only_before=True)
        self.decided_before = len(self._lines)
        self.policy = self.change.policy or self.policy
        self.leave(self.removed)
        self.arrive()
        if self.is_over:
            self.tell(NEEDED, "over")
        self.evict()
        self.tell(AFTER, "over" if self.is_over else "fits")
        return self._lines

    def evict(self, only_before: bool = False) -> None:
        """Tell what leaves; with `only_before`, what leaves before anything arrives."""
        queue = self.evicted
        reasons = [self.reasons[i] for i in queue]
        over_until, above_until = self._bounds()
        onward = range(max(1, over_until), min(above_until, len(queue)))
        ahead = next((n for n in onward if reasons[n] == Reason.CAPACITY), len(queue))
        end = len(queue)
        if only_before:
            end = _with_results(reasons, over_until)
            end = _with_results(reasons, above_until) if end == ahead else end
            left = [self.left[i][SEQ] for i in queue[:end]]
            own = set(seqs_of(self.change.arrived)).intersection(left)
            end = min([left.index(seq) for seq in own], default=end)
        still = max(0, min(over_until - 1, end))
        self.leave(queue[:still], _with_still_over(queue[:still], reasons[1:]))
        self.leave(queue[still : min(ahead, end)])
        if ahead < end:
            self.tell(ON_TO_MARK, "ahead")
            self.leave(queue[ahead:end])
        self.evicted = queue[end:]

    def _bounds(self) -> tuple[int, int]:
        """Return how many must leave for the limit, and how many for the low mark."""
        policy, tokens = self.policy, [self.left[i][TOKENS] for i in self.evicted]
        # A client does not know the mark, whatever it leaves out
        marks = (policy.limit, policy.limit if self.change.by_client else policy.low_mark)
        over, above = (fewest_to_leave(tokens, self.totals, policy, mark) for mark in marks)
        return over, above

    def leave(self, positions: Sequence[int], lines: Sequence[int] = ()) -> None:
        """Tell that messages leave, with nothing between them unless in these lines."""
        tokens = [self.left[i][TOKENS] for i in positions]
        self.totals = self.totals.without(Totals(len(tokens), sum(tokens)))
        self._lines += lines or positions
        if positions and self.policy.overhead and not self.totals.count:
            self.tell(NOTHING_LEFT, "minus")

    def arrive(self) -> None:
        """Tell all that arrives."""
        tokens = tokens_of(self.change.arrived)
        if tokens and self.policy.overhead and not self.totals.count:
            self.tell(OVERHEAD, "plus")
        count, before = self.totals
        self.totals = Totals(count + len(tokens), before + sum(tokens))
        self._lines += range(len(self.left), len(self.left) + len(tokens))

    def tell(self, what: str, kind: str) -> None:
        """Tell the sum so far."""
        key = STILL_OVER - len(self.told)
        self.told[key] = _Told(kind, what, self.totals)
        self._lines.append(key)

    @property
    def is_over(self) -> bool:
        return self.policy.load(*self.totals) > self.policy.limit


def _with_still_over(positions: Sequence[int], following: Sequence[str]) -> Sequence[int]:
    """Return the lines of messages that leave above the limit, given why those behind them leave.

    Behind each one, but not before a result that leaves with it, the sum is still above the limit.
    """
    lines = [STILL_OVER] * (2 * len(positions))
    lines[::2] = positions
    orphaned = Reason.ORPHANED.value
    if orphaned not in following:
        return lines
    is_told = [True] * len(lines)
    is_told[1::2] = [reason != orphaned for reason in following[: len(positions)]]
    return list(compress(lines, is_told))


def _with_results(reasons: Sequence[str], number: int) -> int:
    """Return how many leave if so many do, with the results that leave with the last of them."""
    results = takewhile(lambda reason: reason == Reason.ORPHANED, reasons[number:])
    return number + len(list(results))
