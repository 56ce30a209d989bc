"""Sizes, limits and units of memory. Sizes are in tokens if there is no policy, or if the policy's
kind is not installed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from chatmemory import Policy, can_decide
from chatmemory.windows.window import Totals, Weighable
from inspector.conversation.costs import CostsByStep
from inspector.shell.state import ConversationState

FULL = 100.0


@dataclass(frozen=True)
class Amount:
    """A size: `load` in a policy's unit, and `tokens` in tokens. `tokens` is None if `load` is in
    tokens already.
    """

    load: int
    unit: str
    tokens: int | None

    def __str__(self) -> str:
        """The size in words, such as `4 msg · 91 tok`, or `91 tok` if the unit is tokens."""
        tokens = "" if self.tokens is None else f" · {self.tokens:,} tok"
        return f"{self.load:,} {self.unit}{tokens}"


def unit_of(number: int, unit: str) -> str:
    """Return the short unit to show after a number, such as "turn" for 1 and "turns" for 2."""
    return unit.removesuffix("s") if abs(number) == 1 else unit


@dataclass(frozen=True)
class Measure:
    """How a policy measures memory.

    - `unit` is the policy's unit, and `limit` its limit. If there is no policy, or its kind is not
      installed, `unit` is tokens and `limit` is None.
    - `overhead` is the fixed size of every request, in the policy's unit. It is added to the sizes
      of the messages.
    - `costs` are the sizes of history and memory by step. None if these sizes can be computed from
      the numbers of messages and tokens.
    """

    policy: Policy | None
    unit: str
    limit: int | None
    overhead: int
    costs: CostsByStep | None = None

    @classmethod
    def of(cls, policy: Policy | None, costs: CostsByStep | None = None) -> Measure:
        if not can_decide(policy):
            return TOKENS
        return cls(policy, policy.short_unit, policy.limit, policy.overhead, costs)

    def load(self, totals: Totals) -> int:
        return self.policy.load(totals) if self.policy else totals.tokens

    def weigh(self, message: Weighable) -> int:
        """Return how much a message adds to the size of memory, in the policy's unit."""
        return self.policy.weigh(message) if self.policy else message.tokens

    def history(self, step: int, totals: Totals) -> Totals:
        """Return `totals` with the cost of the history up to a step. `totals` has the numbers of
        messages and tokens of this history. The `cost` in `totals` is ignored.

        The cost is the size of the messages in the policy's unit, without the overhead. It is 0
        without a policy.
        """
        return self._with_costs(totals, self.costs.history_at(step) if self.costs else None)

    def memory(self, step: int, totals: Totals) -> Totals:
        """Return the totals of memory after a step: the numbers of messages and tokens in `totals`,
        with the cost under the policy. The `cost` in `totals` is ignored.

        The cost is the size of the messages in the policy's unit, without the `overhead` of a
        request. It is 0 without a policy.
        """
        return self._with_costs(totals, self.costs.memory_at(step) if self.costs else None)

    def _with_costs(self, totals: Totals, cost: int | None) -> Totals:
        if cost is None and self.policy:
            cost = self.policy.cost_of(totals)
        return Totals(totals.count, totals.tokens, cost or 0)

    def amount(self, totals: Totals) -> Amount:
        return self.amount_of(self.load(totals), totals.tokens)

    def amount_of(self, load: int, tokens: int) -> Amount:
        is_tokens = self.unit == TOKENS.unit
        return Amount(load, unit_of(load, self.unit), None if is_tokens else tokens)

    def cost_of_all(self, messages: Iterable[Weighable]) -> int:
        """Return the total size of some messages in the policy's unit, without the `overhead` of a
        request.
        """
        return sum(map(self.weigh, messages))


TOKENS = Measure(None, "tok", None, 0)


@dataclass(frozen=True)
class Gauge:
    """A bar that shows how much of the limit a window uses.

    - `load` is the size of the window in the policy's unit.
    - `tokens` is the size of the window in tokens, or None if `load` is in tokens already.
    - `limit` is None if there is no policy, or its kind is not installed.
    - `unit` is the short unit of the numbers, such as `msg`.
    - `fill` is the width of the part within the limit, in percent of the whole bar. 0.0 without a
      limit.
    - `over` is the width of the red part beyond the limit, in percent of the whole bar. 0.0 if the
      window is within the limit.
    """

    load: int
    tokens: int | None
    limit: int | None
    unit: str
    fill: float = 0.0
    over: float = 0.0

    @classmethod
    def of(cls, policy: Policy | None, totals: Totals) -> Gauge:
        """Return the gauge of a window. `totals` are the number of messages in the window, their
        tokens and their cost.
        """
        measure = Measure.of(policy)
        used, limit = measure.amount(totals), measure.limit
        unit = used.unit if limit is None else unit_of(limit, measure.unit)
        if not can_decide(policy):
            return cls(used.load, used.tokens, limit, unit)
        is_over = policy.is_exceeded_by(totals)
        whole = max(policy.limit, used.load) if is_over else policy.limit
        fill = round(FULL * min(used.load, policy.limit) / whole, 1)
        over = round(FULL - fill, 1) if is_over else 0.0
        return cls(used.load, used.tokens, limit, unit, fill, over)


def history_totals(state: ConversationState, measure: Measure) -> Totals:
    """Return the totals of the history up to the shown step, including drafts.

    The tokens of a message are those counted when the message was added, even if a later estimator
    counted differently.
    """
    row = state.step.detail.row if state.step.detail else None
    totals = measure.history(row.n, Totals(row.said_count, row.history_tokens)) if row else Totals()
    for draft in state.simulation.drafts:
        totals = totals.plus(draft, measure.weigh(draft))
    return totals


def kept_totals(state: ConversationState, measure: Measure) -> Totals:
    """Return the totals of the messages that are in memory and in history. Messages that a lowered
    limit hides are included.

    The tokens of a message are those counted when the message was added. For a cleared tool result,
    they are the tokens of its placeholder instead.
    """
    window, contents = state.window, state.contents
    original_tokens = {
        n: amount for n, amount in contents.original_tokens.items() if n not in contents.cleared
    }
    if not contents.injected and not original_tokens:
        return window.stored
    totals = Totals()
    for row in window.in_order:
        if row.seq not in contents.injected:
            original = row._replace(tokens=original_tokens.get(row.seq, row.tokens))
            totals = totals.plus(original, measure.weigh(original))
    return totals
