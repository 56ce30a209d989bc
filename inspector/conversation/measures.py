"""Loads, limits and units. Without a policy they are in tokens."""

from __future__ import annotations

from chatmemory import Policy, can_decide, load_or_tokens
from chatmemory.queries import ConversationState, WindowPlace, WindowView


def limit_of(state: ConversationState) -> int | None:
    return state.window.policy.limit if state.window.policy else None


def load_in(window: WindowView[WindowPlace]) -> int:
    """Return the load of a window in its policy's unit."""
    return load_or_tokens(window.policy, window.totals)


def short_unit(policy: Policy | None) -> str:
    return policy.short_unit if policy else "tok"


def cost(policy: Policy | None, tokens: int) -> int:
    """Return the part of the load that one message makes up."""
    return policy.cost(tokens) if can_decide(policy) else tokens


def overhead(policy: Policy | None) -> int:
    return policy.overhead if can_decide(policy) else 0
