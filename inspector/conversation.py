"""What the conversation page shows at a step: rows ready for the templates, no logic left in
them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from django.urls import reverse
from django.utils.http import urlencode

from chatmemory import explanations, queries
from chatmemory.core.codec import message_to_dict
from chatmemory.core.messages import (
    ChatMessage,
    ImageContent,
    MessageType,
    ToolExecutionResultMessage,
)
from chatmemory.core.policies import Policy
from chatmemory.core.windows import Reason
from chatmemory.explanations import Caption, Explanation, role
from chatmemory.formats import render_messages
from chatmemory.queries import MessageRow, StepView
from inspector.tape import Tape, draw
from inspector.templatetags.inspector import glyph

HISTORY_SIZE = 60
GHOSTS_MOST = 5
INLINE_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")


@dataclass(frozen=True)
class Said:
    """A row of the history pane."""

    row: MessageRow
    glyph: str
    role: str
    css: str
    tag: str
    is_in: bool
    leaves_now: bool
    is_horizon: bool


@dataclass(frozen=True)
class Ledger:
    """A row of the memory pane; `past` and `this` draw the cumulative bar in units of the limit."""

    seq: int
    glyph: str
    css: str
    text: str
    is_code: bool
    amount: int
    past: int
    this: int
    note: str = ""


@dataclass(frozen=True)
class Ghosts:
    """What just left: the first few rows, how many more, and what they weighed."""

    rows: tuple[Ledger, ...]
    more: int
    amount: int


@dataclass(frozen=True)
class Life:
    """A message's time in memory on a line from 0 to `steps`."""

    steps: int
    spans: tuple[tuple[int, int], ...]
    entered: int
    left: int | None


@dataclass(frozen=True)
class Changes:
    """The window at this step against the one at `step`, which held `load`."""

    step: int
    came: tuple[queries.WindowRow, ...]
    gone: tuple[queries.WindowRow, ...]
    stayed: int
    load: int


@dataclass(frozen=True)
class Mention:
    """A place where a phrase was said; `step` is where it left, None while it is in."""

    row: MessageRow
    glyph: str
    role: str
    is_in: bool
    tag: str
    step: int | None


@dataclass(frozen=True)
class Why:
    """The panel's answer about one message."""

    row: MessageRow
    glyph: str
    role: str
    is_in: bool
    life: Life
    step: int | None
    explanation: Explanation
    langchain4j: object
    openai: object
    lost: tuple[str, ...]

    @property
    def thinking(self) -> str:
        return getattr(self.row.message, "thinking", None) or ""

    @property
    def attributes(self) -> Mapping[str, object]:
        return getattr(self.row.message, "attributes", {})

    @property
    def pictures(self) -> list[str]:
        """Pictures that came inline: others are not fetched, since no request leaves the site."""
        contents = getattr(self.row.message, "contents", ())
        images = [part.image for part in contents if isinstance(part, ImageContent)]
        return [
            f"data:{image.mime_type};base64,{image.base64_data}"
            for image in images
            if image.base64_data and image.mime_type in INLINE_PICTURES
        ]


class ConversationPage:
    """Everything about a conversation at step `at` (None: live), with message `msg` selected.

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
        other: int | None = None,
    ) -> None:
        self.memory = queries.memory(memory_id)
        self.is_live = at is None
        self.at = self.memory.steps if at is None else at
        self.view: StepView | None = queries.step(memory_id, self.at) if self.at else None
        self.window = queries.window(memory_id, self.at if at is not None else None)
        self.msg = msg
        self.selected = queries.message(memory_id, msg) if msg else None
        self.find = find
        self.other = other
        found: tuple[tuple[MessageRow, ...], int] = ((), 0)
        self.found, self.found_count = (
            queries.mentions(memory_id, find, at=self.at) if find else found
        )
        self.hits = {row.seq for row in self.found}
        around = msg or (self.found[-1].seq if self.found else None)
        self.page = queries.history(
            memory_id,
            at=self.at,
            before=before,
            after=after,
            around=around if before is None and after is None else None,
            size=HISTORY_SIZE,
        )
        self.in_window = {row.seq for row in self.window.rows}
        samples = queries.tape(memory_id, self.memory.steps, self.at)
        self.tape: Tape = draw(
            samples,
            at=self.at,
            limit=self.limit,
            in_window=self.in_window,
            unit=self.unit,
            selected=msg,
            hits=self.hits,
        )
        here = next((cell for cell in samples if cell.step == self.at), None)
        self.history_load = here.history if here else 0

    # The head of the page

    @cached_property
    def url(self) -> str:
        """The page at the live end; links on it add the step, the message and the search."""
        return reverse("conversation", args=[self.memory.id])

    @property
    def live_url(self) -> str:
        """The page at the live end with what is chosen and searched on it."""
        query = {name: value for name, value in (("msg", self.msg), ("find", self.find)) if value}
        return f"{self.url}?{urlencode(query)}" if query else self.url

    @property
    def policy(self) -> Policy | None:
        return self.window.policy

    @property
    def policy_name(self) -> str:
        return explanations.policy_name(self.policy)

    @property
    def limit(self) -> int | None:
        return self.policy.limit if self.policy else None

    @property
    def unit(self) -> str:
        return self.policy.unit if self.policy else "tok"

    @property
    def load(self) -> int:
        return self.window.load if self.window.load is not None else self.window.totals.tokens

    @property
    def fill(self) -> float:
        """The gauge's bar in percent."""
        return min(100.0, round(100 * self.load / self.limit, 1)) if self.limit else 0

    @property
    def is_over(self) -> bool:
        return self.limit is not None and self.load > self.limit

    @property
    def said_count(self) -> int:
        return self.view.step.said_count if self.view else 0

    @property
    def forgotten_load(self) -> int:
        return max(0, self.history_load - self.load)

    @cached_property
    def caption(self) -> Caption:
        if self.view is None:
            return Caption(
                "Nothing has been said yet", detail="Step forward to see the first message."
            )
        return explanations.caption(self.view)

    @property
    def previous_step(self) -> int | None:
        return self.at - 1 if self.at > 0 else None

    @property
    def next_step(self) -> int | None:
        return self.at + 1 if self.at < self.memory.steps else None

    @cached_property
    def evictions(self) -> tuple[int | None, int | None]:
        """The nearest steps at which something left, before and after this one."""
        return queries.evictions_around(self.memory.id, self.at)

    @property
    def room(self) -> int | None:
        """What is free under the limit, in the policy's unit."""
        return None if self.limit is None else max(0, self.limit - self.load)

    @property
    def next_to_leave(self) -> Ledger | None:
        return next(iter(self.messages), None) if self.is_live and self.policy else None

    # History

    @cached_property
    def said(self) -> list[Said]:
        """The rows of the history pane; the horizon is where memory starts."""
        rows: list[Said] = []
        past_horizon = self.page.has_earlier and any(
            row.seq < self.page.rows[0].seq and row.type is not MessageType.SYSTEM
            for row in self.window.rows
        )
        for i, row in enumerate(self.page.rows):
            is_in = row.seq in self.in_window
            is_horizon = is_in and not past_horizon and row.type is not MessageType.SYSTEM
            past_horizon = past_horizon or is_horizon
            departure = row.departure(self.at)
            leaves_now = departure is not None and departure.left_step == self.at
            css = ["is-in" if is_in else "is-out", pairing(self.page.rows, i)]
            css += ["is-leaving"] if leaves_now else []
            css += ["is-sel"] if row.seq == self.msg else []
            css += ["is-hit"] if row.seq in self.hits else []
            css += ["is-rel"] if row.seq in self.related else []
            rows.append(
                Said(
                    row=row,
                    glyph=glyph(row.type, row.has_calls),
                    role=role(row.type, row.has_calls),
                    css=" ".join(filter(None, css)),
                    tag=self._tag(row, is_in),
                    is_in=is_in,
                    leaves_now=leaves_now,
                    is_horizon=is_horizon and bool(rows) and not rows[-1].is_in,
                )
            )
        return rows

    def _tag(self, row: MessageRow, is_in: bool) -> str:
        if is_in:
            return ""
        departure = row.departure(self.at)
        if departure is None or departure.reason is None:
            return "would leave" if self.is_simulation else "would leave at the next add"
        return f"forgotten at step {departure.left_step:,} · {short_reason(departure.reason)}"

    # Memory

    @cached_property
    def related(self) -> set[int]:
        """With a tool call selected its results, with a result its call: seqs on this page."""
        chosen = self.selected
        if chosen is None:
            return set()
        asked, answered = _call_ids(chosen.message), _answered_id(chosen.message)
        rows = {row.seq: row.message for row in self.page.rows}
        rows |= {row.seq: row.message for row in self.window.rows}
        return {
            seq
            for seq, message in rows.items()
            if _answered_id(message) in asked or answered in _call_ids(message)
        }

    @property
    def is_draft(self) -> set[int]:
        """The seqs that are not said yet but only tried."""
        return set()

    @property
    def system(self) -> list[Ledger]:
        """The pinned head of the memory pane: a leading system message."""
        return [row for row in self.ledger if "led--sys" in row.css]

    @property
    def messages(self) -> list[Ledger]:
        return [row for row in self.ledger if "led--sys" not in row.css]

    @cached_property
    def ledger(self) -> list[Ledger]:
        rows = self.window.rows
        ledger, past = [], self.policy.overhead if self.policy else 0
        for i, row in enumerate(rows):
            this = self.policy.cost(row.tokens) if self.policy else row.tokens
            css = ["led--sys"] if i == 0 and row.type is MessageType.SYSTEM else []
            css += [pairing(rows, i)]
            css += ["is-sel"] if row.seq == self.msg else []
            css += ["is-new"] if self.view and row.entered_step == self.at else []
            css += ["is-draft"] if row.seq in self.is_draft else []
            css += ["is-rel"] if row.seq in self.related else []
            ledger.append(
                Ledger(
                    seq=row.seq,
                    glyph=glyph(row.type, row.message.has_tool_execution_requests),
                    css=" ".join(filter(None, css)),
                    text=row.text,
                    is_code=_is_code(row.type, row.message.has_tool_execution_requests),
                    amount=row.tokens,
                    past=past,
                    this=this,
                )
            )
            past += this
        return ledger

    @property
    def bar_width(self) -> int:
        return self.limit or max(1, self.load)

    @cached_property
    def ghosts(self) -> Ghosts | None:
        departures = self.view.departures if self.view else ()
        if not departures:
            return None
        rows = tuple(
            Ledger(
                seq=departure.seq,
                glyph=glyph(departure.type, departure.has_calls),
                css=" ".join(filter(None, ["is-sel" if departure.seq == self.msg else ""])),
                text=departure.text,
                is_code=_is_code(departure.type, departure.has_calls),
                amount=-departure.tokens,
                past=0,
                this=0,
                note=_ghost_note(departure),
            )
            for departure in departures[:GHOSTS_MOST]
        )
        total = sum(departure.tokens for departure in departures)
        return Ghosts(rows, len(departures) - len(rows), -total)

    @property
    def ghosts_when(self) -> str:
        arrivals = self.view.arrivals if self.view else ()
        if len(arrivals) == 1:
            return f"when #{arrivals[0].seq} arrived"
        return f"at step {self.at:,}"

    # Why?

    @cached_property
    def why(self) -> Why | None:
        row = self.selected
        if row is None:
            return None
        departure = row.departure(self.at)
        step = departure.left_step if departure else None
        rendered = render_messages([row.message], "openai_chat")
        return Why(
            row=row,
            glyph=glyph(row.type, row.has_calls),
            role=role(row.type, row.has_calls),
            is_in=row.seq in self.in_window,
            life=self._life(row),
            step=step,
            explanation=self._explanation(row, step),
            langchain4j=message_to_dict(row.message),
            openai=rendered.value[0] if rendered.value else None,
            lost=tuple(loss.what for loss in rendered.losses),
        )

    @cached_property
    def changes(self) -> Changes | None:
        """What came and left between this step and the one it is compared with."""
        if self.other is None:
            return None
        then = queries.window(self.memory.id, self.other)
        before, after = {row.seq: row for row in then.rows}, {r.seq: r for r in self.window.rows}
        return Changes(
            step=self.other,
            came=tuple(row for seq, row in after.items() if seq not in before),
            gone=tuple(row for seq, row in before.items() if seq not in after),
            stayed=len(before.keys() & after.keys()),
            load=then.load if then.load is not None else then.totals.tokens,
        )

    @cached_property
    def remembers(self) -> Explanation | None:
        if not self.find:
            return None
        return explanations.remembers(self.find, self.found, self.found_count, self.at)

    @property
    def mentions(self) -> list[Mention]:
        """Where the phrase was said, the latest first."""
        return [
            Mention(
                row=row,
                glyph=glyph(row.type, row.has_calls),
                role=role(row.type, row.has_calls),
                is_in=row.seq in self.in_window,
                tag=self._tag(row, row.seq in self.in_window) or "in memory",
                step=(row.departure(self.at) or row.stays[0]).left_step,
            )
            for row in reversed(self.found)
        ]

    @property
    def find_kept(self) -> str:
        """What Clear leaves: the search while a message is chosen, then nothing."""
        return self.find if self.msg else ""

    def link(self, at: int, find: str | None = None, **chosen: int | None) -> str:
        """This page at a step, with a message or a place in the history, the search kept."""
        query: dict[str, str | int] = {"at": at, **{name: n for name, n in chosen.items() if n}}
        phrase = self.find if find is None else find
        if phrase:
            query["find"] = phrase
        return f"{self.url}?{urlencode(query)}"

    def _explanation(self, row: MessageRow, step: int | None) -> Explanation:
        if step is not None:
            return explanations.why_left(queries.step(self.memory.id, step), row.seq)
        if row.seq in self.in_window:
            return explanations.why_in(self.window, row.seq)
        if row.stays and row.stays[0].entered_step > self.at:
            entered = row.stays[0].entered_step
            return Explanation(
                f"Where is #{row.seq}?", "Not said yet.", f"It arrives at step {entered:,}."
            )
        return Explanation(
            f"Does #{row.seq} still count?",
            "It is over the lowered limit.",
            "The model no longer sees it, and it leaves at the next add. A higher limit before "
            "that brings it back.",
        )

    def _life(self, row: MessageRow) -> Life:
        end = self.memory.steps
        spans = tuple((entered - 1, (left or end + 1) - entered) for entered, left, _ in row.visits)
        visits = row.visits or ((0, None, None),)
        return Life(end, spans, visits[0][0], visits[-1][1])

    @cached_property
    def step_receipt(self) -> tuple[explanations.ReceiptLine, ...]:
        return explanations.receipt(self.view) if self.view else ()


def _call_ids(message: ChatMessage) -> set[str | None]:
    calls = getattr(message, "tool_execution_requests", ())
    return {call.id for call in calls if call is not None and call.id}


def _answered_id(message: ChatMessage) -> str | None:
    """The call that a tool result answers; no id answers nothing."""
    return (message.id or "") if isinstance(message, ToolExecutionResultMessage) else ""


def pairing(rows: Sequence[MessageRow] | Sequence[queries.WindowRow], i: int) -> str:
    """Where a row stands in a tool call and its results: p-start, p-mid, p-end or nothing."""

    def result(position: int) -> bool:
        known = 0 <= position < len(rows)
        return known and rows[position].type is MessageType.TOOL_EXECUTION_RESULT

    if rows[i].message.has_tool_execution_requests and result(i + 1):
        return "p-start"
    if result(i):
        return "p-mid" if result(i + 1) else "p-end"
    return ""


def short_reason(reason: Reason) -> str:
    return {
        Reason.CAPACITY: "capacity",
        Reason.ORPHANED: "left with its call",
        Reason.REPLACED: "replaced",
        Reason.CLEARED: "cleared",
        Reason.SET: "list was set",
        Reason.MOVED: "moved",
    }[reason]


def _ghost_note(departure: queries.Departure) -> str:
    if departure.reason is Reason.CAPACITY:
        return "oldest"
    if departure.reason is Reason.ORPHANED:
        return f"with #{departure.because_seq}"
    return short_reason(departure.reason)


def _is_code(type: MessageType, has_calls: bool) -> bool:
    return has_calls or type in (MessageType.TOOL_EXECUTION_RESULT, MessageType.CUSTOM)
