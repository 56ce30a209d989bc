"""Whether a phrase is still in memory: the answer at a step first, then how it went on."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from chatmemory.core.speakers import Speaker
from chatmemory.explain.captions import caption
from chatmemory.explain.reasons import Explanation
from chatmemory.explain.receipts import receipt
from chatmemory.explain.wording import capitalized, counted, decapitalized, role, seqs
from chatmemory.queries import Mentions, NoRoom, Turn

STRETCHES = 12
_NOT_YET = "not said yet"
_NOT_LOOKED_AT = "not looked at"
_NUMBER = re.compile(r"#[0-9]+")

_WHOSE = {
    Speaker.OTHERS: "what users and tools said",
    Speaker.ASSISTANT: "the assistant’s own words",
    Speaker.SYSTEM: "the system message",
    Speaker.CLIENT: "what the client put into memory",
}
_WHO_HAVE = {
    Speaker.OTHERS: "Users and tools have",
    Speaker.ASSISTANT: "The assistant has",
    Speaker.SYSTEM: "The system message has",
    Speaker.CLIENT: "The client has",
}


@dataclass(frozen=True)
class Stretch:
    """Steps from `first` to `last` at which a phrase was in memory or was not, and why.

    Of steps that were not looked at, `is_in` is None.
    """

    first: int
    last: int
    is_in: bool | None
    why: str

    @property
    def steps(self) -> str:
        if self.first == self.last:
            return f"Step {self.first:,}"
        return f"Steps {self.first:,} to {self.last:,}"


@dataclass(frozen=True)
class Remembrance(Explanation):
    """The answer for a phrase, its latest stretches, the number of others, and what decides.

    Of the others some steps may not have been looked at: there are `more`.
    """

    stretches: tuple[Stretch, ...] = ()
    earlier: int = 0
    more: bool = False
    decided_by: str = ""


@dataclass(frozen=True)
class Moment:
    """The step of the question, the newest step and message, and what a limit hides.

    What it hides leaves at the next add, unless there is `no_room` for any message.
    """

    at: int
    last_step: int
    last_seq: int
    hidden: Collection[int] = ()
    no_room: NoRoom | None = None


def remembers(phrase: str, mentions: Mentions, moment: Moment) -> Remembrance:
    """Explain whether a phrase is in memory at a step, and when it was and will be."""
    question = f"{'Would' if mentions.is_simulated else 'Does'} it still remember “{phrase}”?"
    if mentions.speaker is None:
        if _NUMBER.fullmatch(phrase):
            newest = f"The newest is #{moment.last_seq}."
            return Remembrance(question, f"There is no message {phrase}.", newest)
        detail = "No message contains these words."
        return Remembrance(question, "It was never said.", detail)
    if mentions.leaving or (mentions.is_simulated and _deciding(mentions)):
        return _simulated(question, mentions)
    return _stored(question, mentions, moment)


def _stored(question: str, mentions: Mentions, moment: Moment) -> Remembrance:
    """Answer for stored memory; in a simulation, if the phrase was not in memory before it."""
    stretches = stretches_of(mentions, moment.last_step)
    here = next((each for each in stretches if each.first <= moment.at <= each.last), None)
    cause, detail = _answer(mentions, moment, here)
    if here and here.is_in and _are_hidden(mentions, moment):
        why = f"{here.why}; over the limit at step {moment.at:,}"
        stretches = tuple(replace(each, why=why) if each is here else each for each in stretches)
    is_past = moment.at < moment.last_step
    is_lost = mentions.lost is not None and here is not None and not here.is_in
    answer = Remembrance(
        question,
        f"At step {moment.at:,}: {decapitalized(cause)}" if is_past else cause,
        detail,
        receipt(mentions.lost) if is_lost and mentions.lost else (),
        decided_by=_decided_by(mentions),
    )
    if mentions.is_simulated:
        return answer
    return replace(
        answer,
        detail=" ".join(filter(None, [detail, _later(mentions, stretches, moment)])),
        stretches=stretches[-STRETCHES:],
        earlier=sum(each.is_in is not None for each in stretches[:-STRETCHES]),
        more=any(each.is_in is None for each in stretches[:-STRETCHES]),
    )


def _simulated(question: str, mentions: Mentions) -> Remembrance:
    """Answer for a simulation that keeps the phrase in memory or pushes it out."""
    decided_by = _decided_by(mentions)
    leaving = f"{seqs(mentions.leaving)} would leave." if mentions.leaving else ""
    if kept := _deciding(mentions):
        is_own = mentions.speaker is Speaker.ASSISTANT
        cause = _only_in(mentions.present) if is_own else "Yes."
        detail = f"{capitalized(_are_in(kept))} {leaving}".strip()
        return Remembrance(question, cause, detail, decided_by=decided_by)
    echo, lost = _echo(mentions), mentions.lost
    told = caption(lost).summary if lost else ""
    return Remembrance(
        question,
        echo or f"No, {leaving}",
        f"{capitalized(leaving)} {told}".strip() if echo else told,
        receipt(lost) if lost else (),
        decided_by=decided_by,
    )


def stretches_of(mentions: Mentions, last_step: int) -> tuple[Stretch, ...]:
    """Return the whole conversation as stretches in and out of memory, or not looked at."""
    first_known, last_known = mentions.known
    step, stretches = mentions.first_step, []
    if step > 1:
        stretches.append(Stretch(1, step - 1, False, _NOT_YET))
    if step < first_known:
        stretches.append(Stretch(step, first_known - 1, None, _NOT_LOOKED_AT))
        step = first_known
    for first, last in mentions.spans:
        if step < first:
            stretches.append(Stretch(step, first - 1, False, _gone(mentions, step)))
        stretches.append(Stretch(first, last, True, _began(mentions, first)))
        step = last + 1
    if step <= last_known:
        stretches.append(Stretch(step, last_known, False, _gone(mentions, step)))
    if last_known < last_step:
        stretches.append(Stretch(last_known + 1, last_step, None, _NOT_LOOKED_AT))
    return tuple(stretches)


def without(left: Sequence[int], phrase: str) -> str:
    """Return the consequence of departures for the phrase of a search."""
    return f"Without {seqs(left)}, nothing in memory mentions “{phrase}”."


def _answer(mentions: Mentions, moment: Moment, here: Stretch | None) -> tuple[str, str]:
    if here and here.is_in:
        return _yes(mentions, moment, here)
    cause, sentence = _out_of_memory(mentions, moment, here)
    told = caption(mentions.lost).summary if mentions.lost else ""
    echo = _echo(mentions, moment.hidden)
    return (echo, f"{sentence} {told}".strip()) if echo else (cause, told)


def _deciding(mentions: Mentions) -> tuple[int, ...]:
    """Return the deciding messages in memory."""
    return mentions.present.get(mentions.speaker, ()) if mentions.speaker is not None else ()


def _are_hidden(mentions: Mentions, moment: Moment) -> bool:
    """Return whether a limit hides all deciding messages."""
    return all(map(moment.hidden.__contains__, _deciding(mentions)))


def _echo(mentions: Mentions, hidden: Collection[int] = ()) -> str:
    """Say in which messages that the model sees, and that do not decide, the phrase is; empty if in
    none.
    """
    others = _seen_of_others(mentions, hidden)
    return _only_in(others) if others else ""


def _seen_of_others(mentions: Mentions, hidden: Collection[int]) -> dict[Speaker, tuple[int, ...]]:
    """Return the messages in memory that contain the phrase, do not decide, and are not hidden."""
    return {
        who: seen
        for who, found in mentions.present.items()
        if who is not mentions.speaker
        and (seen := tuple([seq for seq in found if seq not in hidden]))
    }


def _only_in(found: Mapping[Speaker, Sequence[int]]) -> str:
    return f"Only in {_places(found)}."


def _places(found: Mapping[Speaker, Sequence[int]]) -> str:
    return " and ".join(f"{_WHOSE[who]} ({seqs(found[who])})" for who in sorted(found))


def _are_in(kept: Sequence[int]) -> str:
    return f"{seqs(kept)} {'is' if len(kept) == 1 else 'are'} in memory."


def _yes(mentions: Mentions, moment: Moment, here: Stretch) -> tuple[str, str]:
    """Say since when, which mentions are in memory, and when it was last forgotten before.

    The assistant may only have asked for it: its own words are no plain yes.
    """
    kept = _deciding(mentions)
    visible = [seq for seq in kept if seq not in moment.hidden]
    others = _seen_of_others(mentions, moment.hidden)
    if not visible:
        return _over_limit(kept, others, moment.no_room)
    turn = mentions.turns.get(here.first)
    since = f"#{turn.seqs[0]}" if turn and len(turn.seqs) == 1 else f"step {here.first:,}"
    if turn is None:  # what was before is not looked at
        since = f"{since} or earlier"
    cause, said = f"Yes, since {since}.", _are_in(visible)
    if mentions.speaker is Speaker.ASSISTANT:
        found = {**others, Speaker.ASSISTANT: visible}
        cause, said = _only_in(found), f"In memory since {since}."
    lost = [last + 1 for _, last in mentions.spans if last < here.first]
    if lost:
        again = _came(turn, is_again=True) if turn else f"step {here.first:,}"
        forgotten = f"Forgotten at step {lost[-1]:,}, {_went(mentions, lost[-1])}"
        said = f"{forgotten}, until {again}. {said}"
    return cause, said


def _over_limit(
    kept: Sequence[int], others: Mapping[Speaker, Sequence[int]], no_room: NoRoom | None
) -> tuple[str, str]:
    """Say that a limit hides the deciding mentions, and in which others the phrase is seen."""
    sees = seqs(kept) if others else "it" if len(kept) == 1 else "them"
    evicts = "" if no_room else f"; the next add evicts {seqs(kept)}"
    detail = f"The model no longer sees {sees}{evicts}."
    if others:
        return f"Only over the limit ({seqs(kept)}) and in {_places(others)}.", detail
    return f"Only over the limit: {seqs(kept)}.", detail


def _out_of_memory(mentions: Mentions, moment: Moment, here: Stretch | None) -> tuple[str, str]:
    """Say how the phrase came to be out of memory at a step: as an answer, and in a sentence that
    names whose words decide.
    """
    if here is None or moment.at < mentions.first_step:
        return f"{capitalized(_NOT_YET)}.", f"{_who_have(mentions)} not said it yet."
    is_plural = mentions.speaker is Speaker.ASSISTANT
    whose = capitalized(_whose(mentions))
    if here.first == mentions.first_step:
        they_were = "they were" if is_plural else "it was"
        sentence = f"{whose} had no room when {they_were} said, at step {here.first:,}."
        return f"No, {_no_room(mentions)}.", sentence
    since = "at this step" if here.first == moment.at else f"since step {here.first:,}"
    state = f"forgotten {since}, {_went(mentions, here.first)}"
    return f"No, {state}.", f"{whose} {'are' if is_plural else 'is'} {state}."


def _later(mentions: Mentions, stretches: Sequence[Stretch], moment: Moment) -> str:
    """Say how it goes on after a step in the past."""
    said = (each for each in stretches if each.why != _NOT_YET)
    later = next((each for each in said if each.first > moment.at), None)
    if later is None or later.is_in is None:
        return ""
    has_step = later.why == _no_room(mentions)
    return f"Later: {later.why}." if has_step else f"Later: {later.why}, at step {later.first:,}."


def _gone(mentions: Mentions, step: int) -> str:
    """Say why the phrase was out of memory from a step on."""
    if step == mentions.first_step:
        return _no_room(mentions)
    return f"forgotten {_went(mentions, step)}"


def _began(mentions: Mentions, step: int) -> str:
    """Say what brought the phrase into memory, and in which role."""
    turn = mentions.turns.get(step)
    if turn is None:
        return "in memory"
    name = f"{role(turn.type, turn.has_calls)} " if turn.is_new and len(turn.seqs) == 1 else ""
    return f"{name}{_came(turn, is_again=step > mentions.first_step)}"


def _came(turn: Turn, is_again: bool) -> str:
    if not turn.is_new:
        return f"{seqs(turn.seqs)} came back"
    return f"{seqs(turn.seqs)} said it{' again' if is_again else ''}"


def _went(mentions: Mentions, step: int) -> str:
    """Say at what occasion the last mention left."""
    turn = mentions.turns.get(step)
    if turn is None or turn.arrived is None:
        return "when the whole list was changed"
    if turn.arrived in turn.seqs:
        return f"when #{turn.arrived} had no room"
    return f"when #{turn.arrived} arrived"


def _no_room(mentions: Mentions) -> str:
    return f"it had no room when it was said, at step {mentions.first_step:,}"


def _whose(mentions: Mentions) -> str:
    return _WHOSE[mentions.speaker] if mentions.speaker is not None else ""


def _who_have(mentions: Mentions) -> str:
    return _WHO_HAVE[mentions.speaker] if mentions.speaker is not None else ""


def _decided_by(mentions: Mentions) -> str:
    """Say whose messages decide and whose do not, and which steps are looked at."""
    whose = _whose(mentions)
    others = sorted(mentions.said_by)[1:]
    parts = []
    if others:
        rest = " and ".join(_WHOSE[who] for who in others)
        parts.append(f"The answer and any band on the timeline follow {whose}, not {rest}.")
    elif mentions.speaker is not Speaker.OTHERS:
        parts.append(f"No user and no tool said it: it is found only in {whose}.")
    if mentions.is_partial:
        parts.append(_part(mentions))
    return " ".join(parts)


def _part(mentions: Mentions) -> str:
    """Say which steps the answer looks at, if there are too many mentions."""
    first, last = mentions.known
    steps = f"step {first:,} is" if first == last else f"steps {first:,} to {last:,} are"
    return f"Only {steps} looked at, as there are {counted(mentions.count, 'mention')}."
