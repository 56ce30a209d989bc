"""The memory pane: what the model sees, in its order, and what just left."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from chatmemory import queries
from chatmemory.core.messages import MessageType
from chatmemory.queries import Departure, WindowPlace
from inspector.conversation.rows import (
    Elsewhere,
    Ghosts,
    Kept,
    css_of,
    ghost_note,
    is_code,
    pairing,
)
from inspector.conversation.state import Moment
from inspector.templatetags.inspector import SHOWN, glyph

MEMORY_SIZE = 100
GHOSTS_MOST = 5


class MemoryPane:
    def __init__(self, moment: Moment) -> None:
        self._moment = moment
        self._rows = moment.window.rows
        self._drafts = {draft.seq for draft in moment.drafts}

    @cached_property
    def head(self) -> tuple[WindowPlace, ...]:
        """What is pinned above the rest: a leading system message."""
        first = self._rows[:1]
        return first if first and first[0].type is MessageType.SYSTEM else ()

    @property
    def system(self) -> list[Kept]:
        return self._kept(self.head, self._overhead, "led--sys")

    @cached_property
    def messages(self) -> list[Kept]:
        """The rows behind the system message, or a run of them."""
        past = self._overhead + sum(self._cost(row) for row in self._rows[: self._run.start])
        return self._kept(self._rows[self._run], past)

    @property
    def earlier(self) -> Elsewhere | None:
        rows = self._rows[len(self.head) : self._run.start]
        return _elsewhere(rows, rows[-1].seq) if rows else None

    @property
    def later(self) -> Elsewhere | None:
        rows = self._rows[self._run.stop :]
        return _elsewhere(rows, rows[0].seq) if rows else None

    @property
    def next_to_leave(self) -> WindowPlace | None:
        rows = self._rows[len(self.head) :]
        return rows[0] if rows and self._moment.is_live and self._moment.policy else None

    @property
    def room(self) -> int | None:
        """What is free under the limit, in the policy's unit."""
        limit = self._moment.limit
        return None if limit is None else max(0, limit - self._moment.load)

    @property
    def bar_width(self) -> int:
        return self._moment.limit or max(1, self._moment.load)

    @property
    def ghosts(self) -> Ghosts | None:
        departures = self._moment.view.departures if self._moment.view else ()
        if not departures:
            return None
        rows = tuple(map(self._ghost, departures[:GHOSTS_MOST]))
        total = sum(departure.tokens for departure in departures)
        return Ghosts(rows, len(departures) - len(rows), -total)

    @property
    def ghosts_when(self) -> str:
        if self._moment.is_simulation:
            return "if this is added"
        arrivals = self._moment.view.arrivals if self._moment.view else ()
        if len(arrivals) == 1:
            return f"when #{arrivals[0].seq} arrived"
        return f"at step {self._moment.at:,}"

    @cached_property
    def _run(self) -> slice:
        """Which rows are shown below the head: the last, or those around the chosen message."""
        first, end = len(self.head), len(self._rows)
        chosen = next((i for i, row in enumerate(self._rows) if row.seq == self._moment.msg), end)
        stop = min(end, max(chosen + MEMORY_SIZE // 2, first + MEMORY_SIZE))
        return slice(max(first, stop - MEMORY_SIZE), stop)

    @cached_property
    def _texts(self) -> dict[int, str]:
        """What the rows say; of long texts the beginning, and all of those found."""
        moment = self._moment
        known = {r.seq: r.text for r in (*moment.transcript.rows, *moment.found, *moment.drafts)}
        wanted = {row.seq for row in (*self.head, *self._rows[self._run])} - known.keys()
        return known | queries.beginnings(moment.memory.id, wanted, SHOWN + 1)

    @property
    def _overhead(self) -> int:
        return self._moment.policy.overhead if self._moment.policy else 0

    def _cost(self, row: WindowPlace) -> int:
        return self._moment.policy.cost(row.tokens) if self._moment.policy else row.tokens

    def _kept(self, rows: Sequence[WindowPlace], past: int, css: str = "") -> list[Kept]:
        """`past` is what the rows above weigh."""
        kept = []
        for i, row in enumerate(rows):
            kept.append(self._row(row, css_of(css, pairing(rows, i)), past))
            past += self._cost(row)
        return kept

    def _row(self, row: WindowPlace, css: str, past: int) -> Kept:
        moment = self._moment
        is_draft = row.seq in self._drafts
        classes = css_of(
            css,
            row.seq == moment.msg and "is-sel",
            moment.view is not None and row.entered_step == moment.at and "is-new",
            is_draft and "is-draft",
            row.seq in moment.related and "is-rel",
        )
        return Kept(
            seq=row.seq,
            glyph=glyph(row.type, row.has_calls),
            css=classes,
            text=self._texts[row.seq],
            is_code=is_code(row.type, row.has_calls),
            amount=row.tokens,
            past=past,
            this=self._cost(row),
            is_draft=is_draft,
        )

    def _ghost(self, departure: Departure) -> Kept:
        return Kept(
            seq=departure.seq,
            glyph=glyph(departure.type, departure.has_calls),
            css=css_of(departure.seq == self._moment.msg and "is-sel"),
            text=departure.text,
            is_code=is_code(departure.type, departure.has_calls),
            amount=-departure.tokens,
            past=0,
            this=0,
            note=ghost_note(departure),
        )


def _elsewhere(rows: Sequence[WindowPlace], seq: int) -> Elsewhere:
    return Elsewhere(len(rows), sum(row.tokens for row in rows), seq)
