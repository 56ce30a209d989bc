"""The board of a lesson: a row of all messages, lists of the history and of memory, and what the
next change does to the messages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile

from chatmemory import Reason
from chatmemory.explain.causes import choice, reason_of
from chatmemory.explain.receipts import ReceiptLine, receipt
from chatmemory.explain.wording import counted
from chatmemory.services import ChangeResult
from inspector.conversation.looks import STYLES, CssClass, MessageStyle, css_of, pairing
from inspector.rooms.lessons.rehearsal import Line
from inspector.rooms.lessons.stage import Happening, Verbs

SLOTS_MAX = 12


@dataclass(frozen=True)
class BoardMessage:
    """A message on the board. `is_next` marks an arriving message, and `is_gone` a leaving message.

    `note` says what happens to the message, such as "next to arrive", or what the learner said
    about it, such as "you said: stays". `is_right` is whether the learner was right; None if the
    learner said nothing about the message.
    """

    line: Line
    css: str
    note: str = ""
    is_next: bool = False
    is_gone: bool = False
    is_right: bool | None = None

    @property
    def look(self) -> MessageStyle:
        return STYLES[self.line.type, self.line.has_calls]

    @property
    def role(self) -> str:
        return "Summary" if self.line.covered else self.look.role


class Board:
    """The board of a lesson: messages before a change, or after the change if `is_revealed` is
    True.

    - `happening`: the change, with memory before and after it.
    - `asks`: whether learners pick the messages that they think will leave.
    - `picked`: the numbers of the picked messages; None without an answer.
    """

    def __init__(
        self,
        happening: Happening,
        is_revealed: bool = False,
        asks: bool = False,
        picked: frozenset[int] | None = None,
    ) -> None:
        self.happening = happening
        self.is_revealed, self.is_asking = is_revealed, asks and not is_revealed
        self.picked = picked
        self.scene = happening.after if is_revealed else happening.before
        self.arriving = happening.arriving

    @property
    def verbs(self) -> Verbs:
        return self.happening.verbs

    @cached_property
    def lines(self) -> Sequence[Line]:
        """All messages and summaries, including the messages that are about to arrive."""
        return self.scene.lines if self.is_revealed else (*self.scene.lines, *self.arriving)

    @cached_property
    def gone(self) -> frozenset[int]:
        """The numbers of the messages that leave memory. Empty until the answer is revealed."""
        leaving = (*self.happening.leaving, *self.happening.lost)
        return frozenset(leaving if self.is_revealed else ())

    # The limit

    @property
    def unit(self) -> str:
        return self.scene.policy.unit

    @property
    def limit(self) -> int:
        return self.scene.policy.limit

    @property
    def load(self) -> int:
        return self.scene.window.load or 0

    @property
    def fill(self) -> int:
        """The percentage of the limit that memory uses."""
        return min(100, self.load * 100 // self.limit)

    @property
    def slots(self) -> list[bool]:
        """A list with a place for each message or turn that the limit allows: True if memory uses
        the place. The list is empty for a limit in tokens, and for a limit above 12.
        """
        if self.unit == "tokens" or self.limit > SLOTS_MAX:
            return []
        return [i < self.load for i in range(self.limit)]

    # The cells

    @cached_property
    def cells(self) -> list[BoardMessage]:
        """All messages in a row, including the messages that are about to arrive. Their CSS classes
        draw a frame around memory.
        """
        is_in = [line.seq in self.scene.in_memory for line in self.lines]
        before, after = [False, *is_in], [*is_in[1:], False]
        return [
            self._message(
                line,
                self._place_of(line),
                "is-draft" if self._is_next(line) else self._in_or_out(line),
                is_in[i] and not before[i] and "is-first",
                is_in[i] and not after[i] and "is-last",
                line.seq in self.gone and "is-leaving",
                pairing(self.lines, i),
            )
            for i, line in enumerate(self.lines)
        ]

    def _place_of(self, line: Line) -> str:
        if self._is_next(line):
            return "arrives next"
        return "in memory" if line.seq in self.scene.in_memory else self.tag(line)

    # The history

    @cached_property
    def history(self) -> list[BoardMessage]:
        """The messages of the history. Messages that left memory have a note that says when and
        why.
        """
        said = self.scene.history
        return [
            self._message(
                line,
                "" if line.seq in self.scene.in_memory else self.tag(line),
                self._in_or_out(line),
                line.seq in self.gone and "is-leaving",
                pairing(said, i),
            )
            for i, line in enumerate(said)
        ]

    def tag(self, line: Line) -> str:
        """Return in words why a message is not in memory, such as `forgotten when #7 arrived`."""
        change = self.scene.left_by.get(line.seq)
        if change is None:
            return "hidden by the limit"
        reason = _reason(change, line.seq)
        return f"forgotten, {reason}" if reason else f"forgotten when #{change.seq} arrived"

    # The memory

    @cached_property
    def memory(self) -> list[BoardMessage]:
        """The messages in memory, including those that leave now and those that arrive next."""
        rows = self._rows_of_memory()
        messages = [
            self._message(
                line,
                self._fate_of(line),
                self._is_next(line) and "is-next",
                line.seq in self.gone and "is-gone",
                bool(line.covered) and "is-summary",
                pairing(rows, i),
            )
            for i, line in enumerate(rows)
        ]
        return [replace(each, is_right=self.verdicts.get(each.line.seq)) for each in messages]

    def _rows_of_memory(self) -> list[Line]:
        """Return memory before the change, and the arriving messages. So leaving messages keep
        their rows.

        If the change is revealed and no message leaves, return memory after the change.
        """
        if self.is_revealed and not self.gone:
            return [*self.scene.memory]
        return [*self._before_with_summaries(), *self.arriving]

    def _before_with_summaries(self) -> list[Line]:
        """Return memory before the change. A revealed summary stands before the first message that
        the summary replaces.
        """
        before = self.happening.before
        rows = [*before.memory]
        made = self.scene.lines[len(before.lines) :]  # empty until the answer is revealed
        for summary in (line for line in made if line.covered):
            is_covered = [row.seq in summary.covered for row in rows]
            rows.insert(is_covered.index(True), summary)
        return rows

    def _fate_of(self, line: Line) -> str:
        """Return what happens to a message, or what the learner said would happen."""
        if self.picked is not None and line.seq in self.verdicts:
            is_picked = line.seq in self.picked
            return f"you said: {self.verbs.leaves if is_picked else self.verbs.stays}"
        if line.seq in self.gone:
            change = self.scene.left_by.get(line.seq)
            return (_reason(change, line.seq) or choice(change)) if change else "hidden"
        if line.covered:
            return f"summary of {counted(len(line.covered), 'message')}"
        if self._is_next(line):
            return "next to arrive"
        return "just arrived" if self.is_revealed and line in self.arriving else ""

    @cached_property
    def verdicts(self) -> Mapping[int, bool]:
        """Whether the learner was right about a message, by message number. True for a picked
        message that leaves.

        False for a picked message that stays, and for a leaving message that was not picked.
        Arriving messages are left out.

        Empty without an answer, and until the answer is revealed.
        """
        if not self.is_revealed or self.picked is None:
            return {}
        told = (self.gone | self.picked).difference(line.seq for line in self.arriving)
        return {seq: seq in self.gone and seq in self.picked for seq in told}

    # One message

    def _message(self, line: Line, note: str, *css: CssClass) -> BoardMessage:
        is_next, is_gone = self._is_next(line), line.seq in self.gone
        return BoardMessage(line, css_of(*css), note, is_next, is_gone)

    def _in_or_out(self, line: Line) -> str:
        return "is-in" if line.seq in self.scene.in_memory else "is-out"

    def _is_next(self, line: Line) -> bool:
        return not self.is_revealed and line in self.arriving

    @property
    def tally(self) -> list[ReceiptLine]:
        """The receipt of the change: lines that add up the size of memory, and compare the sum with
        the limit.

        Until the answer is revealed, the receipt ends before the leaving messages and the result,
        or is empty for a compaction.
        """
        changes = self.happening.changes
        change = changes[0].change if changes else None
        lines = list(receipt(change)) if change else []
        if self.is_revealed:
            return lines
        if change and change.kind == "compact":
            return []
        return list(takewhile(lambda line: line.kind not in ("minus", "fits"), lines))


def _reason(change: ChangeResult, seq: int) -> str:
    """Return why a message left memory. Return "" if it left to make room."""
    (evicted,) = (each for each in change.evicted if each.seq == seq)
    made_room = evicted.reason is Reason.CAPACITY and not evicted.misfit
    return "" if made_room else reason_of(evicted)
