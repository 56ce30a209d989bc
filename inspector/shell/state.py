"""The state of a conversation page, from which the page and its features build all parts without
further queries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from chatmemory.explain.receipts import Receipt, receipt
from chatmemory.ledger.changes import ChangeResult
from chatmemory.lint import Turn
from chatmemory.lint.linter import waiting_turn
from chatmemory.lint.since import CallIds
from chatmemory.messages.message import MessageType
from chatmemory.models import Step
from chatmemory.reading.clearings import Clearing
from chatmemory.reading.indexes import IndexInMemory
from chatmemory.reading.rows import MemoryRow, MessageDetail, Page, StepDetail
from chatmemory.reading.simulation import NO_OUTLOOK, Outlook
from chatmemory.reading.steps import StepSamples
from chatmemory.reading.summaries import Coverage
from chatmemory.reading.windows import MessageView, StoredState, WindowView
from chatmemory.recall.incidents import Incident
from chatmemory.recall.loads import Keeping
from chatmemory.windows.policies import Policy
from inspector.shell.highlights import NO_HIGHLIGHTS, Highlights
from inspector.shell.needs import NextNeed

NO_HISTORY = Page(())
ReadValues = dict[str, Any]  # by the name that a room has given: of any type


@dataclass(frozen=True)
class KeepingLimit:
    """The limit that would have kept a message in memory until the message was next needed. The
    limit would have to be in force from the first message on.

    `need` says when the message was needed; None if no needs are known. `step` is the step of this
    need. For a message that was not needed, `step` is the step that the page shows. `policy` is the
    policy in force at `step`, and `message_count` the number of messages in history by then.

    `keeping` has the limit, or is None if the limit is unknown. For a long history, it is unknown
    until somebody asks for it: then `deferred` is the number of messages to replay.

    A replay ignores some changes: `leaves_out_changes` means that memory was cleared or set as a
    whole, and `leaves_out_pins` that messages were pinned.
    """

    seq: int
    step: int
    policy: Policy
    message_count: int
    need: NextNeed | None = None
    keeping: Keeping | None = None
    deferred: int = 0
    leaves_out_changes: bool = False
    leaves_out_pins: bool = False

    @property
    def needed(self) -> Incident | None:
        """The incident in which the message was needed, or None."""
        return self.need.incident if self.need else None

    @property
    def is_within_limit(self) -> bool:
        """Whether the limit in force would have sufficed, if it had been in force from the start
        and nothing had been pinned.
        """
        limit = self.keeping.limit if self.keeping else None
        return limit is not None and limit <= self.policy.limit


@dataclass(frozen=True)
class ConversationQuery:
    """The URL parameters of a conversation page.

    `at` is the step to show (None: the newest), and `msg` the selected message (-2: the second
    draft of a simulation). `before` and `after` bound the shown part of the history. `other` is a
    step to compare with; only differences in messages with a number above `past` are listed.

    `replay` asks for the limit that would have kept the selected message, even in a long history.
    `open` has the names of unfolded sections: folded sections are neither computed nor rendered.
    `room_parameters` has the parameters of rooms (features) as text, by name.
    """

    at: int | None = None
    msg: int | None = None
    before: int | None = None
    after: int | None = None
    other: int | None = None
    past: int | None = None
    replay: bool = False
    open: frozenset[str] = frozenset()
    room_parameters: Mapping[str, str] = field(default_factory=dict)

    def number(self, name: str) -> int | None:
        """Return the number in a room's parameter, or None if it is missing or no number."""
        text = self.room_parameters.get(name, "")
        return int(text) if text.isascii() and text.isdecimal() else None


@dataclass(frozen=True)
class ShownStep:
    """The step that a page shows, with the steps around it.

    - `n` is its number. `detail` is None at step 0.
    - `samples` are the steps of the timeline.
    - `evictions` are the nearest steps before and after `n` at which a message left memory.
    - `compared` is the window of another step, to compare with.
    """

    n: int
    detail: StepDetail | None
    samples: StepSamples
    evictions: tuple[int | None, int | None]
    compared: WindowView | None = None


@dataclass(frozen=True)
class ShownMessages:
    """The messages that a page shows.

    - `part` is the slice of the window's rows to show. A system message at the beginning is shown
      apart. `history` is the shown part of the history.
    - `texts` has the beginnings of texts, and `calls` the IDs of the tool calls that messages make
      or answer, both by seq.
    - `marks` are the highlights of a room (feature).
    """

    part: slice
    calls: Mapping[int, CallIds]
    history: Page = NO_HISTORY
    texts: Mapping[int, str] = field(default_factory=dict)
    marks: Highlights = NO_HIGHLIGHTS


@dataclass(frozen=True)
class WindowContents:
    """The messages of a window that differ from plain messages of the history. A key is the number
    of a message.

    - `injected` are the messages that a client put into memory, and that are not in the history.
    - `original_tokens` has the original token counts of messages whose count in the window differs.
    - `cleared` has the placeholders of the cleared tool results in the window.
    - `summaries` are the summaries in the window or selected, with the messages that they cover.
    - `media` are the messages with images, audio, video or files.
    - `index` is the index of exact terms, or None.
    """

    injected: frozenset[int] = frozenset()
    original_tokens: Mapping[int, int] = field(default_factory=dict)
    cleared: Mapping[int, str] = field(default_factory=dict)
    summaries: Mapping[int, Coverage] = field(default_factory=dict)
    media: frozenset[int] = frozenset()
    index: IndexInMemory | None = None


@dataclass(frozen=True)
class Selection:
    """The selected message, `row`, and why it is in memory or not. `row` is None if no message is
    selected.

    - `left_by` is the change by which the message left, or None while the message is in memory.
    - `clearing` is the change that cleared the message, if the message is a cleared tool result.
    - `would_keep` is the limit that would have kept the message.
    - `without_index` says when the message would have left if memory had no index, or is "".
    - If the message is redacted, `left_summaries` are the summaries that cover the message and are
      not redacted.
    """

    row: MessageDetail | None = None
    left_by: ChangeResult | None = None
    clearing: Clearing | None = None
    would_keep: KeepingLimit | None = None
    without_index: str = ""
    left_summaries: tuple[int, ...] = ()


@dataclass(frozen=True)
class SimulatedChanges:
    """The changes that a page shows instead of stored changes. `changes` is None if the page shows
    what is stored.

    `drafts` are the messages that are added. If a limit is tried without drafts, `trim` is the
    eviction that the limit would cause at the next add. `outlook` says what else the changes do.
    `is_replay` means that the page shows the history under another limit from the first message on.
    """

    changes: tuple[ChangeResult, ...] | None = None
    drafts: tuple[MessageDetail, ...] = ()
    trim: ChangeResult | None = None
    outlook: Outlook = NO_OUTLOOK
    is_replay: bool = False


STORED = SimulatedChanges()


@dataclass(frozen=True)
class ConversationState:
    """The state of a conversation at a step, as a page shows it.

    - `stored` is the conversation as it is stored at the step. `window` is the window that the page
      shows: the stored window, or the result of a simulation.
    - `read` has values that rooms (features) have read for the page, by name, so that they are read
      only once.
    """

    query: ConversationQuery
    memory: MemoryRow
    stored: StoredState
    step: ShownStep
    window: WindowView
    contents: WindowContents
    shown: ShownMessages
    selection: Selection
    simulation: SimulatedChanges = STORED
    read: ReadValues = field(default_factory=dict, compare=False)

    @property
    def is_live(self) -> bool:
        return self.query.at is None

    @property
    def is_policy_unknown(self) -> bool:
        """Whether the policy in force is unknown: the page shows step 0, and step 1 changed the
        policy.
        """
        first = self.step.samples.part[:1]
        return self.step.n == 0 and any(each.kind == Step.Kind.POLICY for each in first)

    @property
    def is_simulated(self) -> bool:
        return self.simulation.changes is not None

    @cached_property
    def change(self) -> ChangeResult | None:
        """The change of the shown step; in a simulation, the change that all drafts make together,
        or the tried limit alone. None at step 0.
        """
        if self.simulation.changes is None:
            return self.step.detail.change if self.step.detail else None
        return combined(self.simulation.changes) or self.simulation.trim

    @cached_property
    def receipts(self) -> list[tuple[ChangeResult, Receipt]]:
        """The simulated changes, each with its arithmetic line by line. Computed once, because many
        evictions take a while.
        """
        return [(change, receipt(change)) for change in self.simulation.changes or ()]

    @cached_property
    def in_window(self) -> frozenset[int]:
        """The numbers of the messages that the model sees."""
        return frozenset(self.window.seqs)

    @cached_property
    def evicted(self) -> dict[int, int]:
        """The numbers of the evicted messages, each with its position in the eviction: 0 for the
        first.

        Empty for a change that only replaces messages in place, such as a tool result that is
        cleared.
        """
        evicted = () if self.change is None or self.change.only_replaces else self.change.evicted
        return {each.seq: position for position, each in enumerate(evicted)}

    @property
    def indexed(self) -> Mapping[int, tuple[str, ...]]:
        """The exact terms that the index in memory lists, by the numbers of the messages that
        contained them.
        """
        index = self.contents.index
        return index.terms if index else {}

    @property
    def is_index_new(self) -> bool:
        """Whether the index was made by a simulation and is not stored."""
        index = self.contents.index
        return index is not None and index.seq not in self.stored.window.seqs

    @property
    def waiting_call(self) -> int | None:
        """The number of the message whose tool calls still await results at the end of the window,
        or None.
        """
        rows = self.window.in_order
        position = waiting_turn(self._turn(*each) for each in enumerate(rows))
        return None if position is None else rows[position].seq

    def _turn(self, index: int, row: MessageView) -> Turn:
        ids = self.shown.calls.get(row.seq, (None,))
        if row.type is MessageType.TOOL_EXECUTION_RESULT:
            return Turn(index, row.seq, row.type, answers=ids[0])
        return Turn(index, row.seq, row.type, ids if row.has_calls else ())


def combined(changes: Sequence[ChangeResult]) -> ChangeResult | None:
    """Return several changes as one change, or None without changes."""
    if len(changes) < 2:
        return changes[0] if changes else None
    effective = [change for change in changes if not change.ignored] or changes
    return replace(
        effective[-1],
        before=changes[0].before,
        arrived=tuple(each for change in changes for each in change.arrived),
        evicted=tuple(each for change in changes for each in change.evicted),
        passed_pins=any(change.passed_pins for change in changes),
    )
