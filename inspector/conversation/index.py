"""The index of exact terms on the page: its row in memory, and its part of the panel."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from chatmemory.explain.wording import counted
from chatmemory.reading.windows import MessageView
from chatmemory.recall.index import Index, Row
from inspector.shell.state import ConversationState

UNFOLDED = 8  # terms of a list; the others are folded


class IndexTerms:
    """The terms of an index by label, each with the seq of its last message.

    The `first` ones are shown, the `others` folded. `fallen` are terms that the index remembers and
    does not list. With a `source`, only the terms of that message.
    """

    def __init__(self, index: Index, source: int | None = None) -> None:
        self.left = index.left
        self.listed = _terms_of(index.listed, source)
        self.fallen = _terms_of(index.rows[index.shown :], source)
        self.is_of_message = source is not None

    @property
    def first(self) -> dict[str, list[Row]]:
        return by_label(self.listed[:UNFOLDED])

    @property
    def others(self) -> dict[str, list[Row]]:
        return by_label(self.listed[UNFOLDED:])

    @property
    def fallen_by_label(self) -> dict[str, list[Row]]:
        return by_label(self.fallen)


class IndexRow:
    """The row of the index in the memory pane. `tokens` are what it takes of the limit, and
    `selected` is the seq of the selected message.
    """

    def __init__(self, state: ConversationState, index: Index, place: MessageView) -> None:
        self.seq, self.tokens = place.seq, place.tokens
        self.terms = IndexTerms(index)
        self.selected = state.query.msg
        self.is_selected = place.seq == self.selected
        self.is_stored = not state.is_index_new
        self.is_new = state.at > 0 and place.entered_step == state.at

    @property
    def summary(self) -> str:
        """The number of the terms, and of the messages that the index stands for."""
        terms, fallen = self.terms, len(self.terms.fallen)
        listed = f"{counted(len(terms.listed), 'exact term')} of {counted(terms.left, 'message')}"
        return f"{listed} that left{f'; {fallen:,} more not listed' if fallen else ''}"


def by_label(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Return terms by label, the best label first; terms without a label are under ""."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row.label, []).append(row)
    return found


def _terms_of(rows: Sequence[Row], source: int | None) -> list[Row]:
    return [row for row in rows if source in (None, *row.sources)]
