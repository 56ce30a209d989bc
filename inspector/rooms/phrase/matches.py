"""Finds whether and when a phrase was in memory.

Memory has a phrase while a message in the window contains the phrase. If only the assistant's own
messages or system messages in the window contain the phrase, the result is "aside".

The newest 500 messages with the phrase are searched, and all messages in memory at the requested
step. So the answer for this step is always complete. For other steps, the answer can be incomplete
if more than 500 messages contain the phrase.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from django.db.models import QuerySet

from chatmemory import database, search
from chatmemory.ledger.changes import ChangeResult
from chatmemory.messages.message import MessageType
from chatmemory.messages.phrases import (
    SEARCHED,
    Speaker,
    folded,
    has_phrase,
    speaker_of,
)
from chatmemory.models import Memory, Message, Stay
from chatmemory.reading.history import nearest
from chatmemory.reading.rows import MessageDetail, StepDetail, stays_of_messages, with_stays
from chatmemory.reading.windows import StoredState
from chatmemory.recall.dates import dates_in
from chatmemory.recall.facts import is_term, runs_in
from chatmemory.recall.term_search import is_found
from inspector.conversation.state import change_at
from inspector.rooms.phrase.spans import Span, arrivals_at, clipped, merged

if TYPE_CHECKING:
    from chatmemory.reading.rows import EndedStay

MATCHES_MAX = 500
SHOWN = 50


@dataclass(frozen=True)
class TurningPoint:
    """A step at which a phrase came into memory or left memory.

    - `seqs`: the messages with the phrase that came or left at this step.
    - `type`, `has_calls`: the type of the first message in `seqs`, and whether this message has
      tool calls.
    - `arrived`: the seq of the message that this step added; None if the step added no message.
    - `is_new`: whether a message in `seqs` came into memory for the first time at this step. False
      if all messages in `seqs` came back, or if they left.
    """

    seqs: tuple[int, ...]
    type: MessageType
    has_calls: bool
    arrived: int | None
    is_new: bool


class SameDay(NamedTuple):
    """A date in memory that is the same day as the searched date, in another spelling.

    `written` is the date as the message `seq` spells it, such as "5 March 2026" if the search is
    "2026-03-05".
    """

    seq: int
    written: str


class Remembered(StrEnum):
    """Whether memory has a phrase. "aside" means that in memory, only system messages or the
    assistant's own messages contain the phrase.
    """

    IN_MEMORY = "in_memory"
    ASIDE = "aside"
    NOT_IN_MEMORY = "not_in_memory"


_ASIDE = frozenset({Speaker.ASSISTANT, Speaker.SYSTEM})


@dataclass(frozen=True)
class Presence:
    """The steps at which memory had a mention: a message with the searched phrase.

    - `first_step`: the step at which the first known mention came into memory; 0 if no message
      contains the phrase.
    - `spans`: the ranges of steps with a mention in memory.
    - `turns`: maps a step at which the phrase came into memory or left memory to its
      `TurningPoint`.
    """

    first_step: int = 0
    spans: tuple[Span, ...] = ()
    turns: Mapping[int, TurningPoint] = field(default_factory=dict)


@dataclass(frozen=True)
class PhraseDepartures:
    """How mentions (messages with the searched phrase) left memory.

    - `left_at`: maps the seq of a mention to the step at which the mention last left. Only for
      mentions in `PhraseMatches.rows` that are not in memory at the requested step.
    - `arrivals`: maps a step to the seq of the message that this step added. Only for the steps in
      `left_at` and in `Presence.turns`.
    - `last`: the change by which the last mention left; None while memory has a mention. In a
      simulation, the last change by which a mention leaves.
    - `of_others`: the change by which the last mention by a user or a tool left. Only set if memory
      still has mentions, all by the assistant or the system; else None.
    """

    left_at: Mapping[int, int] = field(default_factory=dict)
    arrivals: Mapping[int, int] = field(default_factory=dict)
    last: ChangeResult | None = None
    of_others: ChangeResult | None = None


@dataclass(frozen=True)
class Similar:
    """Texts that resemble a searched phrase, for hints in the answer.

    - `nearest`: a word of the history that resembles a word of the phrase; "" if a message contains
      the phrase.
    - `inside`: a longer term in memory that contains the phrase, such as "A-1182" for the phrase
      "118". "" if memory also has the phrase by itself.
    - `same_day`: the searched date in another spelling in memory. None if the phrase is not a date,
      or if memory has the phrase itself.
    """

    nearest: str = ""
    inside: str = ""
    same_day: SameDay | None = None


@dataclass(frozen=True)
class PhraseMatches:
    """The mentions of a phrase (messages that contain the phrase), and when they were in memory.

    - `speakers`: who said each known mention, by seq.
    - `is_partial`: whether there are more than 500 mentions. Then only the newest 500 and those in
      memory at the requested step are known.
    - `rows`: the most important known mentions (at most 50), sorted by seq. Mentions by users and
      tools are the most important, and newer mentions are more important than older mentions.
    - `present`: the seqs of the mentions in memory at the requested step, by speaker.
    - `presence`, `departures`: when mentions were in memory, and how they left.
    - `leaving`: the seqs of the mentions that leave in a simulation.

    In a simulation, `speakers`, `rows` and `present` also have drafts with the phrase. `present` is
    then about simulated memory, but `presence` is still about stored memory.
    """

    speakers: Mapping[int, Speaker] = field(default_factory=dict)
    is_partial: bool = False
    rows: tuple[MessageDetail, ...] = ()
    present: Mapping[Speaker, tuple[int, ...]] = field(default_factory=dict)
    presence: Presence = Presence()
    departures: PhraseDepartures = PhraseDepartures()
    similar: Similar = Similar()
    is_simulated: bool = False
    leaving: tuple[int, ...] = ()

    @property
    def count(self) -> int:
        """The number of known mentions. If `is_partial` is True, the conversation can have more
        mentions.
        """
        return len(self.speakers)

    @property
    def all_speakers(self) -> set[Speaker]:
        return set(self.speakers.values())

    @property
    def in_memory(self) -> tuple[int, ...]:
        """The seqs of the messages in memory that contain the phrase, in order."""
        return tuple(sorted(seq for seqs in self.present.values() for seq in seqs))

    def visible_mentions(self, hidden: Collection[int] = ()) -> dict[Speaker, tuple[int, ...]]:
        """Return the seqs of the messages that contain the phrase and that the model sees, by
        speaker.

        `hidden` are seqs of messages in memory that the model does not see, such as messages over a
        lowered limit. A speaker without visible messages is left out.
        """
        found = {
            who: tuple(seq for seq in seqs if seq not in hidden)
            for who, seqs in self.present.items()
        }
        return {who: seqs for who, seqs in found.items() if seqs}

    def remembered(self, hidden: Collection[int] = ()) -> Remembered:
        visible = self.visible_mentions(hidden)
        if not visible:
            return Remembered.NOT_IN_MEMORY
        return Remembered.ASIDE if _ASIDE.issuperset(visible) else Remembered.IN_MEMORY


def phrase_matches(stored: StoredState, phrase: str, detail: StepDetail | None) -> PhraseMatches:
    """Find the messages that contain a phrase, and when they were in memory.

    `detail` is the step that the page shows, or None if the caller has not read it.
    """
    memory, at = stored.memory, stored.step.n
    newest, is_partial = _newest(memory.pk, phrase)
    if not newest:
        similar = nearest(memory.pk, phrase, memory.last_seq)
        return PhraseMatches(similar=Similar(similar, same_day=_same_day(stored, phrase)))
    here = _in_window(stored, phrase) if is_partial else {}
    speakers = newest | here
    older = sorted(here.keys() - newest.keys(), key=lambda seq: (here[seq], -seq))[:MATCHES_MAX]
    stays = stays_of_messages(memory.pk, [*newest, *older])
    first_step = min((s.entered_step for s in stays if s.seq in newest), default=at)
    spans = clipped(_spans(stays, memory.last_step), (first_step, memory.last_step))
    rows = _telling(memory.pk, speakers, stays)
    left_at = {row.seq: stay.left_step for row in rows if (stay := row.departure(at))}
    left_steps = {seq: step for seq, step in left_at.items() if step is not None}
    # If there are older mentions, it is unknown what memory had before the first step.
    begins = {first for first, _ in spans} - ({first_step} if is_partial else set())
    ends = {last + 1 for _, last in spans if last < memory.last_step}
    arrivals = arrivals_at(memory.pk, {*left_steps.values(), *begins, *ends})
    present = _present(stays, at, speakers, here)
    last = of_others = None
    if not present:
        last = _lost(memory, spans, at, detail)
    elif _ASIDE.issuperset(present):
        by_others = [stay for stay in stays if speakers[stay.seq] is Speaker.OTHERS]
        of_others = _lost(memory, _spans(by_others, memory.last_step), at, detail)
    return PhraseMatches(
        speakers,
        is_partial,
        rows,
        present,
        Presence(first_step, spans, _turns(begins, ends, stays, arrivals)),
        PhraseDepartures(left_steps, arrivals, last, of_others),
        Similar(
            inside=_inside(phrase, [row for row in rows if row.is_in_window(at)]),
            same_day=None if present else _same_day(stored, phrase),
        ),
    )


def _spans(stays: Iterable[Stay], last_step: int) -> tuple[Span, ...]:
    return merged((stay.entered_step, (stay.left_step or last_step + 1) - 1) for stay in stays)


def _same_day(stored: StoredState, phrase: str) -> SameDay | None:
    """Return the searched day as the newest message in memory spells it. Return None if the phrase
    is not a date.
    """
    dates = list(dates_in(phrase))
    if len(dates) != 1:
        return None
    in_window = database.in_list("seq", (row.seq for row in stored.rows))
    texts = Message.objects.filter(in_window, memory_id=stored.memory.pk).order_by("-seq")
    for seq, text in texts.values_list("seq", "text"):
        for date, written in dates_in(text[:SEARCHED]).items():
            if date.is_same_day(dates[0]):
                return SameDay(seq, written)
    return None


def _inside(phrase: str, present: Sequence[MessageDetail]) -> str:
    """Return a longer term that contains the phrase, if messages have the phrase only within such
    terms. Otherwise return "".
    """
    if not (is_term(phrase) or phrase.isdecimal()):
        return ""
    longer = ""
    for row in present:
        if is_found(folded(phrase), [folded(row.text)]):
            return ""
        found = (run for run in sorted(runs_in(row.text)) if folded(phrase) in folded(run))
        longer = longer or next(found, "")
    return longer


def simulated_matches(
    matches: PhraseMatches,
    phrase: str,
    drafts: Sequence[MessageDetail],
    kept: Container[int],
    changes: Sequence[ChangeResult],
) -> PhraseMatches:
    """Return the matches after a simulation. `matches` are those in the stored conversation.

    `drafts` are the messages that the simulation adds, and `changes` are the changes that it makes.
    `kept` are the seqs of the messages in simulated memory.
    """
    drafted = [row for row in drafts if has_phrase(row.text, phrase)]
    draft_speakers = {row.seq: speaker_of(row.type) for row in drafted}
    speakers = {**matches.speakers, **draft_speakers}
    mentions = {
        who: [
            *matches.present.get(who, ()),
            *[seq for seq in draft_speakers if draft_speakers[seq] is who],
        ]
        for who in sorted({*matches.present, *draft_speakers.values()})
    }
    leaving = tuple([seq for seqs in mentions.values() for seq in seqs if seq not in kept])
    present = {who: tuple([seq for seq in seqs if seq in kept]) for who, seqs in mentions.items()}
    departed = set(leaving)
    pushing = (
        each for each in changes if not departed.isdisjoint(left.seq for left in each.evicted)
    )
    departures, similar = matches.departures, matches.similar
    if leaving:
        departures = replace(departures, last=next(reversed(list(pushing)), None))
    return replace(
        matches,
        speakers=speakers,
        rows=(*matches.rows, *drafted),
        present={who: seqs for who, seqs in present.items() if seqs},
        departures=departures,
        similar=replace(similar, nearest="") if drafted else similar,
        is_simulated=True,
        leaving=tuple(sorted(leaving)),
    )


def _newest(memory_id: str, phrase: str) -> tuple[dict[int, Speaker], bool]:
    """Return who said each of the newest mentions, by seq, and whether there are older mentions."""
    found = _speakers_of(_saying(memory_id, phrase).order_by("-seq")[: MATCHES_MAX + 1])
    newest = dict(list(found.items())[:MATCHES_MAX])
    return newest, len(found) > len(newest)


def _in_window(stored: StoredState, phrase: str) -> dict[int, Speaker]:
    """Return who said each mention in memory at the step, by seq."""
    in_window = database.in_list("seq", (row.seq for row in stored.rows))
    return _speakers_of(_saying(stored.memory.pk, phrase).filter(in_window))


def _saying(memory_id: str, phrase: str) -> QuerySet[Message]:
    """Return all messages that contain a phrase, including those that are not in history."""
    return Message.objects.filter(search.has(phrase), memory_id=memory_id)


def _speakers_of(messages: QuerySet[Message]) -> dict[int, Speaker]:
    return {
        seq: speaker_of(MessageType(type), origin == Message.Origin.SYNTHETIC)
        for seq, type, origin in messages.values_list("seq", "type", "origin")
    }


def _telling(
    memory_id: str, speakers: Mapping[int, Speaker], stays: Sequence[EndedStay]
) -> tuple[MessageDetail, ...]:
    """Return the most important mentions: first the newest by users and tools, then those by
    others.
    """
    telling = sorted(speakers, key=lambda seq: (speakers[seq], -seq))[:SHOWN]
    rows = Message.objects.filter(memory_id=memory_id, seq__in=telling).order_by("seq")
    return with_stays(memory_id, list(rows), stays)


def _present(
    stays: Sequence[Stay], at: int, speakers: Mapping[int, Speaker], known: Iterable[int]
) -> dict[Speaker, tuple[int, ...]]:
    """Return the seqs of the mentions in memory after step `at`, by speaker. The mentions `known`
    are in memory, too.
    """
    before = (stay for stay in stays if stay.entered_step <= at)
    here = {s.seq for s in before if s.left_step is None or s.left_step > at}.union(known)
    by_speaker = {who: sorted(seq for seq in here if speakers[seq] is who) for who in Speaker}
    return {who: tuple(seqs) for who, seqs in by_speaker.items() if seqs}


def _turns(
    begins: Collection[int],
    ends: Collection[int],
    stays: Sequence[Stay],
    arrivals: Mapping[int, int],
) -> dict[int, TurningPoint]:
    """Return the turning points at the steps where spans begin or end. `stays` are those of
    mentions.
    """
    entering: dict[int, list[Stay]] = defaultdict(list)
    left: dict[int | None, list[Stay]] = defaultdict(list)
    first: dict[int, int] = {}
    for stay in stays:
        entering[stay.entered_step].append(stay)
        left[stay.left_step].append(stay)
        first.setdefault(stay.seq, stay.entered_step)
    moved = {step: entering[step] for step in begins} | {step: left[step] for step in ends}
    return {
        step: TurningPoint(
            seqs=tuple(dict.fromkeys(stay.seq for stay in these)),
            type=MessageType(these[0].type),
            has_calls=these[0].has_calls,
            arrived=arrivals.get(step),
            is_new=any(first[stay.seq] == step for stay in these),
        )
        for step, these in moved.items()
    }


def _lost(
    memory: Memory, spans: Sequence[Span], at: int, detail: StepDetail | None
) -> ChangeResult | None:
    """Return the change by which the phrase left memory; None if memory has the phrase at step
    `at`.
    """
    ended = [last for first, last in spans if first <= at]
    return change_at(memory, ended[-1] + 1, detail) if ended and ended[-1] < at else None
