"""Loads, limits and units, also where no policy can say: tokens are counted then."""

from __future__ import annotations

from chatmemory import Policy, can_decide
from chatmemory.queries import ConversationState, WindowPlace, WindowView


def limit_of(state: ConversationState) -> int | None:
    return state.window.policy.limit if state.window.policy else None


def load_in(window: WindowView[WindowPlace]) -> int:
    """What a window holds, in its policy's unit."""
    return window.totals.tokens if window.load is None else window.load


def short_unit(policy: Policy | None) -> str:
    return policy.short_unit if policy else "tok"


def cost(policy: Policy | None, tokens: int) -> int:
    """What one message adds to the load."""
    return policy.cost(tokens) if can_decide(policy) else tokens


def overhead(policy: Policy | None) -> int:
    return policy.overhead if can_decide(policy) else 0
