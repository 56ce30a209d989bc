"""Every read, as frozen rows: nothing here is lazy, and nothing writes.

"At step n" means after that step; without a step, now. Step 0 is the empty conversation.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from django.db.models import Count, F, Q, QuerySet, Sum
from django.db.models.functions import Left

from chatmemory.core.exceptions import (
    InvalidValue,
    MemoryNotFound,
    MessageNotFound,
    StepNotFound,
)
from chatmemory.core.messages import ChatMessage, MessageType
from chatmemory.core.policies import Policy
from chatmemory.core.tokens import family_named, remember_tokens
from chatmemory.core.windows import Reason, Totals, Window, overflow
from chatmemory.ledger import read_message, stay_entry
from chatmemory.models import Memory, Message, Stay, Step


@dataclass(frozen=True)
class MemoryRow:
    """A conversation now. `load` is what its limit bounds; None where the client decides."""

    id: str
    policy: Policy | None
    labels: dict[str, str]
    created_at: datetime
    updated_at: datetime
    steps: int
    messages: int
    said_count: int
    history_tokens: int
    window: Totals

    @property
    def load(self) -> int | None:
        return self.policy.load(*self.window) if self.policy else None

    @property
    def version(self) -> int:
        return self.steps


@dataclass(frozen=True)
class StepRow:
    """One change: the policy in force, and the window's totals on both sides of it."""

    n: int
    kind: str
    at: datetime
    actor: str
    by_client: bool
    policy: Policy | None
    estimator: str
    before: Totals
    after: Totals
    history_tokens: int
    said_count: int
    messages: int
    stays: int
    oldest: int
    note: str


@dataclass(frozen=True)
class StayRow:
    """One time in the window: from `entered_step` until `left_step` (None: still in)."""

    n: int
    seq: int
    entered_step: int
    left_step: int | None
    reason: Reason | None
    tokens: int

    def covers(self, step: int) -> bool:
        return self.entered_step <= step and (self.left_step is None or self.left_step > step)


@dataclass(frozen=True)
class MessageRow:
    """A message with its life in the window. MOVED stays are part of one life, see `visits`."""

    seq: int
    type: MessageType
    text: str
    payload: str
    message: ChatMessage
    tokens: int
    origin: str
    said_at: datetime
    client_id: str | None
    stays: tuple[StayRow, ...] = ()

    @property
    def has_calls(self) -> bool:
        return self.message.has_tool_execution_requests

    def is_in_window(self, step: int) -> bool:
        return any(stay.covers(step) for stay in self.stays)

    def departure(self, step: int) -> StayRow | None:
        """The last stay that ended by `step`, unless the message is in the window then."""
        if self.is_in_window(step):
            return None
        ended = [s for s in self.stays if s.left_step is not None and s.left_step <= step]
        return ended[-1] if ended else None

    @cached_property
    def visits(self) -> tuple[tuple[int, int | None, Reason | None], ...]:
        """(entered, left, reason) of each unbroken time in the window."""
        visits: list[tuple[int, int | None, Reason | None]] = []
        entered: int | None = None
        for stay in self.stays:
            entered = stay.entered_step if entered is None else entered
            if stay.reason is not Reason.MOVED:
                visits.append((entered, stay.left_step, stay.reason))
                entered = None
        return tuple(visits)


@dataclass(frozen=True)
class WindowRow:
    """A message in the window, counted by the family that was in force."""

    seq: int
    stay: int
    entered_step: int
    type: MessageType
    tokens: int
    text: str
    payload: str
    message: ChatMessage


@dataclass(frozen=True)
class WindowView:
    """The window at a step as the model sees it. `beyond` is stored but over a lowered limit: it is
    not shown to the model, and leaves at the next add."""

    memory_id: str
    step: int
    policy: Policy | None
    rows: tuple[WindowRow, ...]
    beyond: tuple[WindowRow, ...]

    @cached_property
    def totals(self) -> Totals:
        return Totals(len(self.rows), sum(row.tokens for row in self.rows))

    @property
    def load(self) -> int | None:
        return self.policy.load(*self.totals) if self.policy else None

    @property
    def messages(self) -> list[ChatMessage]:
        return [row.message for row in self.rows]


@dataclass(frozen=True)
class Departure:
    """A message that left at a step. `because_seq` is the tool call it went with, or its
    successor.
    """

    seq: int
    type: MessageType
    has_calls: bool
    tokens: int
    text: str
    message: ChatMessage
    reason: Reason
    entered_step: int
    because_seq: int | None


@dataclass(frozen=True)
class StepView:
    """A step with what came in and what left, in the order in which it happened."""

    step: StepRow
    arrivals: tuple[MessageRow, ...]
    departures: tuple[Departure, ...]
    moved: int


@dataclass(frozen=True)
class Page:
    """Messages of the history in order of seq; the flags tell whether more lie on either side."""

    rows: tuple[MessageRow, ...]
    has_earlier: bool
    has_later: bool


# Conversations


def memory(memory_id: str) -> MemoryRow:
    """Raises MemoryNotFound."""
    return memory_row(_memory(memory_id))


def any_memory() -> bool:
    """Whether there is any conversation."""
    return Memory.objects.exists()


def memory_row(row: Memory) -> MemoryRow:
    return MemoryRow(
        id=row.pk,
        policy=row.policy,
        labels=row.labels,
        created_at=row.created_at,
        updated_at=row.updated_at,
        steps=row.steps,
        messages=row.messages,
        said_count=row.said_count,
        history_tokens=row.history_tokens,
        window=Totals(row.window_count, row.window_tokens),
    )


def _memory(memory_id: str) -> Memory:
    row: Memory | None = Memory.objects.filter(pk=memory_id).first()
    if row is None:
        raise MemoryNotFound(f"no conversation has the id {memory_id!r}")
    return row


# The fleet


@dataclass(frozen=True)
class Overview:
    """A page of conversations, and cursors to the pages beside it."""

    rows: tuple[OverviewRow, ...]
    total: int
    newer: str | None
    older: str | None


@dataclass(frozen=True)
class OverviewRow:
    """A conversation with the newest thing said, and its window's load over the last steps."""

    memory: MemoryRow
    snippet: str
    loads: tuple[int, ...]


@dataclass(frozen=True)
class Fleet:
    """Headline numbers since a moment."""

    conversations: int
    active: int
    forgotten: int
    forgotten_in: int
    reach: int


@dataclass(frozen=True)
class FeedItem:
    """A message that left memory, lately and anywhere."""

    memory_id: str
    at: datetime
    step: int
    seq: int
    type: MessageType
    has_calls: bool
    text: str
    reason: Reason


SPARK_STEPS = 40
ORDERINGS: dict[str, Any] = {
    "activity": F("updated_at"),
    "forgotten": F("said_count") - F("window_count"),
    "said": F("said_count"),
}


def overview(
    *,
    search: str = "",
    policy: str = "",
    active_since: datetime | None = None,
    ordering: str = "activity",
    older_than: str = "",
    newer_than: str = "",
    size: int = 25,
) -> Overview:
    """A page of conversations, the highest of `ordering` first. Raises InvalidValue for a bad
    cursor.
    """
    rows = Memory.objects.all()
    rows = rows.containing(search) if search else rows
    rows = rows.with_policy(policy) if policy else rows
    rows = rows.filter(updated_at__gte=active_since) if active_since else rows
    total = rows.count()
    rows = rows.annotate(ordered_by=ORDERINGS[ordering])
    upwards = bool(newer_than)
    if older_than or newer_than:
        value, pk = _read_cursor(older_than or newer_than, ordering)
        side = "gt" if upwards else "lt"
        beyond = Q(**{f"ordered_by__{side}": value}) | Q(ordered_by=value, **{f"pk__{side}": pk})
        rows = rows.filter(beyond)
    keys = ("ordered_by", "pk") if upwards else ("-ordered_by", "-pk")
    found = list(rows.order_by(*keys)[: size + 1])
    more, found = len(found) > size, found[:size]
    if upwards:
        found.reverse()
    return Overview(
        rows=_overview_rows(found),
        total=total,
        newer=_cursor(found[0]) if found and (more if upwards else older_than) else None,
        older=_cursor(found[-1]) if found and (more or upwards) else None,
    )


def fleet(since: datetime) -> Fleet:
    """Headline numbers: how many conversations, what was forgotten, how far memory reaches."""
    active = Memory.objects.filter(updated_at__gte=since)
    adds = Step.objects.filter(at__gte=since, kind=Step.Kind.ADD)
    adds = adds.annotate(left=F("count_before") + 1 - F("count_after")).filter(left__gt=0)
    left = adds.aggregate(sum=Sum("left"), memories=Count("memory_id", distinct=True))
    reaching = active.filter(window_count__gt=0).order_by("window_count")
    middle = reaching.count() // 2
    reach = reaching.values_list("window_count", flat=True)[middle : middle + 1]
    return Fleet(
        conversations=Memory.objects.count(),
        active=active.count(),
        forgotten=left["sum"] or 0,
        forgotten_in=left["memories"],
        reach=next(iter(reach), 0),
    )


def feed(size: int = 12) -> list[FeedItem]:
    """What left memory last, the latest first."""
    adds = Step.objects.filter(kind=Step.Kind.ADD, count_after__lte=F("count_before"))
    steps = list(adds.order_by("-at", "memory_id", "-n")[:size])
    if not steps:
        return []
    ended = Q()
    for row in steps:
        ended |= Q(memory_id=row.memory_id, left_step=row.n)
    at = {(row.memory_id, row.n): row.at for row in steps}
    stays = Stay.objects.filter(ended).exclude(reason=Reason.MOVED).select_related("message")
    items = [
        FeedItem(
            memory_id=stay.memory_id,
            at=at[stay.memory_id, stay.left_step],
            step=stay.left_step,
            seq=stay.seq,
            type=MessageType(stay.type),
            has_calls=stay.has_calls,
            text=stay.message.text[:200],
            reason=Reason(str(stay.reason)),
        )
        for stay in stays[: size * 20]
        if stay.left_step is not None
    ]
    return sorted(items, key=lambda item: (item.at, item.step, item.seq), reverse=True)[:size]


def _overview_rows(rows: Sequence[Memory]) -> tuple[OverviewRow, ...]:
    newest, recent = Q(), Q()
    for row in rows:
        newest |= Q(memory_id=row.pk, seq=row.messages)
        recent |= Q(memory_id=row.pk, n__gt=row.steps - SPARK_STEPS)
    snippets: dict[str, str] = {}
    loads: dict[str, list[int]] = {row.pk: [] for row in rows}
    if rows:
        texts = Message.objects.filter(newest).annotate(start=Left("text", 200))
        snippets = dict(texts.values_list("memory_id", "start"))
        for step in Step.objects.filter(recent).order_by("n"):
            policy = step.policy
            after = Totals(step.count_after, step.tokens_after)
            loads[step.memory_id].append(policy.load(*after) if policy else after.tokens)
    return tuple(
        OverviewRow(memory_row(row), snippets.get(row.pk, ""), tuple(loads[row.pk])) for row in rows
    )


def _cursor(row: Any) -> str:
    value = row.ordered_by
    value = value.isoformat() if isinstance(value, datetime) else value
    return base64.urlsafe_b64encode(json.dumps([value, row.pk]).encode()).decode()


def _read_cursor(text: str, ordering: str) -> tuple[Any, str]:
    """Where a page begins. Raises InvalidValue for what `_cursor` never wrote for this ordering."""
    try:
        value, pk = json.loads(base64.urlsafe_b64decode(text.encode()))
        if ordering == "activity":
            return datetime.fromisoformat(value).astimezone(UTC), _text(pk)
        return _count(value), _text(pk)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise InvalidValue("this page link is broken: start again from the first page") from error


def _text(value: object) -> str:
    if not isinstance(value, str) or "\0" in value or any("\ud800" <= c <= "\udfff" for c in value):
        raise ValueError("not an id")
    return value


def _count(value: object) -> int:
    if not isinstance(value, int) or abs(value) >= 2**63:
        raise ValueError("not a number of messages")
    return value


# The tape


@dataclass(frozen=True)
class TapeCell:
    """One sampled step: the window's load and all tokens said by then, and the message it
    brought.
    """

    step: int
    load: int
    history: int
    seq: int | None
    type: MessageType | None
    has_calls: bool
    tokens: int
    left_step: int | None


TAPE_SAMPLES = 400


def tape(memory_id: str, steps: int, at: int) -> list[TapeCell]:
    """Up to 400 steps: all of them, or the nearest 200 and a sample of the rest taken by key.

    `load` and `history` count messages under a message window, tokens otherwise.
    """
    numbers = sample(steps, at)
    rows = list(Step.objects.filter(memory_id=memory_id, n__in=numbers).order_by("n"))
    newest = {row.stays: row.n for row in rows if row.kind == Step.Kind.ADD}
    stays = Stay.objects.filter(memory_id=memory_id, n__in=list(newest))
    brought = {stay.entered_step: stay for stay in stays if stay.entered_step == newest[stay.n]}
    return [_tape_cell(row, brought.get(row.n)) for row in rows]


def sample(steps: int, at: int) -> list[int]:
    """The numbers of the sampled steps, ascending; `at` is among them."""
    if steps <= TAPE_SAMPLES:
        return list(range(1, steps + 1))
    near = range(max(1, at - 100), min(steps, at + 100) + 1)
    spread = TAPE_SAMPLES - len(near)
    far = (1 + round(i * (steps - 1) / (spread - 1)) for i in range(spread))
    return sorted({*near, *far})


def _tape_cell(row: Step, stay: Stay | None) -> TapeCell:
    policy = row.policy
    in_messages = policy is not None and policy.unit == "msg"
    after = Totals(row.count_after, row.tokens_after)
    return TapeCell(
        step=row.n,
        load=policy.load(*after) if policy else after.tokens,
        history=row.said_count if in_messages else row.history_tokens,
        seq=stay.seq if stay else None,
        type=MessageType(stay.type) if stay else None,
        has_calls=bool(stay and stay.has_calls),
        tokens=stay.tokens if stay else 0,
        left_step=stay.left_step if stay else None,
    )


# The window


def open_messages(memory_id: str) -> list[ChatMessage]:
    """The open stays in order, untrimmed; [] for an unknown id (the store protocol's get).

    Each message remembers its stored token count, so that a reader need not count again.
    """
    named = Memory.objects.filter(pk=memory_id).values_list("policy_estimator", flat=True).first()
    family = family_named(named) if named else ""
    messages = []
    for stay in _open_stays(memory_id):
        message = read_message(stay.message)
        remember_tokens(message, family, stay.tokens)
        messages.append(message)
    return messages


def window(memory_id: str, at: int | None = None) -> WindowView:
    """The window after step `at`. Raises MemoryNotFound, StepNotFound."""
    row = _memory(memory_id)
    if at is None:
        return _view(memory_id, row.steps, row.policy, _open_stays(memory_id))
    if at == 0:
        return _view(memory_id, 0, row.policy, ())
    step = _step(memory_id, at)
    return _view(memory_id, at, step.policy, _stays_at(step))


def _open_stays(memory_id: str) -> QuerySet[Stay]:
    stays = Stay.objects.filter(memory_id=memory_id, left_step=None)
    return stays.order_by("rank").select_related("message")


def _stays_at(step: Step) -> QuerySet[Stay]:
    """The stays open after a step: a range of numbers, and the protected ones below it."""
    at, oldest = step.n, step.oldest
    protected = Q(type=MessageType.SYSTEM) | Q(pinned=True)
    stays = Stay.objects.filter(memory_id=step.memory_id, n__lte=step.stays, entered_step__lte=at)
    stays = stays.filter(Q(left_step=None) | Q(left_step__gt=at))
    return stays.filter(Q(n__gte=oldest) | protected).order_by("rank").select_related("message")


def _view(memory_id: str, step: int, policy: Policy | None, stays: Iterable[Stay]) -> WindowView:
    stays = list(stays)
    hidden: set[object] = set()
    if policy:
        entries = Window(map(stay_entry, stays))
        hidden = {eviction.entry.key for eviction in overflow(entries, policy)}
    rows = [(stay.n in hidden, _window_row(stay)) for stay in stays]
    return WindowView(
        memory_id,
        step,
        policy,
        rows=tuple(row for is_hidden, row in rows if not is_hidden),
        beyond=tuple(row for is_hidden, row in rows if is_hidden),
    )


def _window_row(stay: Stay) -> WindowRow:
    return WindowRow(
        seq=stay.seq,
        stay=stay.n,
        entered_step=stay.entered_step,
        type=MessageType(stay.type),
        tokens=stay.tokens,
        text=stay.message.text,
        payload=stay.message.payload,
        message=read_message(stay.message),
    )


# The history


def history(
    memory_id: str,
    *,
    at: int | None = None,
    before: int | None = None,
    after: int | None = None,
    around: int | None = None,
    size: int = 50,
) -> Page:
    """What was said by step `at`, a page of it in order of seq.

    The last `size` messages; or those `before` a seq, `after` a seq, or `around` one. Raises
    MemoryNotFound, StepNotFound.
    """
    row = _memory(memory_id)
    newest = row.messages if at is None else _step(memory_id, at).messages if at else 0
    said = Message.objects.filter(memory_id=memory_id, seq__lte=newest, origin=Message.Origin.SAID)
    if after is not None:
        found = list(said.filter(seq__gt=after).order_by("seq")[:size])
    else:
        edge = before if before is not None else newest + 1
        if around is not None:
            ahead = said.filter(seq__gte=around).order_by("seq")[: size // 2 + 1]
            edge = max([seq for (seq,) in ahead.values_list("seq")], default=newest) + 1
        found = list(said.filter(seq__lt=edge).order_by("-seq")[:size])[::-1]
    first, last = (found[0].seq, found[-1].seq) if found else (0, newest)
    return Page(
        rows=_with_stays(memory_id, found),
        has_earlier=said.filter(seq__lt=first).exists(),
        has_later=said.filter(seq__gt=last).exists() if found else False,
    )


def said(memory_id: str, at: int | None = None) -> list[ChatMessage]:
    """All that was said by step `at`, in order. Raises MemoryNotFound, StepNotFound."""
    row = _memory(memory_id)
    newest = row.messages if at is None else _step(memory_id, at).messages if at else 0
    rows = Message.objects.filter(
        memory_id=memory_id, seq__lte=newest, origin=Message.Origin.SAID
    ).order_by("seq")
    return [read_message(row) for row in rows.iterator(2_000)]


def message(memory_id: str, seq: int) -> MessageRow:
    """One message with its stays. Raises MemoryNotFound, MessageNotFound."""
    row = Message.objects.filter(memory_id=memory_id, seq=seq).first()
    if row is None:
        _memory(memory_id)
        raise MessageNotFound(f"{memory_id!r} has no message #{seq}")
    return _with_stays(memory_id, [row])[0]


def mentions(
    memory_id: str, phrase: str, *, at: int | None = None, size: int = 50
) -> tuple[tuple[MessageRow, ...], int]:
    """The latest messages said by step `at` that hold a phrase, and how many do in all.

    In order of seq; letter case aside. Raises MemoryNotFound, StepNotFound.
    """
    row = _memory(memory_id)
    newest = row.messages if at is None else _step(memory_id, at).messages if at else 0
    said = Message.objects.filter(
        memory_id=memory_id,
        seq__lte=newest,
        origin=Message.Origin.SAID,
        text__icontains=phrase,
    )
    found = list(said.order_by("-seq")[:size])[::-1]
    return _with_stays(memory_id, found), len(found) if len(found) < size else said.count()


def _with_stays(memory_id: str, rows: Sequence[Message]) -> tuple[MessageRow, ...]:
    stays: dict[int, list[StayRow]] = {row.seq: [] for row in rows}
    found = Stay.objects.filter(memory_id=memory_id, seq__in=list(stays)).order_by("n")
    for stay in found if rows else ():
        stays[stay.seq].append(_stay_row(stay))
    return tuple(_message_row(row, stays[row.seq]) for row in rows)


def _message_row(row: Message, stays: Iterable[StayRow] = ()) -> MessageRow:
    return MessageRow(
        seq=row.seq,
        type=MessageType(row.type),
        text=row.text,
        payload=row.payload,
        message=read_message(row),
        tokens=row.tokens,
        origin=row.origin,
        said_at=row.said_at,
        client_id=row.client_id,
        stays=tuple(stays),
    )


def _stay_row(stay: Stay) -> StayRow:
    return StayRow(
        n=stay.n,
        seq=stay.seq,
        entered_step=stay.entered_step,
        left_step=stay.left_step,
        reason=Reason(stay.reason) if stay.reason else None,
        tokens=stay.tokens,
    )


# The ledger


def step(memory_id: str, n: int) -> StepView:
    """A step with arrivals and departures. Raises MemoryNotFound, StepNotFound."""
    row = _step(memory_id, n)
    before = Step.objects.filter(memory_id=memory_id, n=n - 1).values_list("stays", flat=True)
    entered = Stay.objects.filter(
        memory_id=memory_id, n__gt=before.first() or 0, n__lte=row.stays
    ).order_by("n")
    ended = Stay.objects.filter(memory_id=memory_id, left_step=n).order_by("rank")
    left = list(ended.select_related("message"))
    moved = {stay.seq for stay in left if stay.reason == Reason.MOVED}
    arrived = [stay.message for stay in entered.select_related("message") if stay.seq not in moved]
    departed = [stay for stay in left if stay.reason != Reason.MOVED]
    return StepView(
        step=step_row(row),
        arrivals=_with_stays(memory_id, arrived),
        departures=tuple(_departures(departed, arrived)),
        moved=len(moved),
    )


def evictions_around(memory_id: str, at: int) -> tuple[int | None, int | None]:
    """The nearest steps at which a message left, before `at` and after it."""
    left = Stay.objects.filter(memory_id=memory_id).exclude(reason=Reason.MOVED)
    before = (
        left.filter(left_step__lt=at).order_by("-left_step").values_list("left_step", flat=True)
    )
    after = left.filter(left_step__gt=at).order_by("left_step").values_list("left_step", flat=True)
    return before.first(), after.first()


def steps(memory_id: str, *, after: int = 0, size: int = 50) -> list[StepRow]:
    """Steps in order, beginning behind `after`. Raises MemoryNotFound."""
    _memory(memory_id)
    rows = Step.objects.filter(memory_id=memory_id, n__gt=after).order_by("n")[:size]
    return [step_row(row) for row in rows]


def step_row(row: Step) -> StepRow:
    return StepRow(
        n=row.n,
        kind=row.kind,
        at=row.at,
        actor=row.actor,
        by_client=row.by_client,
        policy=row.policy,
        estimator=row.policy_estimator,
        before=Totals(row.count_before, row.tokens_before),
        after=Totals(row.count_after, row.tokens_after),
        history_tokens=row.history_tokens,
        said_count=row.said_count,
        messages=row.messages,
        stays=row.stays,
        oldest=row.oldest,
        note=row.note,
    )


def _step(memory_id: str, n: int) -> Step:
    row = Step.objects.filter(memory_id=memory_id, n=n).first()
    if row is None:
        known = _memory(memory_id).steps
        raise StepNotFound(f"{memory_id!r} has steps 0 to {known}, and no step {n}")
    return row


def _departures(stays: Sequence[Stay], arrived: Sequence[Message]) -> Iterable[Departure]:
    """By rank, which is the order of eviction; a result names the evicted call before it."""
    call: int | None = None
    system = next((row.seq for row in arrived if row.type == MessageType.SYSTEM), None)
    for stay in stays:
        reason = Reason(str(stay.reason))
        if stay.has_calls:
            call = stay.seq
        because = {Reason.ORPHANED: call, Reason.REPLACED: system}.get(reason)
        yield Departure(
            seq=stay.seq,
            type=MessageType(stay.type),
            has_calls=stay.has_calls,
            tokens=stay.tokens,
            text=stay.message.text,
            message=read_message(stay.message),
            reason=reason,
            entered_step=stay.entered_step,
            because_seq=because,
        )
