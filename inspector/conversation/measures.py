"""Loads, limits and units. Without a policy whose kind is installed, they are in tokens."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from chatmemory import Policy, can_decide, load_or_tokens
from chatmemory.queries import (
    ConversationState,
    Counted,
    Totals,
    WindowPlace,
    WindowView,
)

FULL = 100.0


@dataclass(frozen=True)
class Amount:
    """A number in a policy's unit, and in tokens where that unit is another (else None)."""

    load: int
    unit: str
    tokens: int | None


@dataclass(frozen=True)
class Gauge:
    """How much of a limit is used.

    `fill` is the width of the bar within the limit, in percent, and `over` that of its red end.
    Beyond the limit both together are the whole width, and stand for the load.
    """

    load: int
    unit: str
    tokens: int | None
    limit: int | None
    fill: float = 0
    over: float = 0


def gauge(policy: Policy | None, totals: Totals) -> Gauge:
    """Return the gauge of a window with these totals."""
    used = amount_of(policy, load_or_tokens(policy, totals), totals.tokens)
    if not can_decide(policy):
        return Gauge(used.load, used.unit, used.tokens, None)
    is_over = policy.is_exceeded_by(totals)
    fill = FULL * min(used.load, policy.limit) / max(policy.limit, used.load if is_over else 0)
    fill = round(fill, 1)
    over = round(FULL - fill, 1) if is_over else 0
    return Gauge(used.load, used.unit, used.tokens, policy.limit, fill, over)


def amount_of(policy: Policy | None, load: int, tokens: int) -> Amount:
    unit = short_unit(policy)
    return Amount(load, unit, None if unit == "tok" else tokens)


def limit_of(state: ConversationState) -> int | None:
    """Return the limit, of which one knows what it counts; else None."""
    policy = state.window.policy
    return policy.limit if can_decide(policy) else None


def load_in(window: WindowView[WindowPlace]) -> int:
    """Return the load of what the model sees of a window, in its policy's unit."""
    return load_or_tokens(window.policy, window.totals)


def short_unit(policy: Policy | None) -> str:
    return policy.short_unit if can_decide(policy) else "tok"


def cost(policy: Policy | None, tokens: int) -> int:
    """Return the part of the load that one message makes up."""
    return policy.cost(tokens) if can_decide(policy) else tokens


def cost_of_all(policy: Policy | None, messages: Iterable[Counted]) -> int:
    """Return the part of the load that messages make up, without any overhead."""
    return sum(cost(policy, each.tokens) for each in messages)


def said_load(policy: Policy | None, said: Totals) -> int:
    """Return the load of a request with all these messages.

    It has the overhead of a request as the window's load does, so that what is in memory and what
    is forgotten add up to it.
    """
    return load_or_tokens(policy, said)


def overhead(policy: Policy | None) -> int:
    return policy.overhead if can_decide(policy) else 0


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
