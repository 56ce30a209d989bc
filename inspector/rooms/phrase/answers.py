"""Explains in words whether memory has a phrase: at the requested step, before, and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from chatmemory.explain.captions import caption
from chatmemory.explain.interruptions import unseen
from chatmemory.explain.reasons import Explanation
from chatmemory.explain.receipts import receipt
from chatmemory.explain.wording import capitalized, decapitalized, role, seqs
from chatmemory.messages.phrases import Speaker
from chatmemory.patterns import declared_pattern
from chatmemory.reading.windows import NoRoom
from inspector.rooms.phrase.matches import MATCHES_MAX, PhraseMatches, Remembered, TurningPoint
from inspector.rooms.phrase.searching import PhraseSearch

PERIODS = 12
_NOT_YET = "not said yet"
_NOT_LOOKED_AT = "not examined"
_NUMBER = declared_pattern(r"#[0-9]+")

_WHOSE = {
    Speaker.OTHERS: "what users and tools said",
    Speaker.ASSISTANT: "the assistant’s own words",
    Speaker.SYSTEM: "the system message",
    Speaker.CLIENT: "what the client put into memory",
}


@dataclass(frozen=True)
class Period:
    """A range of steps, from `first` to `last`, in which memory always had a phrase or never had
    it.

    - `is_in`: whether memory had the phrase; None if not all messages were searched.
    - `why`: the reason in words, such as `forgotten when #7 arrived`.
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
    """The answer to the question whether memory has a phrase at a step.

    - `state`: whether the phrase is in memory at this step.
    - `periods`: the latest 12 ranges of steps with or without the phrase in memory. Empty in a
      simulation, and if no message contains the phrase.
    - `earlier`: the number of known ranges before those in `periods`.
    - `looked_at`: sentences that say what the answer leaves open, such as that only the newest
      messages with the phrase were searched; or "".
    """

    state: Remembered = Remembered.NOT_IN_MEMORY
    periods: tuple[Period, ...] = ()
    earlier: int = 0
    looked_at: str = ""


def remembered(search: PhraseSearch) -> PhraseAnswer:
    """Explain whether a phrase is in memory at a step, and in which periods memory had the
    phrase.
    """
    state, phrase, matches = search
    question = f"{'Would' if matches.is_simulated else 'Does'} memory still have “{phrase}”?"
    if not matches.speakers:
        if _NUMBER.fullmatch(phrase):
            newest = f"The newest is #{state.memory.last_seq}."
            return PhraseAnswer(question, f"There is no message {phrase}.", newest)
        detail = _and_same_day("No message contains these words.", matches)
        return PhraseAnswer(question, "Nobody said these words.", detail)
    if matches.is_simulated and (matches.leaving or matches.present):
        return _simulated(question, matches)
    return _stored(question, search)


def _stored(question: str, search: PhraseSearch) -> PhraseAnswer:
    """Explain a phrase in stored memory. This includes simulations that change nothing about the
    phrase.
    """
    state, _, matches = search
    at, last_step = state.step.n, state.memory.last_step
    periods = periods_of(matches, last_step)
    here = next((each for each in periods if each.first <= at <= each.last), None)
    cause, detail = _answer(search, here)
    if here and here.is_in and state.window.hidden.issuperset(matches.in_memory):
        is_unseen = {*matches.in_memory}.issubset(state.window.interrupted_seqs)
        what = "in a call that is not answered" if is_unseen else "over the limit"
        why = f"{here.why}; {what} at step {at:,}"
        periods = tuple(replace(each, why=why) if each is here else each for each in periods)
    answer = PhraseAnswer(
        question,
        f"At step {at:,}: {decapitalized(cause)}" if at < last_step else cause,
        _and_same_day(detail, matches),
        receipt(matches.departures.last) if matches.departures.last else (),
        state=matches.remembered(state.window.hidden),
        looked_at=_looked_at(matches),
    )
    if matches.is_simulated:
        return answer
    return replace(
        answer,
        detail=" ".join(filter(None, [answer.detail, _later(matches, periods, at)])),
        periods=periods[-PERIODS:],
        earlier=sum(each.is_in is not None for each in periods[:-PERIODS]),
    )


def _simulated(question: str, matches: PhraseMatches) -> PhraseAnswer:
    """Explain a phrase in a simulation: which of its mentions stay in memory, and which leave."""
    leaving = f"{seqs(matches.leaving)} would leave." if matches.leaving else ""
    lost, state = matches.departures.last, matches.remembered()
    if state is Remembered.NOT_IN_MEMORY:
        sentence = caption(lost).summary if lost else ""
        figures = receipt(lost) if lost else ()
        looked_at = _looked_at(matches)
        return PhraseAnswer(question, f"No, {leaving}", sentence, figures, looked_at=looked_at)
    is_aside = state is Remembered.ASIDE
    cause = _only_in(matches.present) if is_aside else "Yes."
    sentence = f"{capitalized(_are_in(matches.in_memory))} {leaving}".strip()
    return PhraseAnswer(question, cause, sentence, state=state, looked_at=_looked_at(matches))


def periods_of(matches: PhraseMatches, last_step: int) -> tuple[Period, ...]:
    """Divide the steps of a conversation into periods with and without the phrase in memory.

    If older messages with the phrase were not searched, the steps before the first known message
    with the phrase are one period. Its `is_in` is None.
    """
    step, periods = matches.presence.first_step, []
    if step > 1:
        before = (None, _NOT_LOOKED_AT) if matches.is_partial else (False, _NOT_YET)
        periods.append(Period(1, step - 1, *before))
    for first, last in matches.presence.spans:
        if step < first:
            periods.append(Period(step, first - 1, False, _gone(matches, step)))
        periods.append(Period(first, last, True, _began(matches, first)))
        step = last + 1
    if step <= last_step:
        periods.append(Period(step, last_step, False, _gone(matches, step)))
    return tuple(periods)


def without(left: Sequence[int], phrase: str) -> str:
    """Return a sentence such as “Without #3 and #5, nothing in memory mentions …”. `left` are the
    numbers of the messages that left.
    """
    return f"Without {seqs(left)}, nothing in memory mentions “{phrase}”."


def _answer(search: PhraseSearch, here: Period | None) -> tuple[str, str]:
    state, _, matches = search
    hidden = state.window.hidden
    places = matches.visible_mentions(hidden)
    if not matches.present:
        sentence = caption(matches.departures.last).summary if matches.departures.last else ""
        return _out_of_memory(matches, state.step.n, here), sentence
    if not places and {*matches.in_memory}.issubset(state.window.interrupted_seqs):
        sentence = " ".join(unseen(state.window))
        return f"Only in a tool call without its results: {seqs(matches.in_memory)}.", sentence
    if not places:
        return _over_limit(matches.in_memory, state.window.no_room)
    placed = [seq for these in places.values() for seq in these]
    cause, detail = _yes(matches, state.step.n, here, placed)
    if matches.remembered(hidden) is Remembered.ASIDE:
        return _only_in(places), _others_left(matches) or detail
    return cause, detail


def _and_same_day(detail: str, matches: PhraseMatches) -> str:
    """Add a sentence if memory has the searched date in another spelling."""
    same = matches.similar.same_day
    note = f"#{same.seq} in memory has this day as “{same.written}”." if same else ""
    return " ".join(filter(None, [detail, note]))


def _others_left(matches: PhraseMatches) -> str:
    """Say when the last mention by a user or a tool left, while mentions by others are in
    memory.
    """
    left = matches.departures.of_others
    if left is None:
        return ""
    return (
        f"{capitalized(_WHOSE[Speaker.OTHERS])} left at step {left.step:,}. {caption(left).summary}"
    )


def _only_in(found: Mapping[Speaker, Sequence[int]]) -> str:
    return f"Only in {_places(found)}."


def _places(found: Mapping[Speaker, Sequence[int]]) -> str:
    return " and ".join(f"{_WHOSE[who]} ({seqs(found[who])})" for who in sorted(found))


def _are_in(kept: Sequence[int]) -> str:
    return f"{seqs(kept)} {'is' if len(kept) == 1 else 'are'} in memory."


def _yes(
    matches: PhraseMatches, at: int, here: Period | None, places: Sequence[int]
) -> tuple[str, str]:
    """Say which mentions the model sees, since when, and when the phrase was out of memory
    before.
    """
    first = here.first if here and here.is_in else at
    turn, since = matches.presence.turns.get(first), f"step {first:,}"
    if turn and len(turn.seqs) == 1:
        since = f"#{turn.seqs[0]}"
    elif turn is None:  # what was before is not examined
        since = f"{since} or earlier"
    inside = f" inside {matches.similar.inside}," if matches.similar.inside else ""
    cause, detail = f"Yes,{inside} since {since}.", _are_in(sorted(places))
    lost = [last + 1 for _, last in matches.presence.spans if last < first]
    if lost and turn:
        again = _came(turn, is_again=True)
        forgotten = f"Forgotten at step {lost[-1]:,}, {_went(matches, lost[-1])}"
        detail = f"{forgotten}, until {again}. {detail}"
    return cause, detail


def _over_limit(kept: Sequence[int], no_room: NoRoom | None) -> tuple[str, str]:
    """Say that the limit hides all mentions from the model."""
    sees = "it" if len(kept) == 1 else "them"
    evicts = "" if no_room else f"; the next add evicts {seqs(kept)}"
    return f"Only over the limit: {seqs(kept)}.", f"The model no longer sees {sees}{evicts}."


def _out_of_memory(matches: PhraseMatches, at: int, here: Period | None) -> str:
    """Say how the phrase left memory before a step."""
    if here and here.is_in is None:
        return "No, nothing in memory mentions it."
    if here is None or at < matches.presence.first_step:
        return f"{capitalized(_NOT_YET)}."
    if here.first == matches.presence.first_step:
        return f"No, {_no_room(matches)}."
    since = "at this step" if here.first == at else f"since step {here.first:,}"
    return f"No, forgotten {since}, {_went(matches, here.first)}."


def _later(matches: PhraseMatches, periods: Sequence[Period], at: int) -> str:
    """Say what happens to the phrase after a past step."""
    known_periods = (each for each in periods if each.why not in (_NOT_YET, _NOT_LOOKED_AT))
    later = next((each for each in known_periods if each.first > at), None)
    if later is None:
        return ""
    has_step = later.why == _no_room(matches)
    return f"Later: {later.why}." if has_step else f"Later: {later.why}, at step {later.first:,}."


def _gone(matches: PhraseMatches, step: int) -> str:
    """Say why memory did not have the phrase from a step on."""
    if step == matches.presence.first_step:
        return _no_room(matches)
    return f"forgotten {_went(matches, step)}"


def _began(matches: PhraseMatches, step: int) -> str:
    """Say which message brought the phrase into memory."""
    turn = matches.presence.turns.get(step)
    if turn is None:
        return "in memory"
    name = f"{role(turn.type, turn.has_calls)} " if turn.is_new and len(turn.seqs) == 1 else ""
    return f"{name}{_came(turn, is_again=step > matches.presence.first_step)}"


def _came(turn: TurningPoint, is_again: bool) -> str:
    if not turn.is_new:
        return f"{seqs(turn.seqs)} came back"
    return f"{seqs(turn.seqs)} said it{' again' if is_again else ''}"


def _went(matches: PhraseMatches, step: int) -> str:
    """Say at which event the last mention left memory."""
    turn = matches.presence.turns.get(step)
    if turn is None or turn.arrived is None:
        return "when the whole list was changed"
    if turn.arrived in turn.seqs:
        return f"when #{turn.arrived} had no room"
    return f"when #{turn.arrived} arrived"


def _no_room(matches: PhraseMatches) -> str:
    return f"it had no room when it was said, at step {matches.presence.first_step:,}"


def _looked_at(matches: PhraseMatches) -> str:
    """Say what limits the answer: not all mentions were searched, or no user and no tool said the
    phrase.
    """
    parts = []
    if matches.is_partial:
        parts.append(
            f"There are more than {MATCHES_MAX:,} mentions: the newest {MATCHES_MAX:,} are "
            "examined, and those in memory at this step."
        )
    if Speaker.OTHERS not in matches.all_speakers:
        no_one = "Of these, no user" if matches.is_partial else "No user"
        whose = " and ".join(_WHOSE[who] for who in sorted(matches.all_speakers))
        parts.append(f"{no_one} and no tool said it: it is found only in {whose}.")
    return " ".join(parts)
