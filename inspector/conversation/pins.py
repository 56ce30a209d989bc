"""Previews of pinning or unpinning a message: the size of all pinned messages afterwards, and the
messages that would leave next.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from chatmemory.explain.wording import counted, in_unit, is_of_turns, seqs
from chatmemory.messages.message import MessageType
from chatmemory.reading.windows import WindowView, view_of
from chatmemory.windows.eviction import group_of
from chatmemory.windows.policies import Policy
from chatmemory.windows.stored_policies import can_decide
from inspector.conversation.forecasts import would_become_stubs


class NextToLeave(NamedTuple):
    """The messages that leave next, before and after the previewed change (pinning or unpinning a
    message).

    - `now` are the messages that leave next without the change.
    - `then` are the messages that would leave next after the change. Empty if none could leave.
    - `stubbed_then` are the tool results that would be cleared after the change, before the
      messages in `then` leave.
    """

    now: tuple[int, ...]
    then: tuple[int, ...]
    stubbed_then: tuple[int, ...]


@dataclass(frozen=True)
class PinPreview:
    """The effect of pinning a message, or of unpinning it if `is_pinned` is True.

    - `seqs` are the messages that are pinned together: a tool call and its results.
    - `pinned_load` is the part of the limit that pinned messages would take after the change, in
      the policy's unit.
    - `room` is the part of the limit that would remain for other messages, in the policy's unit.
      Below 1 if no message would fit.
    - `leaving` are the messages that leave next, without and with the change.
    - `hidden` are messages that the model would no longer see after the change, because they would
      be over the limit. `shown` are messages, now over the limit, that the model would see again.
    """

    policy: Policy
    seq: int
    seqs: tuple[int, ...]
    is_pinned: bool
    pinned_load: int
    room: int
    leaving: NextToLeave
    hidden: tuple[int, ...]
    shown: tuple[int, ...]


def pin_preview(window: WindowView, seq: int, waiting_call: int | None = None) -> PinPreview | None:
    """Return the effect of pinning a message, or of unpinning it if it is pinned. None if the
    message cannot be pinned or unpinned:

    - There is no policy, or its kind is not installed.
    - The message is not in memory, is a system message, or belongs to a tool call that awaits
      results. `waiting_call` is the number of this call, if any.
    - The message has no pin, and a pin would have no effect, because the policy never evicts
      (`meters_only`).
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
    pinned_load = then.pinned_load(policy)
    return PinPreview(
        policy=policy,
        seq=seq,
        seqs=tuple(row.seq for row in group),
        is_pinned=is_pinned,
        pinned_load=pinned_load,
        room=then.room_without_pins(policy) - pinned_load,
        leaving=NextToLeave(window.next_to_leave, then.next_to_leave, then.next_to_clear()),
        hidden=_not_in(then, window),
        shown=_not_in(window, then),
    )


def _changed(window: WindowView, seqs: set[int], pinned: bool) -> WindowView:
    rows = (row._replace(pinned=pinned) if row.seq in seqs else row for row in window.in_order)
    return view_of(window.step, window.policy, rows)


def _not_in(other: WindowView, window: WindowView) -> tuple[int, ...]:
    """Return the messages that a lowered limit hides in `window`, but not in `other`."""
    return tuple(row.seq for row in other.over_limit if row.seq not in window.hidden)


# Their words


def pinning(preview: PinPreview) -> str:
    """Say how much of the limit would be pinned after the previewed change, and which messages
    would leave next.
    """
    return " ".join(_sentences(preview))


def _sentences(preview: PinPreview) -> Iterator[str]:
    policy = preview.policy
    if len(preview.seqs) > 1:
        yield f"{seqs(preview.seqs)} go together: a tool call and its results."
    pin = "Without this pin" if preview.is_pinned else "With this pin"
    if preview.pinned_load:
        pinned_load = f"{preview.pinned_load:,} of {policy.limit:,} {policy.unit}"
        yield f"{pin}, pinned messages would take {pinned_load}; {_room(preview)}."
    else:
        yield f"{pin}, nothing would be pinned."
    before, after, stubbed = preview.leaving
    if stubbed:
        yield f"{would_become_stubs(stubbed)} first."
    elif after and after != before:
        rather = f", not {seqs(before)}" if before else ""
        yield f"{seqs(after)} would leave next{rather}."
    elif not after:
        yield "No other message could then leave."
    if preview.hidden:
        yield f"The lowered limit would then hide {seqs(preview.hidden)} too."
    if preview.shown:
        yield f"The lowered limit would no longer hide {seqs(preview.shown)}."


def _room(preview: PinPreview) -> str:
    if preview.room < 1:
        fits = "other turn could begin" if is_of_turns(preview.policy) else "message would fit"
        return f"no {fits} beside the pinned messages"
    if preview.policy.unit in ("messages", "turns"):
        other = f"other {preview.policy.unit.removesuffix('s')}"
        return f"there is room for {counted(preview.room, other)} beside the pinned messages"
    room = in_unit(preview.room, preview.policy)
    return f"the largest message that still fits has {room} (a tool result together with its call)"
