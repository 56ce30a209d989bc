"""Captions: one sentence for a step, or for the effect of drafts, another limit or a pin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from chatmemory.explain.wording import (
    REPAIRED,
    amount,
    capitalized,
    cause_of,
    counted,
    decapitalized,
    happened,
    in_unit,
    is_of_turns,
    oldest,
    policy_words,
    role,
    seqs,
    why_no_fit,
)
from chatmemory.ledger.changes import ArrivedMessage, ChangeResult, EvictedMessage
from chatmemory.messages.message import MessageType
from chatmemory.messages.texts import named
from chatmemory.models import Step
from chatmemory.reading.simulation import Outlook, PinPreview
from chatmemory.reading.windows import NoRoom, WindowView
from chatmemory.windows.eviction import Reason
from chatmemory.windows.policies import Policy
from chatmemory.windows.stored_policies import can_decide
from chatmemory.windows.window import Totals


@dataclass(frozen=True)
class Caption:
    """The parts of a sentence: the event, the gain (+85), the loss, and its reasons."""

    event: str
    gain: str = ""
    loss: str = ""
    detail: str = ""

    @property
    def summary(self) -> str:
        event = " ".join(filter(None, [self.event, self.gain])) + "."
        if not self.loss:
            return " ".join(filter(None, [event, self.detail]))
        return f"{event} {self.loss}: {self.detail}" if self.detail else f"{event} {self.loss}."


def caption(change: ChangeResult, note: str = "") -> Caption:
    """Return the caption of a change. The caption of a draft is in the conditional.

    The `note` of an add that evicted messages says why no summary took their place.
    """
    in_tokens = change.policy is None or change.policy.unit != "messages"
    gained, lost = change.gained, change.lost
    if change.kind in ("compact", "stub"):
        return Caption(_event(change), detail=f"{lost:,} tokens became {gained:,}.")
    left = "would leave" if change.is_of_draft else "left"
    loss = f"{counted(len(change.evicted), 'message')} {left}" if change.evicted else ""
    return Caption(
        event=_event(change),
        gain=f"+{gained:,}" if in_tokens and gained else "",
        loss=f"{loss} {amount(-lost)}" if loss and in_tokens and lost else loss,
        detail=_reasons(change, note) if change.evicted else _fit(change),
    )


def _fit(change: ChangeResult) -> str:
    """Say whether an add that evicted nothing fits."""
    if change.kind != "add" or not can_decide(change.policy):
        return ""
    is_, fits = ("would be", "would fit") if change.is_of_draft else ("is", "fits")
    return _over(change.policy, change.after, is_) or f"It {fits}."


def _over(policy: Policy | None, totals: Totals, is_: str = "would be") -> str:
    """Say how much memory is over its limit, or ""."""
    if not can_decide(policy) or not policy.is_exceeded_by(totals):
        return ""
    return f"Memory {is_} {in_unit(policy.load(totals) - policy.limit, policy)} over the limit."


def _event(change: ChangeResult) -> str:
    match change.kind:
        case "policy":
            return f"The policy became {policy_words(change.policy, change.replaced)}"
        case "labels" | "clear" | "repair":
            return capitalized(happened(change.kind))
        case "redact":
            return f"Message #{change.seq} was redacted"
        case "compact" | "stub":
            return _became(change)
        case "pin" | "unpin":
            return f"Message #{change.seq} was {change.kind}ned"
    if len(change.arrived) == 1:
        (arrived,) = change.arrived
        if arrived.seq < 0:
            return f"{capitalized(named(arrived.seq))} would arrive"
        name = role(arrived.type, arrived.has_calls)
        noun = name if name.startswith("Tool") else f"{name} message"
        return f"{noun} #{arrived.seq} {_arrival(change, arrived)}"
    if change.kind == "add" and not change.arrived:
        return "A message came that left at once"
    if change.kind == "set":
        injected = sum(each.is_injected for each in change.arrived)
        some = f", {injected:,} of them never said" if injected else ""
        never_said = ", never said" if injected == len(change.arrived) > 0 else some
        return f"Memory was set; {len(change.arrived):,} messages came{never_said}"
    return f"{len(change.arrived):,} drafts would arrive"  # all of a simulation


def _became(change: ChangeResult) -> str:
    """Name the summary or the stubs that took the place of messages."""
    count = len(change.evicted)
    if change.kind == "compact":
        return f"{counted(count, 'message')} became summary #{change.seq}"
    return f"{counted(count, 'old tool result')} became {'a stub' if count == 1 else 'stubs'}"


def _arrival(change: ChangeResult, arrived: ArrivedMessage) -> str:
    if arrived.is_injected:
        return "was put into memory, never said"
    if change.kind == "add" and change.eviction_of(arrived.seq):
        is_own = arrived.type is MessageType.AI
        return "left memory as it arrived" if is_own else "never reached the model"
    return "arrived"


def _reasons(change: ChangeResult, note: str) -> str:
    """`#25 and #26 were the oldest, results #27 and #28 left with #26.`

    What would happen: `#25 and #26 are the oldest, results #27 and #28 would leave with #26.`
    """
    would = change.is_of_draft
    was, were, left = ("is", "are", "would leave") if would else ("was", "were", "left")
    misfit = change.misfit
    by_reason: dict[Reason, list[int]] = {}
    for each in change.evicted:
        if not each.misfit:
            by_reason.setdefault(each.reason, []).append(each.seq)
    parts = []
    if first := by_reason.get(Reason.CAPACITY):
        parts.append(f"{seqs(first)} {was if len(first) == 1 else were} the {oldest(change)}")
    if orphans := by_reason.get(Reason.ORPHANED):
        results = "result" if len(orphans) == 1 else "results"
        parts.append(f"{results} {seqs(orphans)} {left} with {_calls(change)}")
    if rest := by_reason.get(Reason.TURN):
        parts.append(f"{seqs(rest)} {was if len(rest) == 1 else were} the rest of a turn")
    if misfit:
        cause = cause_of(misfit.reason, misfit.misfit).sentence_for(would).removesuffix(".")
        parts.append(f"{named(misfit.seq)} could not stay: {decapitalized(cause)}")
    if replaced := by_reason.get(Reason.REPLACED):
        parts.append(f"{seqs(replaced)} {'would be' if would else 'was'} replaced")
    for reason, gone in by_reason.items():
        is_repaired = change.kind == "repair" and reason is Reason.SET
        if how := (REPAIRED if is_repaired else cause_of(reason)).of_list:
            parts.append(f"{seqs(gone)} {how}")
    shows_note = change.kind == "add" and note not in (Step.IMPORTED, Step.BRANCHED)
    return " ".join(filter(None, [", ".join(parts) + ".", note if shows_note else ""]))


def _calls(change: ChangeResult) -> str:
    """Return the tool calls whose results left with them, as text."""
    orphaned = (each for each in change.evicted if each.reason is Reason.ORPHANED)
    calls = dict.fromkeys(each.because_seq for each in orphaned if each.because_seq is not None)
    return seqs(list(calls)) if calls else "a call"


# Forecasts


def forecast(changes: Sequence[ChangeResult], outlook: Outlook, policy: Policy | None) -> Caption:
    """Return a verdict on simulated changes and on the limit that is tried with them."""
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
    over, cleared = _over(policy, outlook.after), would_clear(outlook)
    if left:
        rest = (decapitalized(each).removesuffix(".") for each in (over, cleared))
        detail = "; ".join(filter(None, [_named(outlook), *rest]))
        return Caption("Would evict", loss=loss, detail=detail)
    event = "Over the limit" if over else "Fits"
    sentences = filter(None, [over, cleared, *_nothing_leaves(outlook, "would come")])
    return Caption(event, detail=" ".join(sentences))


def would_clear(outlook: Outlook) -> str:
    """Say which tool results would become stubs, or ""."""
    return f"{_stubs(outlook.stubbed)}." if outlook.stubbed else ""


def _stubs(results: Sequence[int]) -> str:
    if len(results) == 1:
        return f"Result {seqs(results)} would become a stub"
    return f"Results {seqs(results)} would become stubs"


def _no_fit(change: ChangeResult, message: EvictedMessage, also: str) -> Caption:
    """Say that a message could not stay, and name the other effects of its add."""
    detail = f"{why_no_fit(change, message)}{also}"
    if message.misfit is not None and message.misfit.is_of_system:
        cause = cause_of(message.reason, message.misfit).sentence_for(is_conditional=True)
        return Caption("No room", detail=f"{cause} {detail}")
    return Caption("Too big", detail=detail)


def change_of_policy(outlook: Outlook) -> str:
    """Describe in sentences the effect of another policy alone."""
    no_add = f" {would_be_no_room(outlook.no_room)}" if outlook.no_room else ""
    return f"{_difference(outlook)}{no_add}"


def tried_limit(limit: int, outlook: Outlook) -> Caption:
    """Return the caption of a simulation that tries another limit alone."""
    first, *others = change_of_policy(outlook).split(". ", 1)
    event = f"With a limit of {limit:,}, {decapitalized(first.removesuffix('.'))}"
    return Caption(event, detail="".join(others))


def replayed(limit: int, more: Sequence[int], fewer: Sequence[int]) -> Caption:
    """Return the caption of a replay, which holds `more` messages and not the `fewer` ones."""
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
        first = f"{_stubs(outlook.to_clear)} first"
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
    """Yield sentences on an outlook in which nothing leaves that the model sees."""
    more = " more" if outlook.hidden else ""
    yield f"Nothing{more} would leave."
    if outlook.hidden:
        yield f"{_hidden(outlook)}."
    if outlook.returning and come:
        yield f"{seqs(outlook.returning)} {come} back."


def _named(outlook: Outlook) -> str:
    """Name the messages that leave first, then the ones that leave with them or come back."""
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
    NoRoom.BESIDE_PINS: "beside what is pinned no message fits: unpin one, or raise the limit",
    NoRoom.BESIDE_TURNS: (
        "beside the turns that are pinned no other can begin: unpin one, or raise the limit"
    ),
    NoRoom.REJECTED: "no message fits, and the policy rejects what does not fit: raise the limit",
}
_WOULD_BE_NO_ROOM = {
    NoRoom.BESIDE_PINS: (
        "no message would fit beside what is pinned: unpin one, or choose a higher limit"
    ),
    NoRoom.BESIDE_TURNS: (
        "no other turn could begin beside those that are pinned: unpin one, or choose a higher "
        "limit"
    ),
    NoRoom.REJECTED: (
        "no message would fit, and the policy rejects what does not fit: choose a higher limit"
    ),
}


def over_limit(window: WindowView) -> str:
    """Describe the next evictions of a window over its limit; "" within the limit."""
    policy = window.policy
    if not can_decide(policy) or not policy.is_exceeded_by(window.stored):
        return ""
    if policy.meters_only:
        return "only measured: the client decides what leaves"
    parts = [what_is_hidden(window)] if window.over_limit else []
    if not (parts and window.no_room) and policy.is_exceeded_by(window.totals):
        parts.append(_what_exceeds(window))
    return "; ".join(parts)


def _what_exceeds(window: WindowView) -> str:
    """Name the messages that cannot leave and are more than the limit."""
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


def what_is_hidden(window: WindowView) -> str:
    """Say how many messages a lowered limit hides, and whether they will leave."""
    count = len(window.over_limit)
    if not window.no_room:
        return leaving(count, _will(window))
    are = "is" if count == 1 else "are"
    return f"{counted(count, 'message')} over the limit {are} hidden; {_NO_ROOM[window.no_room]}"


def beyond_limit(window: WindowView) -> str:
    """Say the same in sentences, for the list of messages that the model sees."""
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
    """Say in a sentence why every message is refused; empty if one can be let in."""
    return f"{capitalized(_NO_ROOM[window.no_room])}." if window.no_room else ""


def one_beyond_limit(no_room: NoRoom | None) -> str:
    """Say whether a message that a limit hides will leave."""
    if no_room:
        no_add = capitalized(_NO_ROOM[no_room])
        return f"The model no longer sees it. {no_add}. A higher limit brings it back."
    return (
        "The model no longer sees it, and it leaves at the next add. A higher limit before that "
        "brings it back."
    )


def beyond_tried_limit(no_room: NoRoom | None) -> str:
    """Say whether a message that a tried limit would hide would leave."""
    if no_room:
        return f"The model would no longer see it. {would_be_no_room(no_room)}"
    return "The model would no longer see it, and it would leave at the next add."


def would_be_no_room(no_room: NoRoom) -> str:
    """Say in a sentence why a limit that is tried would let no message in."""
    return f"{capitalized(_WOULD_BE_NO_ROOM[no_room])}."


def leaving(count: int, will: str = "will") -> str:
    """Say how many messages a lowered limit hides until the next add evicts them."""
    return f"{counted(count, 'message')} over the limit {will} leave at the next add"


# What pins leave for other messages


def pinning(preview: PinPreview) -> str:
    """Say how much would be pinned after a pin or its end, and which messages would leave next."""
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
    if preview.stubbed_then:
        yield f"{_stubs(preview.stubbed_then)} first."
    elif after and after != before:
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
        fits = "other turn could begin" if is_of_turns(preview.policy) else "message would fit"
        return f"no {fits} beside them"
    if preview.policy.unit in ("messages", "turns"):
        other = f"other {preview.policy.unit.removesuffix('s')}"
        return f"there is room for {counted(preview.room, other)} beside them"
    room = in_unit(preview.room, preview.policy)
    return f"a message of up to {room} fits beside them, a result with its call"
