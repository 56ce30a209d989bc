"""Whether and when a phrase was in memory.

The phrase's messages are told apart by who said them. If users or tools said it, their messages
decide whether it is remembered: the assistant may only have asked for it. Otherwise the
assistant's own decide, then the system message, then what a client put into the window.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from django.db.models import QuerySet

from chatmemory.core.long_lists import seqs_of
from chatmemory.core.messages import MessageType
from chatmemory.core.spans import Span, merged
from chatmemory.core.speakers import Speaker, speaker_of
from chatmemory.ledger.changes import ChangeResult
from chatmemory.ledger.lookup import find_step
from chatmemory.models import Memory, Message, Stay
from chatmemory.queries.history import nearest
from chatmemory.queries.rows import MessageRow, StepDetail
from chatmemory.queries.stays import stays_of_messages, with_stays
from chatmemory.queries.steps import arrivals_at, step_detail

MENTIONS_MAX = 500
SHOWN = 50
TURNS_MAX = 50


@dataclass(frozen=True)
class Turn:
    """A step at which remembering began or ended, with the mentions that came or left.

    `type` and `has_calls` are those of the first of them. `arrived` is the message that was added
    at the step; `is_new` whether a mention had not been in memory before.
    """

    step: int
    seqs: tuple[int, ...]
    type: MessageType
    has_calls: bool
    arrived: int | None
    is_new: bool


@dataclass(frozen=True)
class Mentions:
    """The messages of a conversation that contain a phrase, at any step.

    `rows` are the 50 that tell most, in order of seq, and `speakers` who said each. `count` is the
    number of all; `is_capped` is whether only the latest 500 decide. `speaker` is whose messages
    decide, `spans` are the ranges of steps at which one of those was in memory, and `turns` are
    the latest beginnings and ends of spans, by step. `present` are the mentions in memory at the
    state's step by who said them. `lost` is the change that ended the last span before it, if it
    is over. If no message contains the phrase, `nearest` is a part of it that one does.

    In a simulation `present` are those in the simulated window, with drafts, and `leaving` the
    deciding ones that leave; if there are some, `lost` is the change by which the last one leaves.
    """

    rows: tuple[MessageRow, ...] = ()
    speakers: Mapping[int, Speaker] = field(default_factory=dict)
    count: int = 0
    is_capped: bool = False
    speaker: Speaker | None = None
    spans: tuple[Span, ...] = ()
    turns: Mapping[int, Turn] = field(default_factory=dict)
    first_step: int = 0
    present: Mapping[Speaker, tuple[int, ...]] = field(default_factory=dict)
    left_at: Mapping[int, int] = field(default_factory=dict)
    arrivals: Mapping[int, int] = field(default_factory=dict)
    lost: ChangeResult | None = None
    nearest: str = ""
    is_simulated: bool = False
    leaving: tuple[int, ...] = ()


def mentions_of(memory: Memory, phrase: str, at: int, detail: StepDetail | None) -> Mentions:
    """Return the messages that contain a phrase, and when they were in memory."""
    if not phrase:
        return Mentions()
    found = _saying(memory, phrase)
    newest = found.order_by("-seq").values_list("seq", "type", "origin")[: MENTIONS_MAX + 1]
    columns = list(newest)
    if not columns:
        return Mentions(nearest=nearest(memory.pk, phrase, memory.last_seq))
    is_capped = len(columns) > MENTIONS_MAX
    speakers = dict(map(_speaker, columns[:MENTIONS_MAX]))
    speaker = min(speakers.values())
    stays = stays_of_messages(memory.pk, speakers)
    decisive = [stay for stay in stays if speakers[stay.seq] is speaker]
    spans = merged((s.entered_step, (s.left_step or memory.last_step + 1) - 1) for s in decisive)
    telling = sorted(speakers, key=lambda seq: (speakers[seq], -seq))[:SHOWN]
    rows = with_stays(memory.pk, list(found.filter(seq__in=telling).order_by("seq")))
    left_at = {row.seq: stay.left_step for row in rows if (stay := row.departure(at))}
    known = {seq: step for seq, step in left_at.items() if step is not None}
    steps = _turning_steps(spans, memory.last_step)
    arrivals = arrivals_at(memory.pk, {*known.values(), *steps})
    return Mentions(
        rows=rows,
        speakers=speakers,
        count=found.count() if is_capped else len(columns),
        is_capped=is_capped,
        speaker=speaker,
        spans=spans,
        turns={step: _turn(step, decisive, spans, arrivals) for step in steps},
        first_step=min(stay.entered_step for stay in decisive),
        present=_present(stays, speakers, at),
        left_at=known,
        arrivals=arrivals,
        lost=_lost(memory, spans, at, detail),
    )


def simulated_mentions(
    mentions: Mentions,
    phrase: str,
    drafts: Sequence[MessageRow],
    kept: Container[int],
    changes: Sequence[ChangeResult],
) -> Mentions:
    """Return the mentions of a simulated state, whose window has the messages `kept`."""
    saying = [row for row in drafts if phrase and phrase.lower() in row.text.lower()]
    speakers = {**mentions.speakers, **{row.seq: speaker_of(row.type) for row in saying}}
    speaker = min(speakers.values(), default=None)
    held = [*chain(*mentions.present.values()), *(row.seq for row in saying)]
    leaving = tuple(seq for seq in held if speakers[seq] is speaker and seq not in kept)
    gone = set(leaving)
    pushing = (each for each in changes if not gone.isdisjoint(seqs_of(each.evicted)))
    return replace(
        mentions,
        rows=(*mentions.rows, *saying),
        speakers=speakers,
        count=mentions.count + len(saying),
        speaker=speaker,
        present=_by_speaker([seq for seq in held if seq in kept], speakers),
        lost=next(reversed(list(pushing)), None) if leaving else mentions.lost,
        nearest="" if saying else mentions.nearest,
        is_simulated=True,
        leaving=leaving,
    )


def change_at(memory: Memory, n: int, detail: StepDetail | None) -> ChangeResult:
    """Return what a step did. The state's own step has been read already."""
    if detail is not None and detail.row.n == n:
        return detail.change
    return step_detail(find_step(memory, n)).change


def _saying(memory: Memory, phrase: str) -> QuerySet[Message]:
    """Return all messages that contain a phrase, also those that were never said."""
    return Message.objects.filter(memory=memory, text__icontains=phrase)


def _speaker(columns: tuple[int, str, str]) -> tuple[int, Speaker]:
    seq, type, origin = columns
    return seq, speaker_of(MessageType(type), origin == Message.Origin.SYNTHETIC)


def _turning_steps(spans: Sequence[Span], last_step: int) -> set[int]:
    """Return the latest steps at which spans begin or have ended."""
    steps = [step for first, last in spans for step in (first, last + 1) if step <= last_step]
    return set(steps[-TURNS_MAX:])


def _turn(
    step: int, stays: Sequence[Stay], spans: Sequence[Span], arrivals: Mapping[int, int]
) -> Turn:
    is_beginning = any(first == step for first, _ in spans)
    moved = [s for s in stays if (s.entered_step if is_beginning else s.left_step) == step]
    seqs = tuple(dict.fromkeys(stay.seq for stay in moved))
    before = {stay.seq for stay in stays if stay.entered_step < step}
    return Turn(
        step=step,
        seqs=seqs,
        type=MessageType(moved[0].type),
        has_calls=moved[0].has_calls,
        arrived=arrivals.get(step),
        is_new=not before.issuperset(seqs),
    )


def _present(
    stays: Sequence[Stay], speakers: Mapping[int, Speaker], at: int
) -> dict[Speaker, tuple[int, ...]]:
    open_then = {
        stay.seq
        for stay in stays
        if stay.entered_step <= at and (stay.left_step is None or stay.left_step > at)
    }
    return _by_speaker(sorted(open_then), speakers)


def _by_speaker(
    seqs: Sequence[int], speakers: Mapping[int, Speaker]
) -> dict[Speaker, tuple[int, ...]]:
    return {
        each: tuple(seq for seq in seqs if speakers[seq] is each)
        for each in sorted({speakers[seq] for seq in seqs})
    }


def _lost(
    memory: Memory, spans: Sequence[Span], at: int, detail: StepDetail | None
) -> ChangeResult | None:
    """Return the change by which the phrase was lost, if it is out of memory at a step."""
    ended = [last for first, last in spans if first <= at]
    return change_at(memory, ended[-1] + 1, detail) if ended and ended[-1] < at else None
