"""Whether a phrase is still in memory: the answer at a step first, then how it went on."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from chatmemory.core.phrases import Speaker
from chatmemory.explain.captions import caption
from chatmemory.explain.reasons import Explanation
from chatmemory.explain.receipts import receipt
from chatmemory.explain.wording import capitalized, decapitalized, role, seqs
from chatmemory.queries import MATCHES_MAX, ConversationState, NoRoom, PhraseMatches, TurningPoint

PERIODS = 12
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
class Period:
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
class PhraseAnswer(Explanation):
    """The answer for a phrase, its latest periods, the number of others, and what decides."""

    periods: tuple[Period, ...] = ()
    earlier: int = 0
    decided_by: str = ""


def remembered(state: ConversationState) -> PhraseAnswer:
    """Explain whether the phrase of a state is in memory, and when it was and will be."""
    phrase, matches = state.query.find, state.mentions
    question = f"{'Would' if matches.is_simulated else 'Does'} it still remember “{phrase}”?"
    if not matches.speakers:
        if _NUMBER.fullmatch(phrase):
            newest = f"The newest is #{state.memory.last_seq}."
            return PhraseAnswer(question, f"There is no message {phrase}.", newest)
        detail = "No message contains these words."
        return PhraseAnswer(question, "It was never said.", detail)
    if matches.leaving or (matches.is_simulated and matches.deciding):
        return _simulated(question, matches)
    return _stored(question, state)


def _stored(question: str, state: ConversationState) -> PhraseAnswer:
    """Answer for stored memory; in a simulation, if the phrase was not in memory before it."""
    matches, at, last_step = state.mentions, state.at, state.memory.last_step
    periods = periods_of(matches, last_step)
    here = next((each for each in periods if each.first <= at <= each.last), None)
    cause, detail = _answer(state, here)
    if here and here.is_in and state.window.hidden.issuperset(matches.deciding):
        why = f"{here.why}; over the limit at step {at:,}"
        periods = tuple(replace(each, why=why) if each is here else each for each in periods)
    is_lost = matches.lost is not None and here is not None and not here.is_in
    answer = PhraseAnswer(
        question,
        f"At step {at:,}: {decapitalized(cause)}" if at < last_step else cause,
        detail,
        receipt(matches.lost) if is_lost and matches.lost else (),
        decided_by=_decided_by(matches),
    )
    if matches.is_simulated:
        return answer
    return replace(
        answer,
        detail=" ".join(filter(None, [detail, _later(matches, periods, at)])),
        periods=periods[-PERIODS:],
        earlier=sum(each.is_in is not None for each in periods[:-PERIODS]),
    )


def _simulated(question: str, matches: PhraseMatches) -> PhraseAnswer:
    """Answer for a simulation that keeps the phrase in memory or pushes it out."""
    decided_by = _decided_by(matches)
    leaving = f"{seqs(matches.leaving)} would leave." if matches.leaving else ""
    if kept := matches.deciding:
        is_own = matches.speaker is Speaker.ASSISTANT
        cause = _only_in(matches.present) if is_own else "Yes."
        detail = f"{capitalized(_are_in(kept))} {leaving}".strip()
        return PhraseAnswer(question, cause, detail, decided_by=decided_by)
    echo, lost = _echo(matches), matches.lost
    told = caption(lost).summary if lost else ""
    return PhraseAnswer(
        question,
        echo or f"No, {leaving}",
        f"{capitalized(leaving)} {told}".strip() if echo else told,
        receipt(lost) if lost else (),
        decided_by=decided_by,
    )


def periods_of(matches: PhraseMatches, last_step: int) -> tuple[Period, ...]:
    """Return the whole conversation as periods in and out of memory, the first not looked at."""
    step, periods = matches.first_step, []
    if step > 1:
        before = (None, _NOT_LOOKED_AT) if matches.is_partial else (False, _NOT_YET)
        periods.append(Period(1, step - 1, *before))
    for first, last in matches.spans:
        if step < first:
            periods.append(Period(step, first - 1, False, _gone(matches, step)))
        periods.append(Period(first, last, True, _began(matches, first)))
        step = last + 1
    if step <= last_step:
        periods.append(Period(step, last_step, False, _gone(matches, step)))
    return tuple(periods)


def without(left: Sequence[int], phrase: str) -> str:
    """Return the consequence of departures for the phrase of a search."""
    return f"Without {seqs(left)}, nothing in memory mentions “{phrase}”."


def _answer(state: ConversationState, here: Period | None) -> tuple[str, str]:
    matches = state.mentions
    if here and matches.deciding:
        return _yes(state, here)
    cause, sentence = _out_of_memory(matches, state.at, here)
    told = caption(matches.lost).summary if matches.lost else ""
    echo = _echo(matches, state.window.hidden)
    return (echo, f"{sentence} {told}".strip()) if echo else (cause, told)


def _echo(matches: PhraseMatches, hidden: Collection[int] = ()) -> str:
    """Say in which messages that the model sees, and that do not decide, the phrase is; empty if in
    none.
    """
    others = _seen_of_others(matches, hidden)
    return _only_in(others) if others else ""


def _seen_of_others(
    matches: PhraseMatches, hidden: Collection[int]
) -> dict[Speaker, tuple[int, ...]]:
    """Return the messages in memory that contain the phrase, do not decide, and are not hidden."""
    return {
        who: seen
        for who, found in matches.present.items()
        if who is not matches.speaker
        and (seen := tuple([seq for seq in found if seq not in hidden]))
    }


def _only_in(found: Mapping[Speaker, Sequence[int]]) -> str:
    return f"Only in {_places(found)}."


def _places(found: Mapping[Speaker, Sequence[int]]) -> str:
    return " and ".join(f"{_WHOSE[who]} ({seqs(found[who])})" for who in sorted(found))


def _are_in(kept: Sequence[int]) -> str:
    return f"{seqs(kept)} {'is' if len(kept) == 1 else 'are'} in memory."


def _yes(state: ConversationState, here: Period) -> tuple[str, str]:
    """Say since when, which mentions are in memory, and when it was last forgotten before.

    The assistant may only have asked for it: its own words are no plain yes.
    """
    matches, hidden = state.mentions, state.window.hidden
    kept = matches.deciding
    visible = [seq for seq in kept if seq not in hidden]
    others = _seen_of_others(matches, hidden)
    if not visible:
        return _over_limit(kept, others, state.window.no_room)
    first = here.first if here.is_in else state.at
    turn, since = matches.turns.get(first), f"step {first:,}"
    if turn and len(turn.seqs) == 1:
        since = f"#{turn.seqs[0]}"
    elif turn is None:  # what was before is not looked at
        since = f"{since} or earlier"
    cause, said = f"Yes, since {since}.", _are_in(visible)
    if matches.speaker is Speaker.ASSISTANT:
        found = {**others, Speaker.ASSISTANT: visible}
        cause, said = _only_in(found), f"In memory since {since}."
    lost = [last + 1 for _, last in matches.spans if last < first]
    if lost and turn:
        again = _came(turn, is_again=True)
        forgotten = f"Forgotten at step {lost[-1]:,}, {_went(matches, lost[-1])}"
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


def _out_of_memory(matches: PhraseMatches, at: int, here: Period | None) -> tuple[str, str]:
    """Say how the phrase came to be out of memory at a step: as an answer, and in a sentence that
    names whose words decide.
    """
    if here and here.is_in is None:
        return "No, nothing in memory mentions it.", ""
    if here is None or at < matches.first_step:
        return f"{capitalized(_NOT_YET)}.", f"{_WHO_HAVE[matches.speaker]} not said it yet."
    is_plural = matches.speaker is Speaker.ASSISTANT
    whose = capitalized(_WHOSE[matches.speaker])
    if here.first == matches.first_step:
        they_were = "they were" if is_plural else "it was"
        sentence = f"{whose} had no room when {they_were} said, at step {here.first:,}."
        return f"No, {_no_room(matches)}.", sentence
    since = "at this step" if here.first == at else f"since step {here.first:,}"
    state = f"forgotten {since}, {_went(matches, here.first)}"
    return f"No, {state}.", f"{whose} {'are' if is_plural else 'is'} {state}."


def _later(matches: PhraseMatches, periods: Sequence[Period], at: int) -> str:
    """Say how it goes on after a step in the past."""
    said = (each for each in periods if each.why not in (_NOT_YET, _NOT_LOOKED_AT))
    later = next((each for each in said if each.first > at), None)
    if later is None:
        return ""
    has_step = later.why == _no_room(matches)
    return f"Later: {later.why}." if has_step else f"Later: {later.why}, at step {later.first:,}."


def _gone(matches: PhraseMatches, step: int) -> str:
    """Say why the phrase was out of memory from a step on."""
    if step == matches.first_step:
        return _no_room(matches)
    return f"forgotten {_went(matches, step)}"


def _began(matches: PhraseMatches, step: int) -> str:
    """Say what brought the phrase into memory, and in which role."""
    turn = matches.turns.get(step)
    if turn is None:
        return "in memory"
    name = f"{role(turn.type, turn.has_calls)} " if turn.is_new and len(turn.seqs) == 1 else ""
    return f"{name}{_came(turn, is_again=step > matches.first_step)}"


def _came(turn: TurningPoint, is_again: bool) -> str:
    if not turn.is_new:
        return f"{seqs(turn.seqs)} came back"
    return f"{seqs(turn.seqs)} said it{' again' if is_again else ''}"


def _went(matches: PhraseMatches, step: int) -> str:
    """Say at what occasion the last mention left."""
    turn = matches.turns.get(step)
    if turn is None or turn.arrived is None:
        return "when the whole list was changed"
    if turn.arrived in turn.seqs:
        return f"when #{turn.arrived} had no room"
    return f"when #{turn.arrived} arrived"


def _no_room(matches: PhraseMatches) -> str:
    return f"it had no room when it was said, at step {matches.first_step:,}"


def _decided_by(matches: PhraseMatches) -> str:
    """Say which mentions are looked at if not all are, whose decide, and whose do not."""
    whose, parts = _WHOSE[matches.speaker], []
    if matches.is_partial:
        parts.append(
            f"There are more than {MATCHES_MAX:,} mentions: the newest {MATCHES_MAX:,} are looked "
            "at, and those in memory at this step."
        )
    if others := matches.said_by[1:]:
        rest = " and ".join(_WHOSE[who] for who in others)
        parts.append(f"The answer and any band on the timeline follow {whose}, not {rest}.")
    elif matches.speaker is not Speaker.OTHERS:
        no_one = "Of these, no user" if matches.is_partial else "No user"
        parts.append(f"{no_one} and no tool said it: it is found only in {whose}.")
    return " ".join(parts)
