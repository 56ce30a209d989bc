"""The history pane: it lists all messages of the history, and shows for each whether it is in
memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import ClassVar

from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.text import Truncator

from chatmemory import ChatMessage, MessageType, Reason, ToolExecutionResultMessage
from chatmemory.columns import shown_columns, shown_values, words_in
from chatmemory.explain.causes import reason_of, short_reason
from chatmemory.explain.interruptions import state_of
from chatmemory.messages.phrases import phrase_place
from chatmemory.messages.texts import named
from chatmemory.models import Message
from chatmemory.patterns import declared_pattern
from chatmemory.reading.rows import MessageDetail, StayDetail
from chatmemory.reading.windows import MessageView
from chatmemory.windows.eviction import Eviction
from inspector.conversation.links import chosen
from inspector.conversation.looks import STYLES, CssClass, css_of, pairings
from inspector.conversation.state import TEXT_SIZE
from inspector.shell.state import ConversationState
from inspector.shell.times import formatted

# The number of characters that a row shows of a text.
SHOWN = TEXT_SIZE - 1
# After so long without a message, the next row shows its time.
PAUSE = timedelta(minutes=10)
# What the model sees above the first message in memory: without an index, and with one.
ABOVE = ("", "above, the model sees only the index")
_ESCAPES = declared_pattern(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


class MessageLine:
    """A message as a row of the history or memory pane, with CSS classes.

    The row is a button that selects its message: `param` and `number` are the name and the value of
    the URL parameter. `param` is `draft` for a draft message, else `msg`.
    """

    def __init__(
        self,
        state: ConversationState,
        message: MessageDetail | MessageView | Eviction,
        *classes: CssClass,
    ) -> None:
        seq = message.seq
        self.seq, self.name = seq, named(seq)
        ((self.param, self.number),) = chosen(seq).items()
        look = STYLES[message.type, message.has_calls]
        self.glyph, self.role, self.is_code = look.glyph, look.role, look.is_code
        self.text = shown(state.shown.texts[seq], state.shown.marks.phrase)
        is_selected = seq == state.query.msg
        self.css = css_of(f"r-{look.glyph}", *classes, is_selected and "is-sel")


class HistoryRow(MessageLine):
    """A row of the history pane.

    - `drawn` lists the fields that the row's template gets.
    - `has_words` lists the fields that contain text of messages. A row with a value in one of these
      fields is not cached.
    - `day` is the day in words. It is shown above the first row of each day, and "" in all other
      rows.
    - `is_horizon` is True if the line "Memory starts here" is shown above the row. If memory has an
      index, the field `above` has the rest of this line; else "".
    - `is_in` says whether the message is in memory. `is_stub` marks a tool result whose text was
      cleared in memory.
    - `is_indexed` marks a message that is not in memory, but has exact terms in the index.
    - `said_at` is the time of the message, in the site's time zone if the message is stored. `time`
      is the same time as text; "" for a draft.
    - `summarised` is the number of the step at which a summary replaced the message, or None.
      `href` is the URL of this step, or "".
    """

    drawn: ClassVar = (
        *("seq", "css", "glyph", "role", "param", "number", "name", "time", "is_code", "is_in"),
        *("is_stub", "tokens", "summarised", "tag", "leaves_now", "is_indexed", "is_horizon"),
        *("above", "day", "date"),
        *shown_columns(Message),
    )
    has_words: ClassVar = tuple({*words_in(Message)} & {*shown_columns(Message)})

    def __init__(
        self,
        state: ConversationState,
        row: MessageDetail,
        said_at: datetime,
        link: Callable[[int], str],
        *classes: CssClass,
        is_horizon: bool = False,
    ) -> None:
        self.row, self.is_horizon = row, is_horizon
        self.is_in = row.seq in state.in_window
        self.is_stub = row.seq in state.contents.cleared
        self.leaves_now = row.seq in state.evicted
        indexed = () if self.is_in else state.indexed.get(row.seq, ())
        self.is_indexed = bool(indexed)
        self.above = ABOVE[state.contents.index is not None]
        super().__init__(
            state,
            row,
            "is-in" if self.is_in else "is-out",
            *classes,
            self.leaves_now and "is-leaving",
            self.is_indexed and "is-indexed",
            row.seq in state.shown.marks.seqs and "is-hit",
        )
        if indexed and not state.shown.marks.phrase:
            self.text = with_terms(self.text, indexed)
        self.said_at = said_at
        self.time = formatted(said_at, "second") if row.seq > 0 else ""
        self.day = self.date = ""
        self.tokens = row.tokens_at(state.step.n)
        has_departed = not self.is_in and not state.simulation.is_replay
        departure = row.departure(state.step.n) if has_departed else None
        self.summarised = summarised(departure)
        self.tag = "" if self.is_in else _tag(state, row, departure)
        self.href = link(self.summarised) if self.summarised else ""
        vars(self).update(shown_values(Message, row))

    def name_day(self) -> None:
        """Set `day` to the day of the message in words, with the time zone. Set `date` to the time
        of the message in ISO 8601.
        """
        self.day = f"{formatted(self.said_at, 'long date')} {formatted(self.said_at, 'zone')}"
        self.date = self.said_at.isoformat(timespec="seconds")


class HistoryPane:
    """Presents the history pane, which shows a part of the history. `earlier` and `later` count the
    messages before and after this part. `link` returns the URL of a step.
    """

    def __init__(self, state: ConversationState, link: Callable[[int], str]) -> None:
        self._state, self._link = state, link
        self._related = related(state)
        self.earlier, self.later = state.shown.history.earlier, state.shown.history.later

    @property
    def first(self) -> int:
        return self._state.shown.history.rows[0].seq

    @property
    def last(self) -> int:
        return self._state.shown.history.rows[-1].seq

    @cached_property
    def rows(self) -> list[HistoryRow]:
        """The rows of the shown messages. If the newest message is shown, the rows of drafts
        follow.

        `is_horizon` is set for the row of the oldest message in memory, apart from system messages.
        It is set only if the message in the row above is not in memory.
        """
        messages, horizon = self._state.shown.history.rows, self._state.window.horizon
        rows: list[HistoryRow] = []
        before, zone = self._state.shown.history.before, timezone.get_current_timezone()
        for row, paired in zip(messages, pairings(messages), strict=True):
            is_horizon = row.seq == horizon and bool(rows) and not rows[-1].is_in
            pause = "" if before and row.said_at - before < PAUSE else "is-after-pause"
            is_related = row.seq in self._related
            row_shown = HistoryRow(
                self._state,
                row,
                row.said_at.astimezone(zone),
                self._link,
                paired,
                pause,
                is_related and "is-rel",
                is_horizon=is_horizon,
            )
            if not rows or rows[-1].said_at.date() != row_shown.said_at.date():
                row_shown.name_day()
            rows.append(row_shown)
            before = row.said_at
        drafts = () if self.later else self._state.simulation.drafts
        return rows + [
            HistoryRow(self._state, draft, draft.said_at, self._link, "is-draft")
            for draft in drafts
        ]

    @property
    def around(self) -> tuple[int | None, int | None]:
        """The numbers of the messages before and after the selected message, for links to them. A
        number is None if the pane shows no such message.
        """
        seqs = [None, *(row.row.seq for row in self.rows), None]
        if not self._state.query.msg or self._state.query.msg not in seqs:
            return None, None
        i = seqs.index(self._state.query.msg)
        return seqs[i - 1], seqs[i + 1]


def without_escapes(text: str) -> str:
    """Return a text without terminal escape sequences, such as colors."""
    return _ESCAPES.sub("", text) if "\x1b" in text else text


def shown(text: str, phrase: str) -> str:
    """Return the part of a text that a row shows. If the searched `phrase` occurs, this is the part
    around its first match, as HTML with the match marked. Otherwise it is the beginning of the
    text.
    """
    text = without_escapes(text)
    place = phrase_place(text, phrase) if phrase else None
    if place is None:
        return _cut(text)
    begin = max(0, place.start - SHOWN // 2)
    before = ("…" if begin else "") + text[begin : place.start]
    return format_html("{}<mark>{}</mark>{}", before, text[place], _cut(text[place.stop :]))


def with_terms(text: str, terms: Sequence[str]) -> str:
    """Return a row's text as HTML with the first occurrence of each of these terms underlined. A
    term that overlaps an underlined term is not underlined.
    """
    found = ((text.find(term), term) for term in terms)
    marked, end = [], 0
    for place, term in sorted(each for each in found if each[0] >= 0):
        if place >= end:
            marked.append((text[end:place], term))
            end = place + len(term)
    before = format_html_join("", '{}<mark class="kept">{}</mark>', marked)
    return format_html("{}{}", before, text[end:])


def _cut(text: str) -> str:
    return Truncator(text).chars(SHOWN) if len(text) > SHOWN else text


def tag(state: ConversationState, row: MessageDetail) -> str:
    """Return why a message is not in memory, in words; "" if the message is in memory."""
    return "" if row.seq in state.in_window else _tag(state, row, row.departure(state.step.n))


def _tag(state: ConversationState, row: MessageDetail, departure: StayDetail | None) -> str:
    if state.simulation.changes is not None and state.change and row.seq in state.evicted:
        return f"would leave · {reason_of(state.change.evicted[state.evicted[row.seq]])}"
    if state.simulation.is_replay:
        return "not in memory in this replay"
    if step := summarised(departure):
        return f"summarised at step {step:,}"
    if departure is not None and row.seq in state.indexed:
        return f"left memory at step {departure.left_step:,} · its terms are in the index"
    if departure is not None and departure.reason is not None:
        cause = short_reason(departure.reason, departure.misfit, departure.is_left_out)
        return f"left memory at step {departure.left_step:,} · {cause}"
    if call := state.window.interrupted_call_of(row.seq):
        return state_of(call)
    if state.window.no_room:  # a limit hides it
        return "would be over the limit" if state.is_simulated else "over the limit"
    return "would leave" if state.is_simulated else "leaves at the next add"


def summarised(departure: StayDetail | None) -> int | None:
    """Return the step at which a summary replaced a message; None if no summary did. `departure`
    says how the message left memory.
    """
    is_so = departure is not None and departure.reason is Reason.SUMMARIZED
    return departure.left_step if departure and is_so else None


def related(state: ConversationState) -> frozenset[int]:
    """Return the numbers of the messages that belong to the selected tool call or tool result. For
    a call these are its results, for a result its call. Empty for any other message.
    """
    selected = state.selection.row
    if selected is None or not _is_paired(selected):
        return frozenset()
    call_ids, answered_id = _call_ids(selected.message), _answered_id(selected.message)
    return frozenset(
        row.seq
        for row in state.shown.history.rows
        if _is_paired(row)
        and (_answered_id(row.message) in call_ids or answered_id in _call_ids(row.message))
    )


def _is_paired(row: MessageDetail) -> bool:
    return row.has_calls or row.type is MessageType.TOOL_EXECUTION_RESULT


def _call_ids(message: ChatMessage) -> set[str | None]:
    calls = getattr(message, "tool_execution_requests", ())
    return {call.id for call in calls if call is not None and call.id}


def _answered_id(message: ChatMessage) -> str | None:
    """Return the id of the tool call that a tool result answers; "" if there is none."""
    return (message.id or "") if isinstance(message, ToolExecutionResultMessage) else ""
