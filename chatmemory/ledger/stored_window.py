"""The stored window of a conversation, now or after a step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from django.db.models import Q, QuerySet

from chatmemory.core.estimators import family_named
from chatmemory.core.exceptions import InvalidValue
from chatmemory.core.messages import ChatMessage, MessageType
from chatmemory.core.window import Entry, EntrySource, Totals, Window
from chatmemory.ledger.entries import read_message, stay_entry
from chatmemory.ledger.sql import HEAD_PAGE, OpenStay, first_stays, window_messages
from chatmemory.models import Memory, Stay, Step

PAGE_MAX = 4096
_TOTALS = ("count_before", "tokens_before", "count_after", "tokens_after")
_COUNTERS = ("last_seq", "last_stay", "said_count", "history_tokens", "oldest")


def open_stays(memory_id: str) -> QuerySet[Stay]:
    """Return the stays of the current window, by rank."""
    return Stay.objects.filter(memory_id=memory_id, left_step=None).order_by("rank")


def stays_at(step: Step) -> QuerySet[Stay]:
    """Return the stays that were open after a step, by rank.

    The range from the step's `oldest` to its `last_stay` bounds the query (see `Recorder`). System
    messages and pins may be older than that; an index finds them. The two bounds stand side by
    side, so that PostgreSQL knows how few stays they leave, and does not read all messages.
    """
    at, oldest = step.n, step.oldest
    lately = Q(n__gte=oldest, n__lte=step.last_stay)
    protected = Q(n__lt=oldest) & (Q(type=MessageType.SYSTEM) | Q(pinned=True))
    stays = Stay.objects.filter(memory_id=step.memory_id, entered_step__lte=at)
    stays = stays.filter(Q(left_step=None) | Q(left_step__gt=at))
    return stays.filter(lately | protected).order_by("rank")


def step_zero(memory: Memory) -> Step:
    """Return the empty conversation as a step, with the policy of its creation.

    Where the first step changed the policy, the one before is not recorded: the step has none.
    """
    first = Step.objects.filter(memory=memory, n=1).first()
    step = Step(memory=memory, n=0, **dict.fromkeys((*_TOTALS, *_COUNTERS), 0))
    is_known = first is None or first.kind != Step.Kind.POLICY
    source = first or memory
    step.policy = source.policy if is_known else None
    step.policy_estimator = source.policy_estimator
    return step


class StoredStays(EntrySource):
    """The stays of a window by rank, read from the database in pages from the head.

    Pages grow, as most changes need only the first few stays, and the others the whole window.
    """

    def __init__(self, stays: QuerySet[Stay]) -> None:
        self._stays = stays

    @property
    def stays(self) -> QuerySet[Stay]:
        return self._stays

    def first_page(self) -> Iterable[OpenStay]:
        return _page(self.stays, HEAD_PAGE)

    def entries(self) -> Iterator[Entry]:
        size, page = HEAD_PAGE, self.first_page()
        while True:
            count, last = 0, 0
            for stay in page:
                count, last = count + 1, stay.rank
                yield stay_entry(stay)
            if count < size:
                return
            size = min(size * 4, PAGE_MAX)
            page = _page(self.stays.filter(rank__gt=last), size)

    def systems(self) -> Iterator[Entry]:
        return self._with_messages(self.stays.filter(type=MessageType.SYSTEM))

    def with_messages(self) -> Iterator[Entry]:
        return self._with_messages(self.stays)

    def _with_messages(self, stays: QuerySet[Stay]) -> Iterator[Entry]:
        for stay in stays.select_related("message"):
            yield stay_entry(stay, read_message(stay.message))


class OpenStays(StoredStays):
    """The stays of the current window, of which an add reads the first ones."""

    def __init__(self, memory_id: str) -> None:
        self._memory_id = memory_id

    @property
    def stays(self) -> QuerySet[Stay]:
        return open_stays(self._memory_id)

    def first_page(self) -> Iterable[OpenStay]:
        return first_stays(self._memory_id)

    def with_messages(self) -> Iterator[Entry]:
        for row in window_messages(self._memory_id):
            yield stay_entry(row, read_message(row))


def _page(stays: QuerySet[Stay], size: int) -> Iterator[OpenStay]:
    return map(OpenStay._make, stays.values_list(*OpenStay._fields)[:size])


class CountedWindow(Window):
    """A stored window, whose tokens are always counted by an estimator family."""

    def count_with(self, family: str | None, count: Callable[[ChatMessage], int]) -> None:
        if family is None:
            raise InvalidValue(
                "this store counts tokens: a store that wraps it must also have its `estimator`"
            )
        super().count_with(family, count)


def stored_window(memory: Memory, stays: QuerySet[Stay] | None = None) -> Window:
    """Return the window of a Memory row, with its open stays unless others are given."""
    source = OpenStays(memory.pk) if stays is None else StoredStays(stays)
    totals = Totals(memory.window_count, memory.window_tokens)
    return CountedWindow(source, totals, family_named(memory.policy_estimator))
