"""What it means that a window is over its limit, and what pins leave of it."""

from __future__ import annotations

from collections.abc import Iterator

from chatmemory.core.stored_policies import can_decide
from chatmemory.explain.wording import capitalized, counted, in_unit, seqs
from chatmemory.queries import NoRoom, PinPreview, WindowPlace, WindowView

_NO_ROOM = {
    NoRoom.BESIDE_PINS: "beside what is pinned no message fits: unpin one, or raise the limit",
    NoRoom.REJECTED: "no message fits, and the policy rejects what does not fit: raise the limit",
}
_WOULD_BE_NO_ROOM = {
    NoRoom.BESIDE_PINS: (
        "no message would fit beside what is pinned: unpin one, or choose a higher limit"
    ),
    NoRoom.REJECTED: (
        "no message would fit, and the policy rejects what does not fit: choose a higher limit"
    ),
}


def over_limit(window: WindowView[WindowPlace]) -> str:
    """Say what a window over its limit leads to; an empty string if it is within the limit."""
    policy = window.policy
    if not can_decide(policy) or not policy.is_exceeded_by(window.stored):
        return ""
    if policy.meters_only:
        return "only measured: the client decides what leaves"
    parts = [what_is_hidden(window)] if window.over_limit else []
    if not (parts and window.no_room) and policy.is_exceeded_by(window.totals):
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
    if not window.no_room:
        return leaving(count)
    are = "is" if count == 1 else "are"
    return f"{counted(count, 'message')} over the limit {are} hidden; {_NO_ROOM[window.no_room]}"


def beyond_limit(window: WindowView[WindowPlace]) -> str:
    """Say the same in sentences, beside the messages that the model sees."""
    is_one, count = len(window.over_limit) == 1, f"{len(window.over_limit):,}"
    many = f"{count} more message is" if is_one else f"{count} more messages are"
    seen = f"The model no longer sees {'it' if is_one else 'them'}."
    if window.no_room:
        return f"{many} over the limit. {seen} {capitalized(_NO_ROOM[window.no_room])}."
    return f"{many} over the limit and will leave at the next add. {seen}"


def one_beyond_limit(no_room: NoRoom | None) -> str:
    """Say what becomes of a message that a limit hides."""
    if no_room:
        no_add = capitalized(_NO_ROOM[no_room])
        return f"The model no longer sees it. {no_add}. A higher limit brings it back."
    return (
        "The model no longer sees it, and it leaves at the next add. A higher limit before that "
        "brings it back."
    )


def beyond_tried_limit(no_room: NoRoom | None) -> str:
    """Say what would become of a message that a limit which is tried would hide."""
    if no_room:
        return f"The model would no longer see it. {would_be_no_room(no_room)}"
    return "The model would no longer see it, and it would leave at the next add."


def would_be_no_room(no_room: NoRoom) -> str:
    """Say in a sentence why a limit that is tried would let no message in."""
    return f"{capitalized(_WOULD_BE_NO_ROOM[no_room])}."


def leaving(count: int) -> str:
    """Say how many messages a lowered limit hides, which the next add evicts."""
    return f"{counted(count, 'message')} over the limit will leave at the next add"


# What pins leave for other messages


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
