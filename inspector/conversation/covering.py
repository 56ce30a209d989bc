"""Chooses which messages of memory a new summary will replace. Shows all messages of memory as a
row of cells, in which the chosen messages are marked.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property

from chatmemory import MessageType
from chatmemory.explain.wording import counted
from chatmemory.reading.windows import MessageView, WindowView
from inspector.conversation.looks import STYLES, css_of, with_ends

# The most cells for all of memory, and the number of last messages that are left out by default.
CELLS, LEFT_OUT = 120, 4


class Covering:
    """The messages that a summary will replace: from position `first` to position `last` of a
    window, counted from 1.

    If `first` is larger than `last`, both are swapped. By default, the summary replaces all
    messages except a leading system message and the last four messages. If the first of these four
    is a tool result, its tool call stays, too.
    """

    def __init__(
        self, window: WindowView, first: int | None = None, last: int | None = None
    ) -> None:
        self._rows = window.in_order
        self.step, self.count = window.step, len(self._rows)
        if first is None or last is None:
            first, last = 2 if window.system_at_head else 1, self._end()
        ends = (min(max(end, 1), max(self.count, 1)) for end in (first, last))
        self.first, self.last = sorted(ends)

    def _end(self) -> int:
        end = max(self.count - LEFT_OUT, 0)
        while end and self._rows[end].type is MessageType.TOOL_EXECUTION_RESULT:
            end -= 1
        return end

    @classmethod
    def of_seqs(cls, window: WindowView, seqs: Collection[int]) -> Covering:
        """Return a `Covering` from the first to the last message in the window whose number is in
        `seqs`. If the window has no such message, return the default `Covering`.
        """
        found = [i for i, row in enumerate(window.in_order, 1) if row.seq in seqs]
        return cls(window, found[0], found[-1]) if found else cls(window)

    @property
    def _chosen(self) -> tuple[MessageView, ...]:
        return self._rows[self.first - 1 : self.last]

    @property
    def seqs(self) -> list[int]:
        return [row.seq for row in self._chosen]

    @property
    def words(self) -> str:
        """The chosen messages in words: `#2 to #17: 16 messages, 1,204 tokens. 5 other
        messages in memory.`"""
        if not self.count:
            return "Memory is empty."
        first, *_, last = [*self.seqs, self.seqs[-1]]
        size = counted(len(self.seqs), "message")
        tokens = sum(row.tokens for row in self._chosen)
        stay = counted(self.count - len(self.seqs), "other message")
        return f"#{first:,} to #{last:,}: {size}, {tokens:,} tokens. {stay} in memory."

    @cached_property
    def cells(self) -> list[tuple[str, str]]:
        """The cells of the row, each as its CSS classes and its words, such as `#12 User, 88 tok`.

        With more than CELLS messages, each cell stands for several messages. Such a cell is marked
        as leaving if its first message will be replaced.
        """
        each = -(-self.count // CELLS) or 1
        starts = range(0, self.count, each)
        lives = ["is-leaving" if self.first <= i + 1 <= self.last else "is-in" for i in starts]
        return [
            (css_of(css, self._look(start, each)), self._words(start, each))
            for start, css in zip(starts, with_ends(lives), strict=True)
        ]

    def _look(self, start: int, each: int) -> str:
        row = self._rows[start]
        return "is-many" if each > 1 else f"r-{STYLES[row.type, row.has_calls].glyph}"

    def _words(self, start: int, each: int) -> str:
        rows = self._rows[start : start + each]
        if len(rows) > 1:
            return f"{counted(len(rows), 'message')} from #{rows[0].seq:,} on"
        (row,) = rows
        pinned = ", pinned" if row.pinned else ""
        return f"#{row.seq:,} {STYLES[row.type, row.has_calls].role}, {row.tokens:,} tok{pinned}"
