"""The state of a conversation page: all that the page shows, read in one database snapshot. The
page and the rooms build their parts from this state.
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
    """The limit that would have kept a message in memory until the message was needed again. The
    limit is computed as if it had applied from the first message on.

    - `seq`: the number of the message.
    - `need`: what a room knows about the next need of the message; None if no room knows.
    - `step`: the step at which the message was needed again. If it was not, the step that the page
      shows.
    - `policy`: the policy at `step`.
    - `message_count`: the number of messages in history just before the message was needed again.
      If it was not, the number at `step`.
    - `keeping`: the limit; None if it is unknown or not computed yet.
    - `deferred`: the number of messages to replay, if the history is so long that the limit is only
      found on request. Otherwise 0.
    - `leaves_out_changes`: whether memory was cleared or set as a whole, which a replay ignores.
    - `leaves_out_pins`: whether messages were pinned, which a replay ignores.
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
        """The incident in which the message `seq` was needed again. None if it was not needed
        again, or if no room knows.
        """
        return self.need.incident if self.need else None

    @property
    def is_within_limit(self) -> bool:
        """Whether the limit of `policy` was large enough to keep the message. If so, the message
        left for another reason: the limit was smaller before, or other messages were pinned, for
        example.
        """
        limit = self.keeping.limit if self.keeping else None
        return limit is not None and limit <= self.policy.limit


@dataclass(frozen=True)
class ConversationQuery:
    """The URL parameters of a conversation page.

    - `at`: the step to show; None for the newest step.
    - `msg`: the number of the selected message; -2 for the second draft of a simulation.
    - `before`, `after`: show the part of the history just before or after this message number.
    - `other`: a step to compare with the shown step.
    - `past`: a message number. Lists of messages, such as the differences to step `other`, show
      only messages with a greater number.
    - `replay`: whether to find the limit that would have kept the selected message, even in a long
      history.
    - `open`: the names of unfolded sections. Other sections are not computed.
    - `room_parameters`: the parameters of rooms as text, by name.
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
        """Return the number in a parameter of a room; None if the parameter is missing or is not a
        number.
        """
        text = self.room_parameters.get(name, "")
        return int(text) if text.isascii() and text.isdecimal() else None


@dataclass(frozen=True)
class ShownStep:
    """The step that a page shows, and steps around it.

    - `n`: the number of the step.
    - `detail`: the step with its changes; None at step 0.
    - `samples`: the steps on the timeline.
    - `evictions`: the nearest step before `n` and the nearest step after `n` at which a message
      left memory. Each is None if there is no such step.
    - `compared`: the window at the step with which the page compares; None without a comparison.
    """

    n: int
    detail: StepDetail | None
    samples: StepSamples
    evictions: tuple[int | None, int | None]
    compared: WindowView | None = None


@dataclass(frozen=True)
class ShownMessages:
    """The messages that a page shows. The keys of mappings are seqs.

    - `part`: the slice of the window's rows that is shown. A system message at the beginning is
      shown separately.
    - `history`: the shown part of the history.
    - `texts`: the beginnings of the messages' texts.
    - `calls`: the IDs of the tool calls that a message makes or answers.
    - `marks`: the highlights of a room.
    """

    part: slice
    calls: Mapping[int, CallIds]
    history: Page = NO_HISTORY
    texts: Mapping[int, str] = field(default_factory=dict)
    marks: Highlights = NO_HIGHLIGHTS


@dataclass(frozen=True)
class WindowContents:
    """What is special about messages in the window. The keys are seqs.

    - `injected`: messages that a client put into memory, and that are not in history.
    - `original_tokens`: token counts in the history, where they differ from those in the window.
    - `cleared`: the placeholders of cleared tool results.
    - `summaries`: the summaries in the window, and the selected summary even if it has left, each
      with the messages that it replaced.
    - `media`: messages with images, audio, video or files.
    - `index`: the index of exact terms, or None.
    """

    injected: frozenset[int] = frozenset()
    original_tokens: Mapping[int, int] = field(default_factory=dict)
    cleared: Mapping[int, str] = field(default_factory=dict)
    summaries: Mapping[int, Coverage] = field(default_factory=dict)
    media: frozenset[int] = frozenset()
    index: IndexInMemory | None = None


@dataclass(frozen=True)
class Selection:
    """The selected message (`row`), and why it is in memory or not. `row` is None if no message is
    selected.

    - `left_by`: the change by which the message last left memory; None if the message has not left
      or is in memory again.
    - `clearing`: the change that cleared the message, if it is a cleared tool result.
    - `would_keep`: the limit that would have kept the message; None unless the page asks for this
      limit.
    - `without_index`: when the message would have left if the policy had no index, such as `left 3
      messages later`. "" if unknown or without an index.
    - `left_summaries`: if the message is redacted, the numbers of summaries that replaced it and
      are not redacted.
    """

    row: MessageDetail | None = None
    left_by: ChangeResult | None = None
    clearing: Clearing | None = None
    would_keep: KeepingLimit | None = None
    without_index: str = ""
    left_summaries: tuple[int, ...] = ()


@dataclass(frozen=True)
class SimulatedChanges:
    """The changes of a simulation or replay. `changes` is None if the page shows what is stored.

    - `drafts`: the messages that the simulation adds.
    - `trim`: in a simulation without drafts, the change that would evict messages at the next add
      under the tried limit. None if nothing would leave.
    - `outlook`: further effects, such as tool results that would be cleared.
    - `is_replay`: whether the page shows a replay: the history, from the first message on, under
      another limit.
    """

    changes: tuple[ChangeResult, ...] | None = None
    drafts: tuple[MessageDetail, ...] = ()
    trim: ChangeResult | None = None
    outlook: Outlook = NO_OUTLOOK
    is_replay: bool = False


STORED = SimulatedChanges()


@dataclass(frozen=True)
class ConversationState:
    """What a page shows of a conversation at a step.

    - `stored`: the stored conversation at this step.
    - `window`: the window that the page shows: the stored window, or the result of a simulation.
    - `read`: values that rooms have read for this page, by name, so that they are read once.
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
        """Whether the policy at the shown step is unknown: at step 0, if step 1 changed the
        policy.
        """
        first = self.step.samples.part[:1]
        return self.step.n == 0 and any(each.kind == Step.Kind.POLICY for each in first)

    @property
    def is_simulated(self) -> bool:
        return self.simulation.changes is not None

    @cached_property
    def change(self) -> ChangeResult | None:
        """The change that the page shows.

        - For a stored step, the change of this step; None at step 0.
        - In a simulation with drafts, all changes combined into one.
        - In a simulation without drafts, the evictions under the tried limit; None if nothing
          leaves.
        - In a replay, None.
        """
        if self.simulation.changes is None:
            return self.step.detail.change if self.step.detail else None
        return combined(self.simulation.changes) or self.simulation.trim

    @cached_property
    def receipts(self) -> list[tuple[ChangeResult, Receipt]]:
        """The simulated changes, each with its receipt: the calculation of the change, line by
        line. Empty without a simulation.
        """
        return [(change, receipt(change)) for change in self.simulation.changes or ()]

    @cached_property
    def in_window(self) -> frozenset[int]:
        """The numbers of the messages that the model sees."""
        return frozenset(self.window.seqs)

    @cached_property
    def evicted(self) -> dict[int, int]:
        """The numbers of the messages that the shown `change` evicts, each with its position in the
        order of eviction: 0 for the first.

        Empty for a change that only replaces messages in place, such as clearing a tool result.
        """
        evicted = () if self.change is None or self.change.only_replaces else self.change.evicted
        return {each.seq: position for position, each in enumerate(evicted)}

    @property
    def indexed(self) -> Mapping[int, tuple[str, ...]]:
        """The exact terms in the index, by the number of the message that said them."""
        index = self.contents.index
        return index.terms if index else {}

    @property
    def is_index_new(self) -> bool:
        """Whether a simulation made the index, so that it is not stored."""
        index = self.contents.index
        return index is not None and index.seq not in self.stored.window.seqs

    @property
    def waiting_call(self) -> int | None:
        """The number of the message with tool calls that still wait for results at the end of the
        window. None if no tool call waits.
        """
        rows, behind = self.window.in_order, (MessageType.TOOL_EXECUTION_RESULT, MessageType.CUSTOM)
        last = next((row for row in reversed(rows) if row.type not in behind), None)
        if last is None or not last.has_calls:
            return None  # as in most windows
        position = waiting_turn(self._turn(*each) for each in enumerate(rows))
        return None if position is None else rows[position].seq

    def _turn(self, index: int, row: MessageView) -> Turn:
        ids = self.shown.calls.get(row.seq, (None,))
        if row.type is MessageType.TOOL_EXECUTION_RESULT:
            return Turn(index, row.seq, row.type, answers=ids[0])
        return Turn(index, row.seq, row.type, ids if row.has_calls else ())


def combined(changes: Sequence[ChangeResult]) -> ChangeResult | None:
    """Return several changes as one change; None if there are none."""
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
