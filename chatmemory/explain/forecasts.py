"""Forecasts: what adding messages or another limit would do, in the conditional because nothing has
happened.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from chatmemory.core.policies import Policy
from chatmemory.core.stored_policies import can_decide
from chatmemory.explain.captions import Caption
from chatmemory.explain.causes import cause_of
from chatmemory.explain.limits import would_be_no_room
from chatmemory.explain.misfits import why_no_fit
from chatmemory.explain.wording import counted, decapitalized, in_unit, seqs
from chatmemory.ledger.changes import ChangeResult, EvictedMessage
from chatmemory.queries import Outlook


def forecast(changes: Sequence[ChangeResult], outlook: Outlook, policy: Policy | None) -> Caption:
    """Return what simulated changes would do, and the limit that is tried with them."""
    if outlook.no_room and not changes:
        return Caption("No room", detail=change_of_policy(outlook))
    misfits = [(change, change.misfit) for change in changes if change.misfit]
    too_big = {misfit.seq for _, misfit in misfits}
    leaving = tuple(seq for seq in outlook.leaving if seq not in too_big)
    outlook = replace(outlook, leaving=leaving)
    loss = counted(len(leaving), "message") if leaving else ""
    if misfits:
        also = f" Would also evict {loss}: {_named(outlook)}." if leaving else ""
        return _no_fit(*misfits[-1], also)
    over = _over(outlook, policy)
    if leaving:
        still = decapitalized(over).removesuffix(".")
        detail = "; ".join(filter(None, [_named(outlook), still]))
        return Caption("Would evict", loss=loss, detail=detail)
    event = "Over the limit" if over else "Fits"
    told = filter(None, [over, *_nothing_leaves(outlook, "would come")])
    return Caption(event, detail=" ".join(told))


def _over(outlook: Outlook, policy: Policy | None) -> str:
    """Say how much memory would be over its limit; empty if it would not be."""
    if not can_decide(policy) or not policy.is_exceeded_by(outlook.after):
        return ""
    over = policy.load(*outlook.after) - policy.limit
    return f"Memory would be {in_unit(over, policy)} over the limit."


def _no_fit(change: ChangeResult, message: EvictedMessage, also: str) -> Caption:
    """Return that a message could not stay, and what else its add would do."""
    detail = f"{why_no_fit(change, message)}{also}"
    if message.misfit is not None and message.misfit.is_of_system:
        cause = cause_of(message.reason, message.misfit).told(is_conditional=True)
        return Caption("No room", detail=f"{cause} {detail}")
    return Caption("Too big", detail=detail)


def change_of_policy(outlook: Outlook) -> str:
    """Return what another policy alone would do, in sentences."""
    no_add = f" {would_be_no_room(outlook.no_room)}" if outlook.no_room else ""
    return f"{_difference(outlook)}{no_add}"


def tried_limit(limit: int, outlook: Outlook) -> Caption:
    """Return what another limit alone would do, as the caption of a simulation."""
    first, *others = change_of_policy(outlook).split(". ", 1)
    event = f"With a limit of {limit:,}, {decapitalized(first.removesuffix('.'))}"
    return Caption(event, detail="".join(others))


def _difference(outlook: Outlook) -> str:
    if outlook.leaving:
        many = counted(len(outlook.leaving), "message")
        leave = "be hidden" if outlook.no_room else "leave at the next add"
        return f"{many} would {leave}: {_named(outlook)}."
    if outlook.returning:
        comes = "comes" if len(outlook.returning) == 1 else "come"
        many = counted(len(outlook.returning), "message")
        still = f" {_hidden(outlook)}." if outlook.hidden else ""
        return f"{many} {comes} back: {seqs(outlook.returning)}.{still}"
    if outlook.hidden:
        return " ".join(_nothing_leaves(outlook))
    return "Nothing would leave, and nothing comes back."


def _nothing_leaves(outlook: Outlook, come: str = "") -> Iterator[str]:
    """Yield sentences on an outlook in which nothing leaves that the model sees."""
    more = " more" if outlook.hidden else ""
    yield f"Nothing{more} would leave."
    if outlook.hidden:
        yield f"{_hidden(outlook)}."
    if outlook.returning and come:
        yield f"{seqs(outlook.returning)} {come} back."


def _named(outlook: Outlook) -> str:
    """Name what leaves, then what leaves with it and what comes back."""
    parts = [seqs(outlook.leaving)]
    if outlook.hidden:
        parts.append(_hidden(outlook, "with it" if len(outlook.leaving) == 1 else "with them"))
    if outlook.returning:
        parts.append(f"{seqs(outlook.returning)} would come back")
    return "; ".join(parts)


def _hidden(outlook: Outlook, when: str = "at the next add") -> str:
    is_one = len(outlook.hidden) == 1
    are, leave = ("is", "leaves") if is_one else ("are", "leave")
    hidden = f"{seqs(outlook.hidden)} {are} hidden already"
    return hidden if outlook.no_room else f"{hidden} and {leave} {when}"
