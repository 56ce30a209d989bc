"""The state of a conversation page, from which the page and its features build all parts without
further queries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
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
from chatmemory.recall.incidents import Forgotten, Incident
from chatmemory.recall.loads import Keeping
from chatmemory.windows.policies import Policy
from inspector.shell.highlights import NO_HIGHLIGHTS, Highlights

NO_HISTORY = Page(())


@dataclass(frozen=True)
class KeepingLimit:
    """The limit that, in force from the first message on, would have kept a message in memory until
    the message was next needed.

    The message was needed at message `needed.again`. If it was not needed, the limit would have
    kept it until `step`. `fact` is the part of the message that was needed. The history had
    `message_count` messages by then. Needs are known up to step `known_until`; None if no needs are
    known.

    `keeping` is None if the limit is unknown. Then `deferred` is the number of messages to replay,
    if nobody has asked for the replay yet. A replay of the history leaves out some changes:
    `leaves_out_changes` means that memory was cleared or set as a whole, `leaves_out_pins` that
    messages were pinned.
    """

    seq: int
    step: int
    policy: Policy
    message_count: int
    needed: Incident | None = None
    fact: Forgotten | None = None
    known_until: int | None = None
    keeping: Keeping | None = None
    deferred: int = 0
    leaves_out_changes: bool = False
    leaves_out_pins: bool = False

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

    `at` is a step (None: now), and `msg` the selected message (-2: the second draft of a
    simulation). `before` and `after` bound the shown part of the history. `other` is a step to
    compare with; only differences in messages with a number above `past` are listed. `replay` asks
    for the limit that would have kept the selected message, even in a long history. `open` has the
    names of unfolded sections: folded sections are neither computed nor rendered. `room_parameters`
    has the parameters of rooms as text, by name.
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
class ConversationState:
    """The state of a conversation at step `at`, as a page shows it.

    - `detail` is that step, or None at step 0. `stored` is the window as it is stored at the step,
      and `read` has the values that rooms have read for the page.
    - `part` is the slice of the window's rows that is shown below a leading system message; `texts`
      are the beginnings of their texts by seq.
    - `samples` are the steps of the timeline, and `evictions` the nearest steps before and after
      `at` at which a message left memory. `compared` is the window of another step, to compare
      with.
    - `left_by` is the change by which the selected message left, or None while it is in memory;
      `clearing` is the change that cleared it, if it is a cleared tool result.
    - In a simulation, `drafts`, `simulated` and `outlook` are set. `window` is the resulting window
      and `stored_window` the window before it. If a limit is tried without drafts, `trim` is the
      eviction that the limit would cause at the next add. In a replay, `window` is the memory under
      another limit from the first message on.
    - `would_keep` is the limit that would have kept the selected message. `calls` has the IDs of
      the tool calls that messages make or answer, by seq.
    - `injected` are the messages of the window that a client put there; they are not in the
      history.
    - `original_tokens` has the original token counts of messages that count differently in the
      window; of these, `cleared` are cleared tool results, with their texts.
    - `time_before_part` is the time of the message before the shown part of the history.
    - `summaries` are the summaries in the window or selected, with the messages that they cover,
      and `media` are the messages of the window with images, audio, video or files. If the selected
      message is redacted, `left_summaries` are summaries that cover it and are not redacted.
    - `index` is the index of exact terms in memory. `without_index` says when the selected message
      would have left without an index, or is "".
    - `marks` are the highlights of a room. The room reads them for the stored step, and adds what
      it read to `read`.
    """

    query: ConversationQuery
    memory: MemoryRow
    at: int
    detail: StepDetail | None
    window: WindowView
    stored_window: WindowView
    part: slice
    samples: StepSamples
    evictions: tuple[int | None, int | None]
    stored: StoredState
    history: Page = NO_HISTORY
    texts: Mapping[int, str] = field(default_factory=dict)
    calls: Mapping[int, CallIds] = field(default_factory=dict)
    selected: MessageDetail | None = None
    left_by: ChangeResult | None = None
    clearing: Clearing | None = None
    would_keep: KeepingLimit | None = None
    compared: WindowView | None = None
    drafts: tuple[MessageDetail, ...] = ()
    simulated: tuple[ChangeResult, ...] | None = None
    trim: ChangeResult | None = None
    outlook: Outlook = NO_OUTLOOK
    injected: frozenset[int] = frozenset()
    original_tokens: Mapping[int, int] = field(default_factory=dict)
    cleared: Mapping[int, str] = field(default_factory=dict)
    time_before_part: datetime | None = None
    is_replay: bool = False
    summaries: Mapping[int, Coverage] = field(default_factory=dict)
    media: frozenset[int] = frozenset()
    left_summaries: tuple[int, ...] = ()
    index: IndexInMemory | None = None
    without_index: str = ""
    marks: Highlights = NO_HIGHLIGHTS
    read: dict[str, Any] = field(default_factory=dict, compare=False)

    @property
    def is_live(self) -> bool:
        return self.query.at is None

    @property
    def is_policy_unknown(self) -> bool:
        """Whether the policy in force is unknown: the page shows step 0, and step 1 changed the
        policy.
        """
        first = self.samples.part[:1]
        return self.at == 0 and any(each.kind == Step.Kind.POLICY for each in first)

    @property
    def is_simulated(self) -> bool:
        return self.simulated is not None

    @cached_property
    def change(self) -> ChangeResult | None:
        """The change of the shown step; in a simulation, the change that all drafts make together,
        or the tried limit alone. None at step 0.
        """
        if self.simulated is None:
            return self.detail.change if self.detail else None
        return combined(self.simulated) or self.trim

    @cached_property
    def receipts(self) -> list[tuple[ChangeResult, Receipt]]:
        """The simulated changes, each with its arithmetic line by line. Computed once, because many
        evictions take a while.
        """
        return [(change, receipt(change)) for change in self.simulated or ()]

    @cached_property
    def in_window(self) -> frozenset[int]:
        """The numbers of the messages that the model sees."""
        return frozenset(self.window.seqs)

    @cached_property
    def evicted(self) -> dict[int, int]:
        """The evicted messages by number, each with its position in the eviction.

        Empty if the change only replaces messages: a cleared tool result and a renewed index keep
        their positions in memory.
        """
        evicted = () if self.change is None or self.change.only_replaces else self.change.evicted
        return {each.seq: position for position, each in enumerate(evicted)}

    @property
    def indexed(self) -> Mapping[int, tuple[str, ...]]:
        """The exact terms that the index in memory lists, by the numbers of the messages that
        contained them.
        """
        return self.index.terms if self.index else {}

    @property
    def is_index_new(self) -> bool:
        """Whether the index was made by a simulation and is not stored."""
        return self.index is not None and self.index.seq not in self.stored_window.seqs

    @property
    def waiting_call(self) -> int | None:
        """The number of the message whose tool calls await results at the end of the window; None
        if no call does.
        """
        rows = self.window.in_order
        position = waiting_turn(self._turn(*each) for each in enumerate(rows))
        return None if position is None else rows[position].seq

    def _turn(self, index: int, row: MessageView) -> Turn:
        ids = self.calls.get(row.seq, (None,))
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
