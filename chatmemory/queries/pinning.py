"""What pinning a message would leave for the others."""

from __future__ import annotations

from dataclasses import dataclass

from chatmemory.core.eviction import group_of
from chatmemory.core.messages import MessageType
from chatmemory.core.policies import Policy
from chatmemory.core.stored_policies import can_decide
from chatmemory.queries.windows import WindowPlace, WindowView, view_of


@dataclass(frozen=True)
class PinPreview:
    """What pinning or unpinning a message would do; `seqs` are those that go together.

    `held` is what pinned messages would hold of the limit, in the policy's unit, and `room` how
    large a message can be that still fits beside them, below 1 if none does. `leaving` leave next
    as it is, `leaving_then` afterwards. Where a lowered limit hides messages, `hidden` are those
    that it would hide too, and `shown` those that would be seen again.
    """

    policy: Policy
    seq: int
    seqs: tuple[int, ...]
    is_pinned: bool
    held: int
    room: int
    leaving: tuple[int, ...]
    leaving_then: tuple[int, ...]
    hidden: tuple[int, ...]
    shown: tuple[int, ...]


def pin_preview(
    window: WindowView[WindowPlace], seq: int, waiting_call: int | None = None
) -> PinPreview | None:
    """Return what a pin or its end would do; None where no policy decides, and for what cannot be
    pinned: what is not in memory, a system message, and the tool call that awaits results.
    """
    position = next((i for i, each in enumerate(window.seqs) if each == seq), None)
    policy = window.policy
    if position is None or not can_decide(policy):
        return None
    if window.rows[position].type is MessageType.SYSTEM:
        return None
    group = group_of(window.rows, position)
    if group[0].seq == waiting_call:
        return None
    is_pinned = all(row.pinned for row in group)
    if policy.meters_only and not is_pinned:
        return None
    then = _changed(window, {row.seq for row in group}, not is_pinned)
    held = then.held_by_pins(policy)
    return PinPreview(
        policy=policy,
        seq=seq,
        seqs=tuple(row.seq for row in group),
        is_pinned=is_pinned,
        held=held,
        room=then.room_without_pins(policy) - held,
        leaving=window.next_to_leave,
        leaving_then=then.next_to_leave,
        hidden=_not_in(then, window),
        shown=_not_in(window, then),
    )


def _changed(
    window: WindowView[WindowPlace], seqs: set[int], pinned: bool
) -> WindowView[WindowPlace]:
    rows = (row._replace(pinned=pinned) if row.seq in seqs else row for row in window.in_order)
    return view_of(window.memory_id, window.step, window.policy, rows)


def _not_in(other: WindowView[WindowPlace], window: WindowView[WindowPlace]) -> tuple[int, ...]:
    """Return what a lowered limit hides of one window, but not of another one."""
    seqs = {row.seq for row in window.over_limit}
    return tuple(row.seq for row in other.over_limit if row.seq not in seqs)
