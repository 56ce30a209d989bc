"""What it means that a window is over its limit."""

from __future__ import annotations

from chatmemory.core.stored_policies import can_decide
from chatmemory.explain.wording import capitalized, counted
from chatmemory.queries import WindowPlace, WindowView

BESIDE_PINS = "beside what is pinned no message fits: unpin one, or raise the limit"
WOULD_BE_BESIDE_PINS = (
    "no message would fit beside what is pinned: unpin one, or choose a higher limit"
)


def over_limit(window: WindowView[WindowPlace]) -> str:
    """Say what a window over its limit leads to; an empty string if it is within the limit."""
    policy = window.policy
    if not can_decide(policy) or not policy.is_exceeded_by(window.stored):
        return ""
    if policy.meters_only:
        return "only measured: the client decides what leaves"
    parts = [what_is_hidden(window)] if window.over_limit else []
    if not (parts and window.pins_fill) and policy.is_exceeded_by(window.totals):
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


def what_is_hidden(window: WindowView[WindowPlace]) -> str:
    """Say how many messages a lowered limit hides, and what becomes of them."""
    count = len(window.over_limit)
    return f"{hidden(count)}; {BESIDE_PINS}" if window.pins_fill else leaving(count)


def beyond_limit(window: WindowView[WindowPlace]) -> str:
    """Say the same in sentences, beside the messages that the model sees."""
    is_one, count = len(window.over_limit) == 1, f"{len(window.over_limit):,}"
    many = f"{count} more message is" if is_one else f"{count} more messages are"
    seen = f"The model no longer sees {'it' if is_one else 'them'}."
    if window.pins_fill:
        return f"{many} over the limit. {seen} {capitalized(BESIDE_PINS)}."
    return f"{many} over the limit and will leave at the next add. {seen}"


def one_beyond_limit(pins_fill: bool) -> str:
    """Say what becomes of a message that a limit hides."""
    if pins_fill:
        no_add = capitalized(BESIDE_PINS)
        return f"The model no longer sees it. {no_add}. A higher limit brings it back."
    return (
        "The model no longer sees it, and it leaves at the next add. A higher limit before that "
        "brings it back."
    )


def beyond_tried_limit(pins_fill: bool) -> str:
    """Say what would become of a message that a limit which is tried would hide."""
    if pins_fill:
        return f"The model would no longer see it. {capitalized(WOULD_BE_BESIDE_PINS)}."
    return "The model would no longer see it, and it would leave at the next add."


def hidden(count: int) -> str:
    """Say how many messages a lowered limit hides, which do not leave because nothing can come."""
    are = "is" if count == 1 else "are"
    return f"{counted(count, 'message')} over the limit {are} hidden"


def leaving(count: int, is_least: bool = False) -> str:
    """Say how many messages a lowered limit hides, which the next add evicts; or that it is at
    least so many.
    """
    many = f"{count:,} or more messages" if is_least else counted(count, "message")
    return f"{many} over the limit will leave at the next add"
