"""What a pin would leave for other messages, in words."""

from __future__ import annotations

from collections.abc import Iterator

from chatmemory.explain.wording import counted, in_unit, seqs
from chatmemory.queries import PinPreview


def pinning(preview: PinPreview) -> str:
    """Say what pins would hold after a pin, or after its end, and what would then leave next."""
    return " ".join(_sentences(preview))


def _sentences(preview: PinPreview) -> Iterator[str]:
    policy = preview.policy
    if len(preview.seqs) > 1:
        yield f"{seqs(preview.seqs)} go together: a tool call and its results."
    pin = "Without this pin" if preview.is_pinned else "With this pin"
    if preview.held:
        held = f"{preview.held:,} of {policy.limit:,} {policy.unit}"
        yield f"{pin}, pins would hold {held}; {_room(preview)}."
    else:
        yield f"{pin}, nothing would be pinned."
    before, after = preview.leaving, preview.leaving_then
    if after and after != before:
        rather = f", not {seqs(before)}" if before else ""
        yield f"{seqs(after)} would leave next{rather}."
    elif not after:
        yield "Nothing else could then leave."
    if preview.hidden:
        yield f"The lowered limit would then hide {seqs(preview.hidden)} too."
    if preview.shown:
        yield f"The lowered limit would no longer hide {seqs(preview.shown)}."


def _room(preview: PinPreview) -> str:
    if preview.room < 1:
        return "no message would fit beside them"
    if preview.policy.unit == "messages":
        return f"there is room for {counted(preview.room, 'other message')} beside them"
    room = in_unit(preview.room, preview.policy)
    return f"a message of up to {room} fits beside them, a result with its call"
