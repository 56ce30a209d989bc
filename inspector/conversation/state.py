"""What is looked at: a conversation at a step, with a message chosen and a phrase looked for."""

from __future__ import annotations

from functools import cached_property

from chatmemory import queries
from chatmemory.core.messages import ChatMessage, MessageType, ToolExecutionResultMessage
from chatmemory.core.policies import Policy
from chatmemory.queries import MessageRow, Page, StepView, WindowPlace, WindowView
from inspector.conversation.rows import short_reason

HISTORY_SIZE = 60
NEXT_ADD = "would leave at the next add"


class Moment:
    """A conversation at step `at` (None: live), with message `msg` chosen and `find` looked for.

    Raises MemoryNotFound, StepNotFound, MessageNotFound.
    """

    is_simulation = False

    def __init__(
        self,
        memory_id: str,
        at: int | None,
        msg: int | None,
        before: int | None = None,
        after: int | None = None,
        find: str = "",
    ) -> None:
        self.memory = queries.memory(memory_id)
        self.is_live = at is None
        self.at = self.memory.last_step if at is None else at
        self.view: StepView | None = queries.step(memory_id, self.at) if self.at else None
        self.window: WindowView[WindowPlace] = queries.outline(memory_id, at)
        self.in_window = {row.seq for row in self.window.rows}
        self.drafts: list[MessageRow] = []
        self.msg = msg
        self.selected = queries.message(memory_id, msg) if msg else None
        self.find = find
        self.found, self.found_count = self._mentions()
        self.hits = {row.seq for row in self.found}
        self.transcript = self._transcript(before, after)

    def _mentions(self) -> tuple[tuple[MessageRow, ...], int]:
        return queries.mentions(self.memory.id, self.find, at=self.at) if self.find else ((), 0)

    def _transcript(self, before: int | None, after: int | None) -> Page:
        """A part of the history: before or after a message, else around the chosen one, else
        around the last that was found, else the end.
        """
        around = self.msg or (self.found[-1].seq if self.found else None)
        return queries.history(
            self.memory.id,
            at=self.at,
            before=before,
            after=after,
            around=around if before is None and after is None else None,
            size=HISTORY_SIZE,
        )

    # Its measures

    @property
    def policy(self) -> Policy | None:
        return self.window.policy

    @property
    def limit(self) -> int | None:
        return self.policy.limit if self.policy else None

    @property
    def unit(self) -> str:
        return self.policy.short_unit if self.policy else "tok"

    @property
    def load(self) -> int:
        return self.window.load if self.window.load is not None else self.window.totals.tokens

    # Its messages

    @cached_property
    def related(self) -> set[int]:
        """With a tool call chosen its results, with a result its call: seqs of the transcript."""
        chosen = self.selected
        if chosen is None or not _is_paired(chosen):
            return set()
        asked, answered = _call_ids(chosen.message), _answered_id(chosen.message)
        return {
            row.seq
            for row in self.transcript.rows
            if _is_paired(row)
            and (_answered_id(row.message) in asked or answered in _call_ids(row.message))
        }

    def leaves_now(self, row: MessageRow) -> bool:
        departure = row.departure(self.at)
        return departure is not None and departure.left_step == self.at

    def tag(self, row: MessageRow) -> str:
        """Why a message is not in memory; empty while it is."""
        if row.seq in self.in_window:
            return ""
        departure = row.departure(self.at)
        if departure is None or departure.reason is None:
            return NEXT_ADD
        return f"forgotten at step {departure.left_step:,} · {short_reason(departure.reason)}"


def _is_paired(row: MessageRow) -> bool:
    return row.has_calls or row.type is MessageType.TOOL_EXECUTION_RESULT


def _call_ids(message: ChatMessage) -> set[str | None]:
    calls = getattr(message, "tool_execution_requests", ())
    return {call.id for call in calls if call is not None and call.id}


def _answered_id(message: ChatMessage) -> str | None:
    """The call that a tool result answers; no id answers nothing."""
    return (message.id or "") if isinstance(message, ToolExecutionResultMessage) else ""
