"""The frozen rows that reads return, and the functions that make them from stored rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Protocol, TypedDict

from django.db.models import OuterRef, Subquery
from django.db.models.lookups import IsNull

from chatmemory import database
from chatmemory.columns import shown_values, with_columns
from chatmemory.ledger.changes import ChangeResult
from chatmemory.ledger.windows import (
    FramedRow,
    read_message,
    stay_entry,
    totals_after,
    window_totals,
)
from chatmemory.messages.message import ChatMessage, MessageType
from chatmemory.messages.texts import readable_stored_text
from chatmemory.models import Memory, Message, Stay, Step
from chatmemory.recall.index import Index, index_of
from chatmemory.search import DIGEST_LABEL, user_labels
from chatmemory.windows.compaction import is_summary
from chatmemory.windows.eviction import IN_PLACE, CannotFit, Reason
from chatmemory.windows.policies import Policy
from chatmemory.windows.stored_policies import can_decide, total_under
from chatmemory.windows.transitions import why_it_cannot_fit
from chatmemory.windows.window import NOTHING, Totals, Weighable

if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations

    class _LeftOut(TypedDict):
        is_left_out: bool

    EndedStay = WithAnnotations[Stay, _LeftOut]


# Wide: a row of the table, with a field for each column that pages and the API show.
@dataclass(frozen=True)
class MemoryRow:
    """A conversation as it is now.

    - `last_step`, `last_seq`: the numbers of the newest step and of the newest message.
    - `said_count`, `history_tokens`: the number and the tokens of the messages in history.
    - `window`: the totals of memory.
    - `load`: the size of memory in the unit of the policy's limit; None if the client decides what
      is in memory.
    - `head`: the digest of the newest step.
    - `branched_from`: the id of the original conversation of a branch. Show it only to readers who
      may see the original.
    """

    id: str
    policy: Policy | None
    estimator: str
    labels: dict[str, str]
    created_at: datetime
    updated_at: datetime
    last_step: int
    last_seq: int
    said_count: int
    history_tokens: int
    window: Totals
    load: int | None
    head: str
    branched_from: str | None

    @property
    def history_load(self) -> int | None:
        """How much of the limit the whole history would take, in the policy's unit. Tokens include
        the overhead of a request.

        None if the client decides what is in memory. Also None for a policy whose load cannot be
        computed from the numbers of messages and tokens, such as a turn window.
        """
        if not can_decide(self.policy):
            return None
        said = Totals(self.said_count, self.history_tokens)
        cost = self.policy.cost_of(said)
        return None if cost is None else self.policy.load(said._replace(cost=cost))

    @property
    def is_over_limit(self) -> bool:
        return can_decide(self.policy) and self.policy.is_exceeded_by(self.window)

    @property
    def left_count(self) -> int:
        """The number of messages that left memory and are not in it now. Messages that are not in
        history, such as summaries, count, too.
        """
        return self.last_seq - self.window.count

    @property
    def version(self) -> int:
        return self.last_step

    @property
    def is_imported(self) -> bool:
        """Whether the conversation was imported from a file. Nothing is added to such a
        conversation.
        """
        return DIGEST_LABEL in self.labels

    @property
    def user_labels(self) -> dict[str, str]:
        """The labels without the label that identifies an import."""
        return user_labels(self.labels)


# Wide: a row of the table, with a field for each column that pages and the API show.
@dataclass(frozen=True)
@with_columns(Step, only_shown=True)
class StepRow:
    """A step of the ledger, with the policy in force.

    - `kind`: the kind of the change, such as `add`. `actor` is who made the change.
    - `by_client`: whether the client decided what is in memory.
    - `before`, `after`: the totals of memory before and after the step.
    - `said_count`, `history_tokens`: the number of messages in history after the step, and the sum
      of their tokens.
    - `note`: a remark about the step, such as "imported"; "" if there is no remark.
    """

    n: int
    kind: str
    at: datetime
    actor: str
    by_client: bool
    policy: Policy | None
    before: Totals
    after: Totals
    history_tokens: int
    said_count: int
    note: str


@dataclass
@with_columns(Stay, only_shown=True)
class StayDetail:
    """A stay of a message in memory, from `entered_step` to `left_step` (None while it lasts).

    - `reason`: why the stay ended; None while it lasts.
    - `tokens`: the message's tokens as they were counted during the stay.
    - `misfit`: why the message did not fit, if the step that added it also evicted it; else None.
    - `pinned`: whether the message is pinned during the stay. A pin begins a new stay.
    - `is_left_out`: whether the client left the message out of the list that it sent.
    """

    entered_step: int
    left_step: int | None
    reason: Reason | None
    tokens: int
    misfit: CannotFit | None = None
    pinned: bool = False
    is_left_out: bool = False

    def covers(self, step: int) -> bool:
        return self.entered_step <= step and (self.left_step is None or self.left_step > step)


# Wide: a row of the table, with a field for each column that pages and the API show.
@dataclass
@with_columns(Message, only_shown=True)
class MessageDetail:
    """A message with its stays in memory.

    - `tokens`: the token count when the message was added. The tokens of a stay can differ, such as
      after a recount.
    - `frame`: the stored JSON of the message without the `text`.
    - `attributes`: the JSON of a system message's attributes, which is not part of `frame`. None
      for other messages, and for a system message without attributes.
    - `origin`: SAID for a message of the history, SYNTHETIC for a message that is not in history.
    - `client_id`: the id that the client gave the message, or None.
    - `redacted`: the step that redacted the message, or None.
    """

    memory_id: str
    seq: int
    type: MessageType
    has_calls: bool
    text: str
    frame: str
    attributes: str | None
    tokens: int
    origin: str
    said_at: datetime
    client_id: str | None
    stays: tuple[StayDetail, ...] = ()
    redacted: StepRow | None = None

    @cached_property
    def message(self) -> ChatMessage:
        """The message as an object. Raises CorruptRow if the stored row cannot be read."""
        return read_message(self)

    @cached_property
    def readable(self) -> str:
        """The text as pages show it. A tool result begins with the tool's name, and tool calls are
        in readable form.
        """
        if not self.has_calls and self.type is not MessageType.TOOL_EXECUTION_RESULT:
            return self.text
        return readable_stored_text(self.frame, self.text)

    @property
    def is_summary(self) -> bool:
        """Whether the message is a summary from a compaction. In a branch, a copy of a summary
        counts, too.
        """
        return self.origin == Message.Origin.SYNTHETIC and is_summary(self.message)

    @cached_property
    def index(self) -> Index | None:
        """The index of exact terms, if this is an index message; else None."""
        return index_of(self.message) if self.origin == Message.Origin.SYNTHETIC else None

    def is_in_window(self, step: int) -> bool:
        return any(stay.covers(step) for stay in self.stays)

    def departure(self, step: int) -> StayDetail | None:
        """Return the latest stay that ended at `step` or before. None if there is none, or if the
        message is in memory at `step`.
        """
        if self.is_in_window(step):
            return None
        ended = [s for s in self.stays if s.left_step is not None and s.left_step <= step]
        return ended[-1] if ended else None

    def tokens_at(self, step: int) -> int:
        """Return the tokens of the message's latest stay that began at `step` or before. If there
        is no such stay, return `tokens`.
        """
        counted = [stay.tokens for stay in self.stays if stay.entered_step <= step]
        return counted[-1] if counted else self.tokens

    @cached_property
    def visits(self) -> tuple[tuple[int, int | None, Reason | None], ...]:
        """The periods in which the message was in memory, each as (step entered, step left,
        reason). For a period that has not ended, step left and reason are None.

        Consecutive stays are joined if the message did not leave memory between them, such as at a
        recount.
        """
        visits: list[tuple[int, int | None, Reason | None]] = []
        entered: int | None = None
        for stay in self.stays:
            entered = stay.entered_step if entered is None else entered
            if stay.reason not in IN_PLACE:
                visits.append((entered, stay.left_step, stay.reason))
                entered = None
        return tuple(visits)


@dataclass(frozen=True)
class StepDetail:
    """A step of the ledger, with its change: what came, what left and why."""

    row: StepRow
    change: ChangeResult


@dataclass(frozen=True)
class Page:
    """A part of the history: `rows` in order of seq.

    - `earlier`, `later`: how many messages of the history are before and after `rows`.
    - `before`: the time of the last message before `rows`. None if there is no such message, or if
      its time was not read.
    """

    rows: tuple[MessageDetail, ...]
    earlier: int = 0
    later: int = 0
    before: datetime | None = None


def memory_row(row: Memory) -> MemoryRow:
    policy = row.policy
    return MemoryRow(
        id=row.pk,
        policy=policy,
        estimator=row.policy_estimator,
        labels=row.labels,
        created_at=row.created_at,
        updated_at=row.updated_at,
        last_step=row.last_step,
        last_seq=row.last_seq,
        said_count=row.said_count,
        history_tokens=row.history_tokens,
        window=window_totals(row, policy),
        load=row.window_load if can_decide(policy) else None,
        head=bytes(row.head).hex(),
        branched_from=row.branched_from,
    )


def step_row(row: Step) -> StepRow:
    return StepRow(
        n=row.n,
        kind=row.kind,
        at=row.at,
        actor=row.actor,
        by_client=row.by_client,
        policy=row.policy,
        before=Totals(row.count_before, row.tokens_before),
        after=totals_after(row),
        history_tokens=row.history_tokens,
        said_count=row.said_count,
        note=row.note,
        **shown_values(Step, row),
    )


class MessageRow(FramedRow, Protocol):
    """The columns of a stored message that a `MessageDetail` needs."""

    @property
    def type(self) -> str: ...
    @property
    def tokens(self) -> int: ...
    @property
    def origin(self) -> str: ...
    @property
    def said_at(self) -> datetime: ...
    @property
    def client_id(self) -> str | None: ...


def with_stays(
    memory_id: str, rows: Sequence[MessageRow], known: Iterable[EndedStay] = ()
) -> tuple[MessageDetail, ...]:
    """Return the messages of these rows with their stays.

    `known` are stays that the caller has already read. Of each message, `known` must have all stays
    or none.
    """
    of_message: dict[int, list[EndedStay]] = {row.seq: [] for row in rows}
    stays = [stay for stay in known if stay.seq in of_message]
    stays += stays_of_messages(memory_id, of_message.keys() - {stay.seq for stay in stays})
    for stay in stays:
        of_message[stay.seq].append(stay)
    misfits = misfits_of(stays)
    return tuple(_with_its_stays(row, of_message[row.seq], misfits) for row in rows)


def message_detail(
    row: MessageRow, has_calls: bool, stays: tuple[StayDetail, ...] = ()
) -> MessageDetail:
    """Return the detail of a message row, which may be stored or only simulated."""
    return MessageDetail(
        memory_id=row.memory_id,
        seq=row.seq,
        type=MessageType(row.type),
        has_calls=has_calls,
        text=row.text,
        frame=row.frame,
        attributes=row.attributes,
        tokens=row.tokens,
        origin=row.origin,
        said_at=row.said_at,
        client_id=row.client_id,
        stays=stays,
        **shown_values(Message, row),
    )


def _with_its_stays(
    row: MessageRow, stays: Sequence[EndedStay], misfits: Mapping[tuple[str, int], CannotFit]
) -> MessageDetail:
    return message_detail(
        row,
        has_calls=any(stay.has_calls for stay in stays),
        stays=tuple(
            StayDetail(
                entered_step=stay.entered_step,
                left_step=stay.left_step,
                reason=Reason(stay.reason) if stay.reason else None,
                tokens=stay.tokens,
                misfit=misfits.get((stay.memory_id, stay.n)),
                pinned=stay.pinned,
                is_left_out=stay.is_left_out,
                **shown_values(Stay, stay),
            )
            for stay in stays
        ),
    )


def stays_of_messages(memory_id: str, seqs: Iterable[int]) -> list[EndedStay]:
    """Return the stays of the messages `seqs`, in the order in which they began.

    Each stay has the attribute `is_left_out`: whether it ended at a step where the client decided
    what is in memory.
    """
    seqs = list(seqs)
    if not seqs:
        return []
    # An EXISTS might let PostgreSQL read all steps, and an ORDER BY SQLite all stays.
    ends = Step.objects.filter(memory_id=memory_id, n=OuterRef("left_step"), by_client=True)
    stays = Stay.objects.filter(database.in_list("seq", seqs), memory_id=memory_id).annotate(
        is_left_out=IsNull(Subquery(ends.values("n")[:1]), False)
    )
    return sorted(stays, key=attrgetter("n"))


def misfits_of(stays: Iterable[Stay]) -> dict[tuple[str, int], CannotFit]:
    """Return why messages did not fit into memory, by conversation id and number of the stay. The
    result has only stays that began and ended at the same add.
    """
    at_once = [
        stay
        for stay in stays
        if stay.left_step == stay.entered_step and stay.reason == Reason.CAPACITY
    ]
    if not at_once:
        return {}
    ids, numbers = {stay.memory_id for stay in at_once}, {stay.entered_step for stay in at_once}
    steps = Step.objects.filter(memory_id__in=ids, n__in=numbers, kind=Step.Kind.ADD)
    of_step = {(step.memory_id, step.n): step for step in steps.filter(by_client=False)}
    pinned = pinned_at(of_step.values())
    found = {}
    for stay in at_once:
        place = stay.memory_id, stay.entered_step
        if place in of_step and (
            cause := misfit_at(of_step[place], stay_entry(stay), pinned[place])
        ):
            found[stay.memory_id, stay.n] = cause
    return found


def misfit_at(step: Step, message: Weighable, pinned: Totals) -> CannotFit | None:
    """Return why the message that `step` both added and evicted did not fit. None if the policy is
    not installed.

    The reason is worked out from the totals of memory after the step. `pinned` are the totals of
    the pinned messages in memory then.
    """
    policy = step.policy
    if not can_decide(policy):
        return None
    return why_it_cannot_fit(policy, totals_after(step).without(pinned), message, pinned)


def pinned_at(steps: Collection[Step]) -> dict[tuple[str, int], Totals]:
    """Return the totals of the pinned messages in memory after each step, by conversation id and
    step number.
    """
    totals = {(step.memory_id, step.n): NOTHING for step in steps}
    filled = [step for step in steps if step.count_after]
    if not filled:
        return totals
    ids = {step.memory_id for step in filled}
    pins = list(Stay.objects.filter(memory_id__in=ids, pinned=True))
    for step in filled:
        totals[step.memory_id, step.n] = total_under(
            step.policy,
            (
                stay_entry(pin)
                for pin in pins
                if pin.memory_id == step.memory_id
                and pin.entered_step <= step.n < (pin.left_step or step.n + 1)
            ),
        )
    return totals
