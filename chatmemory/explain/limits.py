"""What it means that a window is over its limit."""

from __future__ import annotations

from chatmemory.core.policies import can_decide
from chatmemory.explain.wording import counted
from chatmemory.queries import WindowPlace, WindowView


def over_limit(window: WindowView[WindowPlace]) -> str:
    """Say what a window over its limit leads to; an empty string if it is within the limit."""
    policy = window.policy
    if not can_decide(policy) or not policy.is_exceeded_by(window.stored):
        return ""
    if policy.meters_only:
        return "only measured: nothing leaves"
    parts = [leaving(len(window.over_limit))] if window.over_limit else []
    if policy.is_exceeded_by(window.totals):
        parts.append(_what_exceeds(window))
    return "; ".join(parts)


def _what_exceeds(window: WindowView[WindowPlace]) -> str:
    """Say which messages that cannot leave are more than the limit."""
    kept = [row for row in window.rows if not row.pinned and row != window.first_system]
    names = {
        "the system message": window.first_system is not None,
        "what is pinned": any(row.pinned for row in window.rows),
        "the newest message": bool(kept),
    }
    found = [name for name, is_there in names.items() if is_there]
    if found == ["the system message"]:
        return "the system message alone is larger than the limit: nothing else can stay"
    is_larger = "alone is larger" if len(found) == 1 else "together are larger"
    return f"{' and '.join(found)} {is_larger} than the limit"


def leaving(count: int, is_least: bool = False) -> str:
    """Say how many messages a lowered limit hides, which the next add evicts; or that it is at
    least so many.
    """
    many = f"{count:,} or more messages" if is_least else counted(count, "message")
    return f"{many} over the limit will leave at the next add"
