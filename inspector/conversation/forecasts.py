"""Describes in words what drafts or another limit would do to memory. Also describes what happens
to messages that a lowered limit hides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from chatmemory.explain.captions import Caption, how_far_over
from chatmemory.explain.causes import cause_of, why_no_fit
from chatmemory.explain.wording import (
    capitalized,
    counted,
    decapitalized,
    seqs,
)
from chatmemory.ledger.changes import ChangeResult
from chatmemory.reading.simulation import Outlook
from chatmemory.reading.windows import NoRoom, WindowView
from chatmemory.windows.eviction import Eviction
from chatmemory.windows.policies import Policy
from chatmemory.windows.stored_policies import can_decide


def forecast(changes: Sequence[ChangeResult], outlook: Outlook, policy: Policy | None) -> Caption:
    """Return a caption that says what a simulation of drafts or of another limit would do to
    memory.

    `changes` are the results of adding the drafts; empty without drafts. `outlook` compares memory
    before and after the simulation. `policy` is the policy of the simulation.
    """
    if outlook.no_room and not changes:
        return Caption("No room", detail=change_of_policy(outlook))
    misfits = [(change, change.misfit) for change in changes if change.misfit]
    too_big = {misfit.seq for _, misfit in misfits}
    left = tuple(seq for seq in outlook.leaving if seq not in too_big)
    outlook = replace(outlook, leaving=left)
    loss = counted(len(left), "message") if left else ""
    if misfits:
        also = f" Would also evict {loss}: {_named(outlook)}." if left else ""
        return _no_fit(*misfits[-1], also)
    over, cleared = how_far_over(policy, outlook.after), would_clear(outlook)
    if left:
        rest = (decapitalized(each).removesuffix(".") for each in (over, cleared))
        detail = "; ".join(filter(None, [_named(outlook), *rest]))
        return Caption("Would evict", loss=loss, detail=detail)
    event = "Over the limit" if over else "Fits"
    sentences = filter(None, [over, cleared, *_nothing_leaves(outlook, "would come")])
    return Caption(event, detail=" ".join(sentences))


def would_clear(outlook: Outlook) -> str:
    """Say which tool results a simulated change would clear; "" if none."""
    return f"{would_become_stubs(outlook.stubbed)}." if outlook.stubbed else ""


def would_become_stubs(results: Sequence[int]) -> str:
    if len(results) == 1:
        return f"Tool result {seqs(results)} would be cleared"
    return f"Tool results {seqs(results)} would be cleared"


def _no_fit(change: ChangeResult, message: Eviction, also: str) -> Caption:
    """Say that an added message would not stay, and what else its add would do (`also`)."""
    detail = f"{why_no_fit(change, message)}{also}"
    if message.misfit is not None and message.misfit.is_of_system:
        cause = cause_of(message.reason, message.misfit).sentence_for(is_conditional=True)
        return Caption("No room", detail=f"{cause} {detail}")
    return Caption("Too large for the limit", detail=detail)


def change_of_policy(outlook: Outlook) -> str:
    """Describe in sentences what another policy would do: which messages it would hide or bring
    back, and which would leave at the next add. `outlook` compares memory under both policies.
    """
    no_add = f" {would_be_no_room(outlook.no_room)}" if outlook.no_room else ""
    return f"{_difference(outlook)}{no_add}"


def tried_limit(limit: int, outlook: Outlook) -> Caption:
    """Return the caption of a simulation that has no drafts, and changes only the limit to `limit`.
    `outlook` compares memory under both limits.
    """
    first, *others = change_of_policy(outlook).split(". ", 1)
    event = f"With a limit of {limit:,}, {decapitalized(first.removesuffix('.'))}"
    return Caption(event, detail="".join(others))


def replayed(limit: int, more: Sequence[int], fewer: Sequence[int]) -> Caption:
    """Return the caption of a replay under another limit. `more` are the numbers of messages that
    are in memory only in the replay. `fewer` are the numbers of messages that are only in the
    stored memory.
    """
    sentences = [f"It would also hold {seqs(more)}." if more else ""]
    sentences.append(f"It would not hold {seqs(fewer)}." if fewer else "")
    detail = " ".join(filter(None, sentences)) or "It would hold the same messages."
    return Caption(f"Replayed with a limit of {limit:,} from the first message on", detail=detail)


def _difference(outlook: Outlook) -> str:
    if outlook.leaving:
        many = counted(len(outlook.leaving), "message")
        if outlook.no_room:
            return f"{many} would be hidden: {_named(outlook)}."
        if not outlook.to_clear:
            return f"{many} would leave at the next add: {_named(outlook)}."
        first = f"{would_become_stubs(outlook.to_clear)} first"
        return f"{many} may leave at the next add: {_named(outlook)}. {first}."
    if outlook.returning:
        comes = "comes" if len(outlook.returning) == 1 else "come"
        many = counted(len(outlook.returning), "message")
        still = f" {_hidden(outlook)}." if outlook.hidden else ""
        return f"{many} {comes} back: {seqs(outlook.returning)}.{still}"
    if outlook.hidden:
        return " ".join(_nothing_leaves(outlook))
    return "Nothing would leave, and nothing comes back."


def _nothing_leaves(outlook: Outlook, come: str = "") -> Iterator[str]:
    """Yield sentences for an outlook in which no message leaves that the model sees now."""
    more = " more" if outlook.hidden else ""
    yield f"Nothing{more} would leave."
    if outlook.hidden:
        yield f"{_hidden(outlook)}."
    if outlook.returning and come:
        yield f"{seqs(outlook.returning)} {come} back."


def _named(outlook: Outlook) -> str:
    """Name the messages that leave, then the hidden messages that leave with them, and the messages
    that come back.
    """
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


# Windows over their limit


_NO_ROOM = {
    NoRoom.BESIDE_PINS: (
        "no message fits beside the pinned messages: unpin a message or raise the limit"
    ),
    NoRoom.BESIDE_TURNS: (
        "no turn can begin beside the pinned turns: unpin a turn or raise the limit"
    ),
    NoRoom.REJECTED: "no message fits, and the policy rejects what does not fit: raise the limit",
}
_WOULD_BE_NO_ROOM = {
    NoRoom.BESIDE_PINS: (
        "no message would fit beside the pinned messages: unpin a message or choose a higher limit"
    ),
    NoRoom.BESIDE_TURNS: (
        "no turn could begin beside the pinned turns: unpin a turn or choose a higher limit"
    ),
    NoRoom.REJECTED: (
        "no message would fit, and the policy rejects what does not fit: choose a higher limit"
    ),
}


def over_limit(window: WindowView) -> str:
    """Say how many messages leave at the next add because the window is over its limit, or why none
    leaves.

    Return "" if the window is within the limit, if it has no policy, or if the policy's kind is not
    installed.
    """
    policy = window.policy
    if not can_decide(policy) or not policy.is_exceeded_by(window.stored):
        return ""
    if policy.meters_only:
        return "the policy only measures memory: the client decides what leaves"
    parts = [what_is_hidden(window)] if window.over_limit else []
    if not (parts and window.no_room) and policy.is_exceeded_by(window.totals):
        parts.append(_what_exceeds(window))
    return "; ".join(parts)


def _what_exceeds(window: WindowView) -> str:
    """Name the messages that cannot leave and together are larger than the limit."""
    kept = [row for row in window.rows if not row.pinned and row != window.first_system]
    names = {
        "the system message": window.first_system is not None,
        "the pinned messages": any(row.pinned for row in window.rows),
        "the newest message": bool(kept),
    }
    found = [name for name, is_there in names.items() if is_there]
    if found == ["the system message"]:
        return "the system message alone is larger than the limit: nothing else can stay"
    plural = "the pinned messages" in found or len(found) > 1
    is_larger = f"{'alone' if len(found) == 1 else 'together'} {'are' if plural else 'is'} larger"
    return f"{' and '.join(found)} {is_larger} than the limit"


def what_is_hidden(window: WindowView) -> str:
    """Say how many messages a lowered limit hides, and whether they will be evicted."""
    count = len(window.over_limit)
    if not window.no_room:
        return leaving(count, _will(window))
    are = "is" if count == 1 else "are"
    return f"{counted(count, 'message')} over the limit {are} hidden; {_NO_ROOM[window.no_room]}"


def beyond_limit(window: WindowView) -> str:
    """Say in full sentences how many messages a lowered limit hides, and what will happen to them.
    The memory pane shows the sentences below its rows.
    """
    is_one, count = len(window.over_limit) == 1, f"{len(window.over_limit):,}"
    many = f"{count} more message is" if is_one else f"{count} more messages are"
    consequence = f"The model no longer sees {'it' if is_one else 'them'}."
    if window.no_room:
        return f"{many} over the limit. {consequence} {capitalized(_NO_ROOM[window.no_room])}."
    return f"{many} over the limit and {_will(window)} leave at the next add. {consequence}"


def _will(window: WindowView) -> str:
    """Return `may` if clearing results can make room for the hidden messages, or else `will`."""
    return "may" if window.next_to_clear() else "will"


def why_nothing_fits(window: WindowView) -> str:
    """Say in a sentence why no message can be added; "" if a message can be added."""
    return f"{capitalized(_NO_ROOM[window.no_room])}." if window.no_room else ""


def one_beyond_limit(no_room: NoRoom | None) -> str:
    """Say what happens to a single message that a lowered limit hides. `no_room` is the reason why
    the next add is impossible, or None if it is possible.
    """
    if no_room:
        no_add = capitalized(_NO_ROOM[no_room])
        seen = "The model no longer sees the message."
        return f"{seen} {no_add}. A higher limit brings the message back."
    return (
        "The model no longer sees the message, which leaves memory at the next add. A higher limit "
        "before the add brings the message back."
    )


def beyond_tried_limit(no_room: NoRoom | None) -> str:
    """Say what would happen to a message that a simulated limit would hide. `no_room` is the reason
    why the next add would be impossible, or None if it would be possible.
    """
    if no_room:
        return f"The model would no longer see the message. {would_be_no_room(no_room)}"
    return "The model would no longer see the message, which would leave memory at the next add."


def would_be_no_room(no_room: NoRoom) -> str:
    """Say in a sentence why no message could be added under a simulated limit."""
    return f"{capitalized(_WOULD_BE_NO_ROOM[no_room])}."


def leaving(count: int, will: str = "will") -> str:
    """Say that `count` messages leave at the next add because they are over the limit. `will` is
    the verb, such as `may`.
    """
    return f"{counted(count, 'message')} over the limit {will} leave at the next add"
