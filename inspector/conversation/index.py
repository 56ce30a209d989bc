"""Presents the index of exact terms: its row in the memory pane, and its part of the panel. The
index is a message that lists terms of messages which left memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from django.urls import reverse

from chatmemory.explain.wording import counted
from chatmemory.ledger.changes import ChangeResult
from chatmemory.messages.tombstones import is_tombstone
from chatmemory.reading.indexes import IndexInMemory
from chatmemory.reading.windows import MessageView
from chatmemory.recall.index import Index, Row, index_of
from inspector.shell.state import ConversationState

UNFOLDED = 8  # terms of a list; the others are folded


class IndexTerms:
    """The exact terms of an index, each with the number of the last message that contained the
    term.

    - `first` are the terms that are shown at once, and `others` the terms behind a click. Both are
      grouped by label, the word that messages use for a term, such as "order number".
    - `fallen` are terms for which the index message has no room.
    - `left_out` are terms that somebody removed from the index message.

    With a `source`, only the terms of the message with this number are included.
    """

    def __init__(self, index: Index, source: int | None = None) -> None:
        self.left = index.left
        self.listed = _terms_of(index.listed, source)
        unlisted = _terms_of(index.rows[index.shown :], source)
        self.fallen = [row for row in unlisted if not row.is_left_out]
        self.left_out = [row for row in unlisted if row.is_left_out]
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


class TermChoice(NamedTuple):
    """A term of the index that somebody can leave out, or list again if the term `is_left_out`.
    `address` is the URL of a preview of this change.
    """

    term: str
    is_left_out: bool
    address: str


def choices_of(shown: IndexInMemory, terms: IndexTerms, memory_id: str) -> list[TermChoice]:
    """Return a choice for each term that can be left out of the index in memory, or be listed
    again. Redacted terms have no choice.
    """
    numbers = {row.term: number for number, row in enumerate(shown.index.rows, 1)}
    return [
        TermChoice(
            row.term,
            row.is_left_out,
            reverse("inspector:index-term", args=[memory_id, shown.seq, numbers[row.term]]),
        )
        for row in (*terms.left_out, *terms.listed)
        if not is_tombstone(row.term)
    ]


class IndexPreview(NamedTuple):
    """The effect of leaving a term out of the index, or of listing the term again.

    `before` and `after` are the tokens of the index before and after the change. `others` are the
    terms that the index would list only after the change.
    """

    before: int
    after: int
    others: tuple[str, ...]


def index_preview(change: ChangeResult) -> IndexPreview:
    """Return how `change`, such as leaving a term out, would change the index message."""
    before, after = (
        next((found for each in entries if (found := index_of(each.message))), Index())
        for entries in ([each.entry for each in change.evicted], change.arrived)
    )
    known = {row.term for row in before.listed}
    others = tuple(row.term for row in after.listed if row.term not in known)
    return IndexPreview(change.lost, change.gained, others)


class IndexRow:
    """The row of the index in the memory pane. `tokens` is the size of the index, and `selected`
    the number of the selected message.
    """

    def __init__(self, state: ConversationState, index: Index, place: MessageView) -> None:
        self.seq, self.tokens = place.seq, place.tokens
        self.terms = IndexTerms(index)
        self.selected = state.query.msg
        self.is_selected = place.seq == self.selected
        self.is_stored = not state.is_index_new
        self.is_new = state.step.n > 0 and place.entered_step == state.step.n

    @property
    def summary(self) -> str:
        """The size of the index in words: `3 exact terms of 12 messages that left memory; 2 more
        terms not listed`.
        """
        terms, fallen = self.terms, len(self.terms.fallen)
        listed = f"{counted(len(terms.listed), 'exact term')} of {counted(terms.left, 'message')}"
        more = f"; {counted(fallen, 'more term')} not listed" if fallen else ""
        return f"{listed} that left memory{more}"


def by_label(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Group terms by label, the word that messages use for a term, such as "order number". Labels
    and terms keep their order; terms without a label are under "".
    """
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row.label, []).append(row)
    return found


def _terms_of(rows: Sequence[Row], source: int | None) -> list[Row]:
    return [row for row in rows if source in (None, *row.sources)]
