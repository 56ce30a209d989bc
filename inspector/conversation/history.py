"""The history pane: all messages that were said, with those in memory marked."""

from __future__ import annotations

from functools import cached_property

from chatmemory import ChatMessage, MessageType, ToolExecutionResultMessage, explain
from chatmemory.queries import ConversationState, MessageDetail
from inspector.conversation.links import chosen
from inspector.conversation.rows import LOOKS, HistoryRow, pairings, shown, tag


class HistoryPane:
    def __init__(self, state: ConversationState) -> None:
        self._state = state
        self._related = related(state)

    @property
    def has_earlier(self) -> bool:
        return self._state.history.has_earlier

    @property
    def has_later(self) -> bool:
        return self._state.history.has_later

    @property
    def earlier(self) -> int:
        """The number of messages before those that the pane shows."""
        return self._state.history.earlier

    @property
    def later(self) -> int:
        return self._state.history.later

    @property
    def first(self) -> int:
        return self._state.history.rows[0].seq

    @property
    def last(self) -> int:
        return self._state.history.rows[-1].seq

    @cached_property
    def rows(self) -> list[HistoryRow]:
        """The messages and then the drafts. The horizon row is the first one in memory."""
        said, horizon = self._state.history.rows, self._state.window.horizon
        rows: list[HistoryRow] = []
        for row, paired in zip(said, pairings(said), strict=True):
            is_horizon = row.seq == horizon and bool(rows) and not rows[-1].is_in
            rows.append(self._row(row, paired, is_horizon))
        drafts = () if self.has_later else self._state.drafts
        return rows + [self._row(draft, "is-draft") for draft in drafts]

    @property
    def around(self) -> tuple[int | None, int | None]:
        """The seqs before and after the selected message in this part of the history."""
        seqs = [row.row.seq for row in self.rows]
        if self._state.query.msg not in seqs:
            return None, None
        i = seqs.index(self._state.query.msg)
        return seqs[i - 1] if i else None, seqs[i + 1] if i + 1 < len(seqs) else None

    def _row(self, row: MessageDetail, css: str, is_horizon: bool = False) -> HistoryRow:
        state = self._state
        is_in = row.seq in state.in_window
        leaves_now = row.seq in state.evicted
        look = LOOKS[row.type, row.has_calls]
        ((param, number),) = chosen(row.seq).items()
        classes = (
            f"r-{look.glyph}",
            "is-in" if is_in else "is-out",
            css,
            "is-leaving" if leaves_now else "",
            "is-sel" if row.seq == state.query.msg else "",
            "is-hit" if row.seq in state.found else "",
            "is-rel" if row.seq in self._related else "",
        )
        return HistoryRow(
            row=row,
            name=explain.named(row.seq),
            param=param,
            number=number,
            tokens=row.tokens_at(state.at),
            glyph=look.glyph,
            role=look.role,
            css=" ".join(filter(None, classes)),
            text=shown(state.texts[row.seq], state.query.find),
            tag="" if is_in else tag(state, row),
            is_code=look.is_code,
            is_in=is_in,
            leaves_now=leaves_now,
            is_horizon=is_horizon,
        )


def related(state: ConversationState) -> frozenset[int]:
    """Return the seqs of the selected tool call's results, or of the selected result's call."""
    selected = state.selected
    if selected is None or not _is_paired(selected):
        return frozenset()
    call_ids, answered_id = _call_ids(selected.message), _answered_id(selected.message)
    return frozenset(
        row.seq
        for row in state.history.rows
        if _is_paired(row)
        and (_answered_id(row.message) in call_ids or answered_id in _call_ids(row.message))
    )


def _is_paired(row: MessageDetail) -> bool:
    return row.has_calls or row.type is MessageType.TOOL_EXECUTION_RESULT


def _call_ids(message: ChatMessage) -> set[str | None]:
    calls = getattr(message, "tool_execution_requests", ())
    return {call.id for call in calls if call is not None and call.id}


def _answered_id(message: ChatMessage) -> str | None:
    """Return the id of the call that a tool result answers, or an empty string."""
    return (message.id or "") if isinstance(message, ToolExecutionResultMessage) else ""
