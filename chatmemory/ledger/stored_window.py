"""A conversation as it is stored: its window now or after a step, and its messages, read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from django.db.models import Q, QuerySet

from chatmemory.core.codec import message_from_json
from chatmemory.core.estimators import family_named
from chatmemory.core.exceptions import CorruptRow, InvalidMessage, InvalidValue
from chatmemory.core.messages import ChatMessage, MessageType
from chatmemory.core.window import Entry, EntrySource, Totals, Window
from chatmemory.models import Memory, Stay, Step

HEAD_PAGE = 32
PAGE_MAX = 4096
_COUNTERS = (
    "last_seq",
    "last_stay",
    "said_count",
    "history_tokens",
    "oldest",
    "count_before",
    "tokens_before",
    "count_after",
    "tokens_after",
)


@dataclass(frozen=True)
class StayEntry(Entry):
    """An entry that has a stored stay; its key is the stay's number."""

    seq: int = field(default=0, compare=False)
    rank: int = field(default=0, compare=False)


def open_stays(memory_id: str) -> QuerySet[Stay]:
    """The stays of the window now, by rank."""
    return Stay.objects.filter(memory_id=memory_id, left_step=None).order_by("rank")


def stays_at(step: Step) -> QuerySet[Stay]:
    """The stays open after a step, by rank: a range of numbers, and the protected ones below it."""
    at, oldest = step.n, step.oldest
    protected = Q(type=MessageType.SYSTEM) | Q(pinned=True)
    stays = Stay.objects.filter(memory_id=step.memory_id)
    stays = stays.filter(n__lte=step.last_stay, entered_step__lte=at)
    stays = stays.filter(Q(left_step=None) | Q(left_step__gt=at))
    return stays.filter(Q(n__gte=oldest) | protected).order_by("rank")


def nothing_yet(memory: Memory) -> Step:
    """Step 0: the empty conversation, under the policy that it was made with."""
    first = Step.objects.filter(memory=memory, n=1).first() or memory
    step = Step(memory=memory, n=0, **dict.fromkeys(_COUNTERS, 0))
    step.policy, step.policy_estimator = first.policy, first.policy_estimator
    return step


class StoredStays(EntrySource):
    """The stays of a window by rank, read from the database in pages from the head."""

    def __init__(self, stays: QuerySet[Stay]) -> None:
        self._stays = stays

    def entries(self) -> Iterator[Entry]:
        page: list[Stay] = []
        size = HEAD_PAGE
        while True:
            behind = self._stays.filter(rank__gt=page[-1].rank) if page else self._stays
            page = list(behind[:size])
            yield from map(stay_entry, page)
            if len(page) < size:
                return
            size = min(size * 4, PAGE_MAX)

    def systems(self) -> Iterator[Entry]:
        return self._with_messages(self._stays.filter(type=MessageType.SYSTEM))

    def with_messages(self) -> Iterator[Entry]:
        return self._with_messages(self._stays)

    def _with_messages(self, stays: QuerySet[Stay]) -> Iterator[Entry]:
        for stay in stays.select_related("message"):
            yield stay_entry(stay, read_message(stay.message))


class CountedWindow(Window):
    """A stored window: its tokens are always counted by a family that can be named."""

    def count_with(self, family: str | None, count: Callable[[ChatMessage], int]) -> None:
        if family is None:
            raise InvalidValue(
                "this store counts tokens: a store that wraps it needs its `estimator`"
            )
        super().count_with(family, count)


def stored_window(memory: Memory, stays: QuerySet[Stay] | None = None) -> Window:
    """The window of a conversation by its running totals; of the open stays unless others are
    given.
    """
    source = StoredStays(open_stays(memory.pk) if stays is None else stays)
    totals = Totals(memory.window_count, memory.window_tokens)
    return CountedWindow(source, totals, family_named(memory.policy_estimator))


def stay_entry(stay: Stay, message: ChatMessage | None = None) -> StayEntry:
    return StayEntry(
        type=MessageType(stay.type),
        has_calls=stay.has_calls,
        tokens=stay.tokens,
        message=message,
        key=stay.n,
        seq=stay.seq,
        rank=stay.rank,
    )


class Stored(Protocol):
    """A row that holds a message's payload."""

    @property
    def memory_id(self) -> str: ...
    @property
    def seq(self) -> int: ...
    @property
    def payload(self) -> str: ...


def read_message(row: Stored) -> ChatMessage:
    """The message of a row. Raises CorruptRow, naming it, when the payload cannot be read."""
    try:
        message = message_from_json(row.payload)
    except InvalidMessage as error:
        raise CorruptRow(
            f"message #{row.seq} of {row.memory_id!r} cannot be read: {error}"
        ) from error
    if message is None:
        raise CorruptRow(f"message #{row.seq} of {row.memory_id!r} is null")
    return message
