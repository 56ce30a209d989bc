"""Loads, limits and units. Without a policy whose kind is installed, they are in tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from chatmemory import Policy, can_decide
from chatmemory.queries import ConversationState, Counted, Totals

FULL = 100.0


@dataclass(frozen=True)
class Amount:
    """A number in a policy's unit, and in tokens where that unit is another (else None)."""

    load: int
    unit: str
    tokens: int | None


@dataclass(frozen=True)
class Measure:
    """How a policy measures memory; a page asks the policy once.

    `limit` is None if nobody knows what it counts. `load` is the load of a request with so many
    messages and tokens, `cost` the part of it that a message with so many tokens makes up, and
    `overhead` the part of an empty one.
    """

    unit: str
    limit: int | None
    overhead: int
    load: Callable[[int, int], int]
    cost: Callable[[int], int]

    @classmethod
    def of(cls, policy: Policy | None) -> Measure:
        if not can_decide(policy):
            return TOKENS
        return cls(policy.short_unit, policy.limit, policy.overhead, policy.load, policy.cost)

    def amount(self, totals: Totals) -> Amount:
        return self.amount_of(self.load(*totals), totals.tokens)

    def amount_of(self, load: int, tokens: int) -> Amount:
        return Amount(load, self.unit, None if self.unit == TOKENS.unit else tokens)

    def cost_of_all(self, messages: Iterable[Counted]) -> int:
        """Return the part of the load that messages make up, without any overhead."""
        return sum(self.cost(each.tokens) for each in messages)


TOKENS = Measure("tok", None, 0, lambda count, tokens: tokens, lambda tokens: tokens)


class Gauge:
    """How much of its limit a window with these totals uses.

    `fill` is the width of the bar within the limit, in percent, and `over` that of its red end.
    Beyond the limit both together are the whole width, and stand for the load.
    """

    def __init__(self, policy: Policy | None, totals: Totals) -> None:
        measure = Measure.of(policy)
        used, limit = measure.amount(totals), measure.limit
        self.load, self.unit, self.tokens, self.limit = used.load, used.unit, used.tokens, limit
        self.fill = self.over = 0.0
        if can_decide(policy):
            is_over = policy.is_exceeded_by(totals)
            whole = max(policy.limit, used.load) if is_over else policy.limit
            self.fill = round(FULL * min(used.load, policy.limit) / whole, 1)
            self.over = round(FULL - self.fill, 1) if is_over else 0.0


def said_totals(state: ConversationState) -> Totals:
    """Return the totals of all that was said up to the step, with the drafts.

    Each message has the tokens that were counted when it was said.
    """
    row = state.detail.row if state.detail else None
    said = Totals(row.said_count, row.history_tokens) if row else Totals()
    drafts = sum(draft.tokens for draft in state.drafts)
    return Totals(said.count + len(state.drafts), said.tokens + drafts)


def kept_totals(state: ConversationState) -> Totals:
    """Return the totals of what was said and is stored in memory, hidden by its limit or not.

    The tokens are those that were counted when it was said, as in `said_totals`.
    """
    window, injected, when_said = state.window, state.injected, state.when_said
    if not injected and not when_said:
        return window.stored
    kept = [
        when_said.get(row.seq, row.tokens)
        for row in (*window.rows, *window.over_limit)
        if row.seq not in injected
    ]
    return Totals(len(kept), sum(kept))
