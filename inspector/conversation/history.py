"""The history pane: what was said, with what is in memory marked."""

from __future__ import annotations

from functools import cached_property

from chatmemory.core.messages import MessageType
from chatmemory.explain import role
from chatmemory.queries import MessageRow
from inspector.conversation.rows import HistoryRow, css_of, pairing
from inspector.conversation.state import Moment
from inspector.templatetags.inspector import glyph


class HistoryPane:
    def __init__(self, moment: Moment) -> None:
        self._moment = moment

    @property
    def has_earlier(self) -> bool:
        return self._moment.transcript.has_earlier

    @property
    def has_later(self) -> bool:
        return self._moment.transcript.has_later

    @property
    def first(self) -> int:
        return self._moment.transcript.rows[0].seq

    @property
    def last(self) -> int:
        return self._moment.transcript.rows[-1].seq

    @cached_property
    def rows(self) -> list[HistoryRow]:
        """What was said, then what is only tried; the horizon is where memory starts."""
        rows: list[HistoryRow] = []
        for i, row in enumerate(self._moment.transcript.rows):
            is_horizon = row.seq == self._horizon and bool(rows) and not rows[-1].is_in
            rows.append(self._row(row, pairing(self._moment.transcript.rows, i), is_horizon))
        return rows + [self._row(draft, "is-draft") for draft in self._moment.drafts]

    @property
    def around(self) -> tuple[int | None, int | None]:
        """The messages before and after the chosen one, in this part of the history."""
        seqs = [said.row.seq for said in self.rows]
        if self._moment.msg not in seqs:
            return None, None
        i = seqs.index(self._moment.msg)
        return seqs[i - 1] if i else None, seqs[i + 1] if i + 1 < len(seqs) else None

    @cached_property
    def _horizon(self) -> int | None:
        """The oldest message in memory, system messages aside."""
        rows = (r.seq for r in self._moment.window.rows if r.type is not MessageType.SYSTEM)
        return min(rows, default=None)

    def _row(self, row: MessageRow, css: str, is_horizon: bool = False) -> HistoryRow:
        moment = self._moment
        is_in = row.seq in moment.in_window
        leaves_now = moment.leaves_now(row)
        classes = css_of(
            "is-in" if is_in else "is-out",
            css,
            leaves_now and "is-leaving",
            row.seq == moment.msg and "is-sel",
            row.seq in moment.hits and "is-hit",
            row.seq in moment.related and "is-rel",
        )
        return HistoryRow(
            row=row,
            glyph=glyph(row.type, row.has_calls),
            role=role(row.type, row.has_calls),
            css=classes,
            tag=moment.tag(row),
            is_in=is_in,
            leaves_now=leaves_now,
            is_horizon=is_horizon,
        )
