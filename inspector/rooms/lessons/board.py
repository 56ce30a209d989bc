"""The board: the cells, the history and the memory of a scene, and what happens to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile

from chatmemory import Reason
from chatmemory.explain.causes import choice, reason_of
from chatmemory.explain.receipts import ReceiptLine, receipt
from chatmemory.explain.wording import counted
from chatmemory.services import ChangeResult
from inspector.conversation.looks import LOOKS, Look, css_of, pairing
from inspector.rooms.lessons.rehearsal import Line
from inspector.rooms.lessons.stage import Happening

SLOTS_MAX = 12


@dataclass(frozen=True)
class BoardMessage:
    """A message in the row of cells, the history or the memory.

    `note` is its fate, or the claim of a learner about it. `is_right` is None without a question
    about it.
    """

    line: Line
    css: str
    note: str = ""
    is_next: bool = False
    is_gone: bool = False
    is_right: bool | None = None

    @property
    def look(self) -> Look:
        return LOOKS[self.line.type, self.line.has_calls]

    @property
    def role(self) -> str:
        return "Summary" if self.line.covered else self.look.role


class Board:
    """The board of a scene: before the events, or after them once it `is_revealed`.

    If it `asks`, the messages of the memory can be picked; `picked` are the picked ones, or None
    without an answer.
    """

    def __init__(
        self,
        happening: Happening,
        is_revealed: bool = False,
        asks: bool = False,
        picked: frozenset[int] | None = None,
    ) -> None:
        before, after = happening.before, happening.after
        self.happening = happening
        self.is_revealed = is_revealed
        self.is_asking = asks and not is_revealed
        self.picked = picked
        self.verbs = happening.verbs
        self.arriving = happening.arriving
        self.scene = after if is_revealed else before
        # What was said, summaries, and what arrives next
        self.lines = after.lines if is_revealed else (*before.lines, *self.arriving)
        # The messages that leave now; none until it is revealed
        self.gone = {*happening.leaving, *happening.lost} if is_revealed else set()
        policy = self.scene.policy
        self.unit, self.limit = policy.unit, policy.limit
        self.load = self.scene.window.load or 0
        self.fill = min(100, self.load * 100 // self.limit)  # in percent

    @property
    def slots(self) -> list[bool]:
        """The places of a small window, whether each is taken; empty for other windows."""
        if self.unit == "tokens" or self.limit > SLOTS_MAX:
            return []
        return [i < self.load for i in range(self.limit)]

    @cached_property
    def cells(self) -> list[BoardMessage]:
        """All messages, with those that arrive next."""
        in_frame = [line.seq in self.scene.in_memory for line in self.lines]
        return [self._cell(i, in_frame) for i in range(len(self.lines))]

    def _cell(self, i: int, in_frame: Sequence[bool]) -> BoardMessage:
        line, is_in = self.lines[i], in_frame[i]
        is_next, is_gone = self._is_next(line), line.seq in self.gone
        css = css_of(
            "is-draft" if is_next else "is-in" if is_in else "is-out",
            is_in and (i == 0 or not in_frame[i - 1]) and "is-first",
            is_in and (i == len(in_frame) - 1 or not in_frame[i + 1]) and "is-last",
            is_gone and "is-leaving",
            pairing(self.lines, i),
        )
        note = "arrives next" if is_next else "in memory" if is_in else self.tag(line)
        return BoardMessage(line, css, note, is_next, is_gone)

    @cached_property
    def history(self) -> list[BoardMessage]:
        return [
            self._history_message(self.scene.history, i) for i in range(len(self.scene.history))
        ]

    def _history_message(self, lines: Sequence[Line], i: int) -> BoardMessage:
        line = lines[i]
        is_in, is_gone = line.seq in self.scene.in_memory, line.seq in self.gone
        css = css_of("is-in" if is_in else "is-out", is_gone and "is-leaving", pairing(lines, i))
        return BoardMessage(line, css, "" if is_in else self.tag(line), is_gone=is_gone)

    def tag(self, line: Line) -> str:
        """Return since when a message is not in memory, in words."""
        change = self.scene.left_by.get(line.seq)
        if change is None:
            return "hidden by the limit"
        reason = _reason(change, line.seq)
        return f"forgotten, {reason}" if reason else f"forgotten when #{change.seq} arrived"

    @cached_property
    def memory(self) -> list[BoardMessage]:
        """The messages of the memory, with those that leave now and those that arrive next."""
        known = {line.seq: line for line in self.lines}
        if self.is_revealed and not self.gone:
            rows = [known[place.seq] for place in self.scene.window.rows]
        else:
            before = [known[place.seq] for place in self.happening.before.window.rows]
            rows = [*self._with_summary(before), *self.arriving]
        return [self._kept(rows, i) for i in range(len(rows))]

    def _with_summary(self, before: Sequence[Line]) -> list[Line]:
        """Return the lines that were in memory, with a summary before its covered messages."""
        rows, known = [*before], self.happening.before.lines
        for line in self.lines[len(known) :] if self.is_revealed else ():
            if line.covered:
                place = next(i for i, row in enumerate(rows) if row.seq in line.covered)
                rows.insert(place, line)
        return rows

    def _kept(self, rows: Sequence[Line], i: int) -> BoardMessage:
        line = rows[i]
        is_gone, is_next = line.seq in self.gone, self._is_next(line)
        is_picked = line.seq in (self.picked or ())
        was_asked = self.is_revealed and self.picked is not None and line not in self.arriving
        looks = is_next and "is-next", is_gone and "is-gone", bool(line.covered) and "is-summary"
        css = css_of(*looks, pairing(rows, i))
        if was_asked and (is_gone or is_picked):
            note = f"you said: {self.verbs.leaves if is_picked else self.verbs.stays}"
            return BoardMessage(line, css, note, is_next, is_gone, is_gone == is_picked)
        return BoardMessage(line, css, self._note(line), is_next, is_gone)

    def _note(self, line: Line) -> str:
        if line.seq in self.gone:
            change = self.scene.left_by.get(line.seq)
            return (_reason(change, line.seq) or choice(change)) if change else "hidden"
        if line.covered:
            return f"stands for {counted(len(line.covered), 'message')}"
        if self._is_next(line):
            return "next to arrive"
        return "just arrived" if self.is_revealed and line in self.arriving else ""

    def _is_next(self, line: Line) -> bool:
        return not self.is_revealed and line in self.arriving

    @property
    def tally(self) -> list[ReceiptLine]:
        """The sum of the first event; until it is revealed, without the messages that leave."""
        changes = self.happening.changes
        change = changes[0].change if changes else None
        lines = list(receipt(change)) if change else []
        if self.is_revealed:
            return lines
        if change and change.kind == "compact":
            return []
        return list(takewhile(lambda line: line.kind not in ("minus", "fits"), lines))


def _reason(change: ChangeResult, seq: int) -> str:
    """Return the reason why a message left, or "" if the policy chose it to make room."""
    (evicted,) = (each for each in change.evicted if each.seq == seq)
    made_room = evicted.reason is Reason.CAPACITY and not evicted.misfit
    return "" if made_room else reason_of(evicted)
