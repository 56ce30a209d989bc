"""A conversation as it is stored: its window now or after a step, and its messages, read."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from django.db.models import Q, QuerySet

from chatmemory.core.codec import message_from_json
from chatmemory.core.estimators import family_named
from chatmemory.core.exceptions import CorruptRow, InvalidMessage, InvalidValue
from chatmemory.core.messages import ChatMessage, MessageType
from chatmemory.core.window import Entry, Totals, Window
from chatmemory.ledger.redaction import mark_of, note_of
from chatmemory.models import Memory, Stay, Step

HEAD_PAGE = 32
_COUNTERS = (
    "messages",
    "stays",
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
    stays = Stay.objects.filter(memory_id=step.memory_id, n__lte=step.stays, entered_step__lte=at)
    stays = stays.filter(Q(left_step=None) | Q(left_step__gt=at))
    return stays.filter(Q(n__gte=oldest) | protected).order_by("rank")


def nothing_yet(memory: Memory) -> Step:
    """Step 0: the empty conversation, under the policy that it was made with."""
    first = Step.objects.filter(memory=memory, n=1).first() or memory
    step = Step(memory=memory, n=0, **dict.fromkeys(_COUNTERS, 0))
    step.policy, step.policy_estimator = first.policy, first.policy_estimator
    return step


class StoredWindow(Window):
    """Stays of a conversation by rank, the open ones unless others are given, read in pages from
    the head.
    """

    def __init__(self, memory: Memory, stays: QuerySet[Stay] | None = None) -> None:
        self._open = open_stays(memory.pk) if stays is None else stays
        self._systems: OrderedDict[Entry, None] | None = None
        totals = Totals(memory.window_count, memory.window_tokens)
        super().__init__(self._pages(), totals)
        self.counted_by = family_named(memory.policy_estimator)

    def systems(self) -> Iterator[Entry]:
        return iter(list(self._known_systems()))

    def count_with(self, family: str | None, count: Callable[[ChatMessage], int]) -> None:
        if family is None:
            raise InvalidValue(
                "this store counts tokens: a store that wraps it needs its `estimator`"
            )
        if family != self.counted_by:
            self._fill(list(self._with_messages()))
            super().count_with(family, count)

    def load_messages(self) -> list[Entry]:
        """Every entry with its message, in window order."""
        stored = {entry.key: entry for entry in self._with_messages()}
        return [entry if entry.message else stored[entry.key] for entry in self]

    def _with_messages(self) -> Iterator[Entry]:
        for stay in self._open.select_related("message"):
            yield stay_entry(stay, read_message(stay.message))

    def _pages(self) -> Iterator[Entry]:
        page: list[Stay] = []
        size = HEAD_PAGE
        while True:
            behind = self._open.filter(rank__gt=page[-1].rank) if page else self._open
            page = list(behind[:size])
            yield from map(stay_entry, page)
            if len(page) < size:
                return
            size = min(size * 4, 4096)

    def _known_systems(self) -> OrderedDict[Entry, None]:
        if self._systems is None:
            stays = self._open.filter(type=MessageType.SYSTEM).select_related("message")
            self._systems = OrderedDict(
                (stay_entry(stay, read_message(stay.message)), None) for stay in stays
            )
        return self._systems

    def _place(self, entry: Entry, at_head: bool) -> None:
        super()._place(entry, at_head)
        if entry.type is MessageType.SYSTEM:
            systems = self._known_systems()
            systems[entry] = None
            systems.move_to_end(entry, last=not at_head)

    def _discard(self, entry: Entry) -> None:
        super()._discard(entry)
        if entry.type is MessageType.SYSTEM:
            self._known_systems().pop(entry, None)

    def _fill(self, entries: Iterable[Entry]) -> None:
        super()._fill(entries)
        if isinstance(entries, Sequence):
            systems = (entry for entry in entries if entry.type is MessageType.SYSTEM)
            self._systems = OrderedDict.fromkeys(systems)


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


def redaction_of(row: Stored) -> Step | None:
    """The step that took a message's words away, if one did."""
    if mark_of(row.seq) not in row.payload:
        return None
    steps = Step.objects.filter(memory_id=row.memory_id, kind=Step.Kind.REDACT)
    found: Step | None = steps.filter(note=note_of(row.seq)).first()
    return found


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
