"""Whether and when a phrase was in memory.

The phrase's messages are told apart by who said them. If users or tools said it, their messages
decide whether it is remembered: the assistant may only have asked for it. Otherwise the
assistant's own decide, then the system message, then what a client put into the window.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace

from chatmemory.core.messages import MessageType
from chatmemory.core.phrases import has_phrase
from chatmemory.core.spans import Span, clipped, merged
from chatmemory.core.speakers import Speaker, speaker_of
from chatmemory.ledger.changes import ChangeResult
from chatmemory.ledger.lookup import find_step
from chatmemory.models import Memory, Stay
from chatmemory.queries.considered import Considered, considered, saying
from chatmemory.queries.history import nearest
from chatmemory.queries.rows import MessageRow, StepDetail
from chatmemory.queries.stays import with_these_stays
from chatmemory.queries.steps import arrivals_at, step_detail
from chatmemory.queries.windows import StoredState

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

    `rows` are the 50 that tell most of those considered (see `considered`), in order of seq, and
    `speakers` who said each. `count` is the number of all, and `said_by` who said one of them: the
    first of these decides. `spans` are the ranges of steps at which one of the deciding messages
    was in memory: those of the steps that are `known`, which are a part if it `is_partial`. `turns`
    are their latest beginnings and ends, and those around the state's step, by step. `first_step`
    is when those who decide said it first. `present` are the mentions in memory at the state's step
    by who said them. `lost` is the change that ended the last span before it, if it is over. If no
    message contains the phrase, `nearest` is a part of it that one does.

    In a simulation `present` are those in the simulated window, with drafts, and `leaving` the
    deciding ones that leave; if there are some, `lost` is the change by which the last one leaves.
    """

    rows: tuple[MessageRow, ...] = ()
    speakers: Mapping[int, Speaker] = field(default_factory=dict)
    count: int = 0
    said_by: frozenset[Speaker] = frozenset()
    spans: tuple[Span, ...] = ()
    known: Span = (1, 0)
    is_partial: bool = False
    turns: Mapping[int, Turn] = field(default_factory=dict)
    first_step: int = 0
    present: Mapping[Speaker, tuple[int, ...]] = field(default_factory=dict)
    left_at: Mapping[int, int] = field(default_factory=dict)
    arrivals: Mapping[int, int] = field(default_factory=dict)
    lost: ChangeResult | None = None
    nearest: str = ""
    is_simulated: bool = False
    leaving: tuple[int, ...] = ()

    @property
    def speaker(self) -> Speaker | None:
        """Whose messages decide."""
        return min(self.said_by, default=None)


def mentions_of(stored: StoredState, phrase: str, detail: StepDetail | None) -> Mentions:
    """Return the messages that contain a phrase, and when they were in memory."""
    if not phrase:
        return Mentions()
    memory, at = stored.memory, stored.step.n
    found = considered(stored, phrase)
    if found is None:
        return Mentions(nearest=nearest(memory.pk, phrase, memory.last_seq))
    speakers, decisive = found.speakers, found.decisive
    stayed = ((s.entered_step, (s.left_step or memory.last_step + 1) - 1) for s in decisive)
    spans = clipped(merged(stayed), found.known)
    telling = sorted({stay.seq for stay in found.stays}, key=lambda seq: (speakers[seq], -seq))[
        :SHOWN
    ]
    told = saying(memory.pk, phrase).filter(seq__in=telling).order_by("seq")
    rows = with_these_stays(memory.pk, list(told), found.stays)
    left_at = {row.seq: stay.left_step for row in rows if (stay := row.departure(at))}
    known = {seq: step for seq, step in left_at.items() if step is not None}
    steps = _turning_steps(spans, found, at)
    arrivals = arrivals_at(memory.pk, {*known.values(), *steps})
    return Mentions(
        rows=rows,
        speakers=speakers,
        count=found.count,
        said_by=found.said_by,
        spans=spans,
        known=found.known,
        is_partial=found.known[0] > found.first_step or found.known[1] < memory.last_step,
        turns={step: _turn(step, decisive, spans, arrivals) for step in steps},
        first_step=found.first_step,
        present=found.present,
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
    drafted = [row for row in drafts if phrase and has_phrase(row.text, phrase)]
    said = {row.seq: speaker_of(row.type) for row in drafted}
    said_by = mentions.said_by.union(said.values())
    held = {
        who: [*mentions.present.get(who, ()), *[seq for seq in said if said[seq] is who]]
        for who in sorted({*mentions.present, *said.values()})
    }
    decisive = held.get(min(said_by), ()) if said_by else ()
    leaving = tuple([seq for seq in decisive if seq not in kept])
    present = {who: tuple([seq for seq in seqs if seq in kept]) for who, seqs in held.items()}
    gone = set(leaving)
    pushing = (each for each in changes if not gone.isdisjoint(left.seq for left in each.evicted))
    return replace(
        mentions,
        rows=(*mentions.rows, *drafted),
        speakers={**mentions.speakers, **said},
        count=mentions.count + len(drafted),
        said_by=said_by,
        present={who: seqs for who, seqs in present.items() if seqs},
        lost=next(reversed(list(pushing)), None) if leaving else mentions.lost,
        nearest="" if drafted else mentions.nearest,
        is_simulated=True,
        leaving=leaving,
    )


def change_at(memory: Memory, n: int, detail: StepDetail | None) -> ChangeResult:
    """Return what a step did. The state's own step has been read already."""
    if detail is not None and detail.row.n == n:
        return detail.change
    return step_detail(find_step(memory, n)).change


def _turning_steps(spans: Sequence[Span], found: Considered, at: int) -> set[int]:
    """Return the latest steps at which spans begin or have ended, and those around a step.

    A span that reaches to the edge of what is known may have begun before or go on.
    """
    first_known, last_known = found.known
    begins = [first for first, _ in spans if first > first_known or first <= found.first_step]
    begins = [first for first in begins if first not in found.unread]
    steps = sorted([*begins, *(last + 1 for _, last in spans if last < last_known)])
    here = bisect_right(steps, at)
    return {*steps[-TURNS_MAX:], *steps[max(0, here - TURNS_MAX) : here + 1]}


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


def _lost(
    memory: Memory, spans: Sequence[Span], at: int, detail: StepDetail | None
) -> ChangeResult | None:
    """Return the change by which the phrase was lost, if it is out of memory at a step."""
    ended = [last for first, last in spans if first <= at]
    return change_at(memory, ended[-1] + 1, detail) if ended and ended[-1] < at else None
