"""Which mentions of a phrase decide whether it was in memory, however many there are.

All of them if they are few. Else the latest up to the step that is looked at and, if there is room,
those after it: what was in memory is then told of the steps for which they are enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from itertools import chain
from operator import attrgetter, or_

from django.db.models import Case, Count, F, Min, Q, QuerySet, When

from chatmemory import database, search
from chatmemory.core.messages import MessageType
from chatmemory.core.spans import Span
from chatmemory.core.speakers import Speaker, speaker_of
from chatmemory.models import Message, Stay
from chatmemory.queries.stays import stays_of_messages
from chatmemory.queries.window_rows import WindowPlace
from chatmemory.queries.windows import StoredState

MENTIONS_MAX = 500
ASKED_ONE_BY_ONE = 5_000  # messages, of which more are asked for as a range

# Who said the message of a stay.
_SPEAKER = Case(
    When(message__origin=Message.Origin.SYNTHETIC, then=Speaker.CLIENT.value),
    *[When(type=type, then=speaker_of(type).value) for type in MessageType],
)

_Columns = tuple[int, str, str]  # the seq, the type and the origin of a message
_Older = Mapping[Speaker, Sequence[WindowPlace]]  # the places of older ones, by step


@dataclass(frozen=True)
class Considered:
    """The mentions that are considered, and their stays as they began.

    `speakers` are who said those that have stays here. `present` are the mentions in memory at the
    step by who said them, of which very many have no stays here. `said_by` is who said the phrase
    at all, `count` how often, and `first_step` when those said it first who
    decide. What was in memory is known of the steps of `known`; at those that are `unread`,
    mentions came that have no stays here.
    """

    speakers: Mapping[int, Speaker]
    stays: Sequence[Stay]
    present: Mapping[Speaker, tuple[int, ...]]
    said_by: frozenset[Speaker]
    count: int
    first_step: int
    known: Span
    unread: frozenset[int] = frozenset()

    @property
    def speaker(self) -> Speaker:
        return min(self.said_by)

    @property
    def decisive(self) -> list[Stay]:
        """The stays of the messages that decide."""
        return [stay for stay in self.stays if self.speakers[stay.seq] is self.speaker]


@dataclass(frozen=True)
class _All:
    """What one query tells of all mentions: who said one, how often, and when those who decide
    said it first, as which types and origins of messages.
    """

    said_by: frozenset[Speaker]
    count: int
    first_step: int
    decisive: Q


def saying(memory_id: str, phrase: str) -> QuerySet[Message]:
    """Return all messages that contain a phrase, also those that were never said."""
    return Message.objects.filter(search.has(phrase), memory_id=memory_id)


def considered(stored: StoredState, phrase: str) -> Considered | None:
    """Return the mentions to consider at the step of a state, or None if there is no mention."""
    memory, newest = stored.memory, stored.step.last_seq
    found = saying(memory.pk, phrase).values_list("seq", "type", "origin")
    before = list(found.filter(seq__lte=newest).order_by("-seq")[: MENTIONS_MAX + 1])
    room = MENTIONS_MAX - len(before)
    has_later = room >= 0 and newest < memory.last_seq
    after = list(found.filter(seq__gt=newest).order_by("seq")[: room + 1]) if has_later else []
    if room < 0:
        return _latest(stored, phrase, before[:MENTIONS_MAX])
    if len(after) > room:
        return _first(stored, phrase, [*before, *after[:room]])
    return _every(stored, [*before, *after]) if before or after else None


def _every(stored: StoredState, columns: Sequence[_Columns]) -> Considered:
    speakers = _speakers(columns)
    stays = stays_of_messages(stored.memory.pk, speakers)
    said_by = frozenset(speakers.values())
    first_step = min(s.entered_step for s in stays if speakers[s.seq] is min(said_by))
    known = 1, stored.memory.last_step
    present = _present(stays, stored.step.n, speakers)
    return Considered(speakers, stays, present, said_by, len(columns), first_step, known)


def _first(stored: StoredState, phrase: str, columns: Sequence[_Columns]) -> Considered:
    """Consider the first mentions: those that follow arrive with the last of them, or later."""
    every, at = _all(stored.memory.pk, phrase), stored.step.n
    speakers = _speakers(columns)
    stays = stays_of_messages(stored.memory.pk, speakers)
    last = max(speakers)
    until = min(s.entered_step for s in stays if s.seq == last) - 1
    return Considered(
        speakers=speakers,
        stays=stays,
        present=_present(stays, at, speakers),
        said_by=every.said_by,
        count=every.count,
        first_step=every.first_step,
        known=(1, max(until, at, every.first_step - 1)),
    )


def _latest(stored: StoredState, phrase: str, columns: Sequence[_Columns]) -> Considered:
    """Consider the latest mentions up to the step, and the older ones that are still in memory.

    No older one was in memory after the last of them had left.
    """
    at, oldest = stored.step.n, min(seq for seq, *_ in columns)
    every = _all(stored.memory.pk, phrase)
    ended = _last_end(stored, phrase, oldest, every.decisive)
    here = _older(stored, phrase, oldest)
    gone = [] if ended is None else _left_at(stored, ended, phrase, oldest)
    before = list(chain.from_iterable(here.values()))
    speakers = _speakers(columns) | dict(gone)
    for speaker, places in here.items():
        speakers |= dict.fromkeys([place.seq for place in places[:MENTIONS_MAX]], speaker)
    read = {*_speakers(columns), *dict(gone), *(place.seq for place in before[:MENTIONS_MAX])}
    stays = stays_of_messages(stored.memory.pk, read)
    entered = [places[0].entered_step for who, places in here.items() if who is min(every.said_by)]
    since = 1 if ended is None else min([ended - 1, *entered])
    return Considered(
        speakers=speakers,
        stays=stays,
        present=_present(stays, at, speakers, here),
        said_by=every.said_by,
        count=every.count,
        first_step=every.first_step,
        known=(since, max(at, every.first_step - 1)),
        unread=frozenset([place.entered_step for place in before[MENTIONS_MAX:]]),
    )


def _all(memory_id: str, phrase: str) -> _All:
    """Read who said a phrase, how often and when. The first mention entered before all others."""
    kinds = saying(memory_id, phrase).order_by().values_list("type", "origin")
    rows = [
        (_speaker(type, origin), count, first, Q(type=type, message__origin=origin))
        for type, origin, count, first in kinds.annotate(count=Count("seq"), first=Min("seq"))
    ]
    deciding = min(speaker for speaker, *_ in rows)
    decisive = [row for row in rows if row[0] is deciding]
    first = stays_of_messages(memory_id, [min(first for _, _, first, _ in decisive)])
    return _All(
        said_by=frozenset(speaker for speaker, *_ in rows),
        count=sum(count for _, count, *_ in rows),
        first_step=min(stay.entered_step for stay in first),
        decisive=reduce(or_, (is_kind for *_, is_kind in decisive)),
    )


def _last_end(stored: StoredState, phrase: str, oldest: int, decisive: Q) -> int | None:
    """Return when a deciding mention below `oldest` last left before the step; None if none did."""
    ended = Q(seq__lt=oldest, left_step__lte=stored.step.n, left_step__gt=F("entered_step"))
    stays = Stay.objects.filter(decisive, ended, memory_id=stored.memory.pk)
    said = stays.filter(search.has(phrase, "message__text")).order_by("-left_step")
    return said.values_list("left_step", flat=True).first()


def _left_at(stored: StoredState, step: int, phrase: str, oldest: int) -> list[tuple[int, Speaker]]:
    """Return the mentions that left at a step and are older than those considered, with who said
    them: those who decide first, then by step.
    """
    left = Stay.objects.filter(memory_id=stored.memory.pk, left_step=step, seq__lt=oldest)
    left = left.filter(search.has(phrase, "message__text")).annotate(who=_SPEAKER)
    rows = left.order_by("who", "entered_step", "seq").values_list("seq", "who")
    return [(seq, Speaker(who)) for seq, who in rows[:MENTIONS_MAX]]


def _older(stored: StoredState, phrase: str, oldest: int) -> _Older:
    """Return the mentions in memory that are older than those considered: those who decide first.

    The window has been read, so only their numbers are: there can be hundreds of thousands.
    """
    places = [place for place in stored.places if place.seq < oldest]
    said = saying(stored.memory.pk, phrase).order_by().values_list("seq")
    seqs = [place.seq for place in places]
    if len(seqs) > ASKED_ONE_BY_ONE:
        said = said.filter(seq__gte=min(seqs), seq__lt=oldest)
    else:
        said = said.filter(database.in_list("seq", seqs))
    found = {seq for (seq,) in said} if seqs else set()
    places = [place for place in places if place.seq in found]
    places.sort(key=attrgetter("entered_step", "seq"))
    injected = stored.injected
    put_in = [place for place in places if place.seq in injected] if injected else []
    if put_in:
        places = [place for place in places if place.seq not in injected]
    speakers = sorted({speaker_of(place.type) for place in places})
    older = {who: [each for each in places if speaker_of(each.type) is who] for who in speakers}
    return older | ({Speaker.CLIENT: put_in} if put_in else {})


def _present(
    stays: Iterable[Stay], at: int, speakers: Mapping[int, Speaker], older: _Older | None = None
) -> dict[Speaker, tuple[int, ...]]:
    """Return the messages that were in memory after a step by who said them, also older ones."""
    before = (stay for stay in stays if stay.entered_step <= at)
    here = {stay.seq for stay in before if stay.left_step is None or stay.left_step > at}
    said_by = {who: [seq for seq in here if speakers[seq] is who] for who in Speaker}
    for who, places in (older or {}).items():
        said_by[who] += [place.seq for place in places]
    return {who: tuple(sorted(set(seqs))) for who, seqs in said_by.items() if seqs}


def _speakers(columns: Sequence[_Columns]) -> dict[int, Speaker]:
    return {seq: _speaker(type, origin) for seq, type, origin in columns}


@cache
def _speaker(type: str, origin: str) -> Speaker:
    return speaker_of(MessageType(type), origin == Message.Origin.SYNTHETIC)
