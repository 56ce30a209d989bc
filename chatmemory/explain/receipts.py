"""Receipts: sums that show, line by line, how a step changed the size of memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from chatmemory.explain.causes import line_of
from chatmemory.explain.wording import capitalized, in_unit, role
from chatmemory.ledger.changes import ChangeResult
from chatmemory.messages.message import MessageType
from chatmemory.messages.texts import named
from chatmemory.windows.eviction import Eviction, Reason
from chatmemory.windows.policies import Policy
from chatmemory.windows.stored_policies import can_decide
from chatmemory.windows.window import Entry

WITH_RECEIPT = ("add", "set", "compact", "stub")
SHORT_HEAD, SHORT_TAIL = 40, 5
BEFORE, AFTER = "In memory before", "In memory after"
ALREADY, NOW, STILL = "Already", "Now", "Still"
ON_TO_MARK = "Within the limit: trimming goes on to"
OVERHEAD, NOTHING_LEFT = "Request overhead", "Nothing is left to send"


@dataclass(frozen=True)
class ReceiptLine:
    """A line of a receipt: a label and an amount.

    - `kind`: `total` is memory before the change. `plus` and `minus` are what is added and what
      leaves. `over` says that memory is above its limit. `ahead` says that memory is within its
      limit, but trimming goes on. `fits` is memory after the change, if within its limit.
    - `amount`: for `plus` and `minus`, how much is added or leaves; negative for `minus`. For the
      other kinds, the load of memory at this line.
    - `unit`: the unit of `amount`, such as `tok`.
    - `tokens`: the amount in tokens, or None if `amount` is in tokens.
    - `sub`: whether the line is a detail of the line above, such as a tool result that left with
      its call.
    - `seq`: the number of the message that is added or leaves, or None.
    """

    label: str
    amount: int
    kind: str
    unit: str
    tokens: int | None = None
    sub: bool = False
    seq: int | None = None


Receipt = Sequence[ReceiptLine]


def receipt(change: ChangeResult) -> Receipt:
    """Return the receipt of a change, in the order in which messages arrived and left.

    Returns an empty receipt if the change has no policy, or a policy that is not installed. The
    receipt is also empty for a change that needs no sum, such as a clear.

    The first line and all `plus` and `minus` lines add up to the last line. Lines of kind `over`
    and `ahead` show the sum so far.
    """
    is_trim = change.kind == "policy" and bool(change.evicted)
    if not can_decide(change.policy) or not (is_trim or change.kind in WITH_RECEIPT):
        return ()
    return _Writing(change, change.policy).lines()


def shortened(lines: Receipt) -> Receipt:
    """Return the receipt with at most 46 lines. In a longer receipt, the lines between the first 40
    and the last 5 are replaced by one line with their sum.
    """
    left_out = lines[SHORT_HEAD:-SHORT_TAIL]
    if len(left_out) <= 1:
        return lines
    signed = [line for line in left_out if line.kind in ("plus", "minus")]
    amount, first = sum(line.amount for line in signed), left_out[0]
    gap = ReceiptLine(
        label=f"… {len(left_out):,} more lines",
        amount=amount,
        kind="minus" if amount < 0 else "plus",
        unit=first.unit,
        tokens=None if first.tokens is None else sum(line.tokens or 0 for line in signed),
    )
    return [*lines[:SHORT_HEAD], gap, *lines[-SHORT_TAIL:]]


def exceeded(lines: Receipt, seq: int) -> ReceiptLine | None:
    """Return the line that says how far memory was over the limit before a message left, such as
    `Needed: 55 tokens over the limit`.

    Lines between evictions, such as `Still 20 tokens over the limit`, are skipped. The `amount` of
    the returned line is the load of memory. Returns None if there is no such line, or if the
    message did not leave.
    """
    limits = [line for line in _before(lines, seq) if line.kind == "over"]
    over = [line for line in limits if not line.label.startswith(STILL)]
    return over[-1] if over else None


def is_ahead(lines: Receipt, seq: int) -> bool:
    """Return whether the message `seq` left by a trim to less than the limit, such as to 60 % of
    the limit. Memory was already within the limit when it left.
    """
    kinds = [line.kind for line in _before(lines, seq) if line.kind in ("over", "ahead")]
    return kinds[-1:] == ["ahead"]


def _before(lines: Receipt, seq: int) -> Receipt:
    """Return the lines before the line of a leaving message, or [] if the message does not
    leave.
    """
    leaving = (i for i, line in enumerate(lines) if line.seq == seq and line.kind == "minus")
    return lines[: next(leaving, 0)]


class _Writing:
    """Writes a receipt, with running totals. Evictions are in the order of the ledger."""

    def __init__(self, change: ChangeResult, policy: Policy) -> None:
        self._change = change
        self._policy_after = policy
        policy_before = change.policy_before
        is_alike = can_decide(policy_before) and policy.costs_like(policy_before)
        self._policy = policy_before if is_alike and policy_before else policy
        self._totals = change.before
        self._queue = deque(each for each in change.evicted if each.reason.is_for_room)
        self._oldest = self._queue[0].seq if self._queue else None
        self._lines: list[ReceiptLine] = []

    def lines(self) -> list[ReceiptLine]:
        self._sum("total", BEFORE)
        for message in self._change.evicted:
            if message.reason is Reason.INTERRUPTED:
                self._leave(message)
        if self._change.kind != "set" and self._is_over:
            self._sum_over(ALREADY)
            self._evict(before_arrival=True)
        self._policy = self._policy_after
        for message in self._change.evicted:
            if not message.reason.is_for_room and message.reason is not Reason.INTERRUPTED:
                self._leave(message)
        for arrived in self._change.arrived:
            self._arrive(arrived)
        if self._is_over:
            self._sum_over(NOW)
        self._evict()
        self._sum("over" if self._is_over else "fits", AFTER)
        return self._lines

    @property
    def _load(self) -> int:
        return self._policy.load(self._totals)

    @property
    def _is_over(self) -> bool:
        return self._load > self._policy.limit

    @property
    def _is_above_mark(self) -> bool:
        """Whether memory is above the share to which it is trimmed, so that more messages leave.
        False for a change by a client.
        """
        return self._load > self._policy.low_mark and not self._change.by_client

    def _evict(self, before_arrival: bool = False) -> None:
        """Write lines for the evictions. With `before_arrival`, write only those that happened
        before a message arrived.
        """
        arriving = {each.seq for each in self._change.arrived} if before_arrival else set()
        is_first, is_on_to_mark = True, False
        while self._queue:
            reason = self._queue[0].reason
            if self._is_over and reason is not Reason.ORPHANED and not is_first:
                self._sum_over(STILL)
            if self._queue[0].seq in arriving:
                return
            if not self._is_over and reason is Reason.CAPACITY and self._is_above_mark:
                if not (is_first or is_on_to_mark):
                    self._sum(
                        "ahead", f"{ON_TO_MARK} {in_unit(self._policy.low_mark, self._policy)}"
                    )
                    is_on_to_mark = True
            elif not self._is_over and before_arrival and reason is not Reason.ORPHANED:
                return
            self._leave(self._queue.popleft())
            is_first = False

    def _arrive(self, message: Entry) -> None:
        if self._policy.overhead and not self._totals.count:
            self._write(OVERHEAD, "plus", self._policy.overhead, 0)
        seq = capitalized(named(message.seq))
        label = f"{seq}, its placeholder" if self._change.clears else f"{_name(message)} arrives"
        self._move(message, 1, label)

    def _leave(self, message: Eviction) -> None:
        self._move(message, -1, self._why(message), sub=_is_result_of_call(message))
        if self._policy.overhead and not self._totals.count:
            self._write(NOTHING_LEFT, "minus", -self._policy.overhead, 0, sub=True)

    def _move(self, message: Entry | Eviction, sign: int, label: str, sub: bool = False) -> None:
        cost, is_plus = self._policy.weigh(message), sign > 0
        change = self._totals.plus if is_plus else self._totals.minus
        self._totals = change(message, cost)
        kind = "plus" if is_plus else "minus"
        is_free = self._policy.free_system and message.type is MessageType.SYSTEM
        label = f"{label}, which is free" if is_free else label
        self._write(label, kind, sign * cost, sign * message.tokens, sub, message.seq)

    def _sum(self, kind: str, label: str) -> None:
        self._write(label, kind, self._load, self._totals.tokens)

    def _sum_over(self, label: str) -> None:
        over = in_unit(self._load - self._policy.limit, self._policy)
        self._sum("over", f"{label} {over} over the limit")

    def _write(
        self,
        label: str,
        kind: str,
        amount: int,
        tokens: int,
        sub: bool = False,
        seq: int | None = None,
    ) -> None:
        beside = None if self._policy.unit == "tokens" else tokens
        unit = self._policy.short_unit
        self._lines.append(ReceiptLine(label, amount, kind, unit, beside, sub, seq))

    def _why(self, evicted: Eviction) -> str:
        """Return the label of the line for a message that leaves."""
        name = _name(evicted)
        if evicted.misfit:
            return f"{name} leaves itself"
        words = line_of(self._change, evicted, is_first=evicted.seq == self._oldest)
        if _is_result_of_call(evicted):
            return f"{capitalized(named(evicted.seq))}, {words}"
        return f"{name}, {words}" if self._change.clears else f"{name} leaves: {words}"


def _is_result_of_call(evicted: Eviction) -> bool:
    """Return whether a message left with its tool call."""
    if evicted.reason is Reason.INTERRUPTED:
        return not evicted.has_calls
    return evicted.reason is Reason.ORPHANED


def _name(message: Entry | Eviction) -> str:
    return f"{capitalized(named(message.seq))} {role(message.type, message.has_calls)}"
