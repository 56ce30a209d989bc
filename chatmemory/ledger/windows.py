"""Reads windows of a conversation from its rows: the current window, or the window after a step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Protocol

from django.db.backends.utils import CursorWrapper
from django.db.models import Q, QuerySet

from chatmemory import database
from chatmemory.exceptions import CorruptRow, InvalidMessage, InvalidValue
from chatmemory.ledger.overrides import is_of_stub, kept, overridden
from chatmemory.ledger.sql import HEAD_PAGE, STAY, first_stays, window_messages
from chatmemory.messages.codec import message_from_frame
from chatmemory.messages.estimators import family_named
from chatmemory.messages.message import TYPES, ChatMessage, MessageType
from chatmemory.models import PROTECTED, Memory, Message, Stay, Step
from chatmemory.tables import SqlRow, SqlValue
from chatmemory.windows.policies import Policy
from chatmemory.windows.stored_policies import can_decide, stored_totals
from chatmemory.windows.window import SAID, Entry, EntrySource, Totals, Window

PAGE_MAX = 4096
PART = 2**20  # bytes of messages that are read together
_TOTALS = ("count_before", "tokens_before", "count_after", "tokens_after")
_RANK = STAY.index("rank")
_COUNTERS = ("last_seq", "last_stay", "said_count", "history_tokens", "oldest")

Page = list[SqlRow]  # the columns `STAY` of some stays


def entry_of(stay: Sequence[SqlValue], message: ChatMessage | None = None) -> Entry:
    """Return a stored stay as an entry of a window. `stay` has the values of the columns `STAY`.

    `message` is the stay's message, or None if the caller has not read it. Booleans may be 0 and 1,
    as SQLite returns them.
    """
    n, seq, rank, type, has_calls, tokens, pinned, size, overrides = stay
    is_stub = False
    if overrides is not None:
        is_stub, overrides = is_of_stub(overrides), kept(overrides)
    first = TYPES[type], bool(has_calls), tokens, message, n, bool(pinned)
    return Entry(*first, is_stub, n, seq, rank, size, SAID, "", overrides)


def stay_entry(stay: Stay, message: ChatMessage | None = None) -> Entry:
    """Return a stored stay as an entry of a window. `message` is the stay's message, or None if the
    caller has not read it.
    """
    return entry_of(_columns_of(stay), message)


_columns_of = attrgetter(*STAY)


def unprotected(window: Window) -> Iterator[Entry]:
    """Yield the entries of a stored window that may be evicted: all but pinned messages and a
    leading system message.
    """
    is_first = True
    for entry in window:
        if entry.pinned:
            continue
        if not is_first or entry.type is not MessageType.SYSTEM:
            yield entry
        is_first = False


class FramedRow(Protocol):
    """A stored message: `frame` is its JSON without the text. Its text and its attributes are
    separate columns.
    """

    @property
    def memory_id(self) -> str: ...
    @property
    def seq(self) -> int: ...
    @property
    def frame(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def attributes(self) -> str | None: ...


def read_message(row: FramedRow) -> ChatMessage:
    """Return the message of a stored row. Raises CorruptRow if the row cannot be read."""
    try:
        message = message_from_frame(row.frame, row.text, row.attributes)
    except InvalidMessage as error:
        raise CorruptRow(
            f"message #{row.seq} of {row.memory_id!r} cannot be read: {error}"
        ) from error
    if message is None:
        raise CorruptRow(
            f"message #{row.seq} of {row.memory_id!r} has no stored content: restore a backup"
        )
    return message


def shown_message(row: FramedRow, overrides: str | None) -> ChatMessage:
    """Return the message of a stored row as a window shows it.

    `overrides` is JSON of the text or the attributes that the window shows instead of the stored
    text or attributes. None if the window shows the message as stored. Raises CorruptRow if the row
    or `overrides` cannot be read.
    """
    message = read_message(row)
    if overrides is None:
        return message
    try:
        return overridden(message, overrides)
    except InvalidMessage as error:
        what = f"a stay of message #{row.seq} of {row.memory_id!r} cannot be read: {error}"
        raise CorruptRow(what) from error


def open_stays(memory_id: str) -> QuerySet[Stay]:
    """Return the stays of the current window, in order."""
    return Stay.objects.filter(memory_id=memory_id, left_step=None).order_by("rank")


def stays_at(step: Step) -> QuerySet[Stay]:
    """Return the stays of the window after a step, in order.

    The number of rows that are read depends on the length of the window, not on the length of the
    conversation (see `ledger.numbers`).
    """
    at, oldest = step.n, step.oldest
    lately = Q(n__gte=oldest, n__lte=step.last_stay)
    protected = Q(n__lt=oldest) & PROTECTED
    stays = Stay.objects.filter(memory_id=step.memory_id, entered_step__lte=at)
    stays = stays.filter(Q(left_step=None) | Q(left_step__gt=at))
    return stays.filter(lately | protected).order_by("rank")


def in_parts(stays: QuerySet[Stay]) -> Iterator[Stay]:
    """Yield the stays of a window in order, with their messages.

    The stays are read in parts of about a megabyte, so the caller must iterate within one snapshot
    of the database.
    """
    for first, last in _parts(stays.values_list("rank", "size")):
        part = stays.filter(rank__gte=first, rank__lte=last)
        yield from part.select_related("message").iterator()


def _parts(places: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last rank of each part to read. `places` has the rank and the size of
    each message.
    """
    size, ranks = 0, list[int]()
    for rank, more in places:
        if ranks and size + more > PART:
            yield ranks[0], ranks[-1]
            size, ranks = 0, []
        size += more
        ranks.append(rank)
    if ranks:
        yield ranks[0], ranks[-1]


def step_zero(memory: Memory) -> Step:
    """Return an unsaved step 0, which stands for the empty conversation before its first step.

    Step 0 has the conversation's first policy. If step 1 changed the policy, step 0 has none,
    because the policy before step 1 is not recorded.
    """
    first = Step.objects.filter(memory=memory, n=1).first()
    step = Step(memory=memory, n=0, **dict.fromkeys((*_TOTALS, *_COUNTERS), 0))
    is_known = first is None or first.kind != Step.Kind.POLICY
    source = first or memory
    step.policy = source.policy if is_known else None
    step.policy_estimator = source.policy_estimator
    return step


class StoredStays(EntrySource):
    """The entries of a window in order, read from the database in pages.

    Each page is longer than the page before. Most changes need only the first entries, and other
    changes need all.
    """

    def __init__(self, stays: QuerySet[Stay]) -> None:
        self._stays = stays

    @property
    def stays(self) -> QuerySet[Stay]:
        return self._stays

    def first_page(self) -> Page:
        return _page(self.stays, HEAD_PAGE)

    def entries(self) -> Iterator[Entry]:
        size, page = HEAD_PAGE, self.first_page()
        while page:
            yield from map(entry_of, page)
            if len(page) < size:
                return
            size, last = min(size * 4, PAGE_MAX), page[-1][_RANK]
            page = _page(self.stays.filter(rank__gt=last), size)

    def systems(self) -> Iterator[Entry]:
        return self._with_messages(self.stays.filter(type=MessageType.SYSTEM))

    def with_messages(self) -> Iterator[Entry]:
        return self._with_messages(self.stays)

    def _with_messages(self, stays: QuerySet[Stay]) -> Iterator[Entry]:
        for stay in stays.select_related("message"):
            yield stay_entry(stay, shown_message(stay.message, stay.overrides))


class OpenStays(StoredStays):
    """The entries of the current window, read from the database in pages. The first page is short,
    because most adds need only the first entries.
    """

    def __init__(self, memory_id: str, cursor: CursorWrapper | None = None) -> None:
        self._memory_id = memory_id
        self._cursor = cursor

    @property
    def stays(self) -> QuerySet[Stay]:
        return open_stays(self._memory_id)

    def first_page(self) -> Page:
        return first_stays(self._memory_id, self._cursor)

    def with_messages(self) -> Iterator[Entry]:
        for row in window_messages(self._memory_id):
            yield entry_of(row[: len(STAY)], shown_message(row, row.overrides))


def _page(stays: QuerySet[Stay], size: int) -> Page:
    return list(stays.values_list(*STAY)[:size])


class StoredWindow(Window):
    """A conversation's window. Its entries are read from the database when they are needed."""

    def __init__(
        self,
        memory_id: str,
        source: StoredStays | Iterable[Entry] = (),
        totals: Totals | None = None,
        counted_by: str | None = None,
        measured_by: Policy | None = None,
    ) -> None:
        super().__init__(source, totals, counted_by, measured_by)
        self._memory_id = memory_id

    def count_with(self, family: str | None, count: Callable[[ChatMessage], int]) -> None:
        if family is None:
            raise InvalidValue(
                "this store counts tokens: a store that wraps it must also have its `estimator`"
            )
        super().count_with(family, count)

    def with_messages(self) -> list[Entry]:
        """Return all entries with their messages. Messages that were not read yet are read from the
        database.
        """
        entries = super().with_messages()
        unread = [entry for entry in entries if entry.message is None]
        if not unread:
            return entries
        loaded = self._loaded(unread)
        return [loaded.get(entry, entry) for entry in entries]

    def _loaded(self, entries: Sequence[Entry]) -> dict[Entry, Entry]:
        seqs = database.in_list("seq", [entry.seq for entry in entries])
        rows = Message.objects.filter(seqs, memory_id=self._memory_id)
        found = {row.seq: row for row in rows}
        return {
            entry: replace(entry, message=shown_message(found[entry.seq], entry.overrides))
            for entry in entries
        }


def stored_window(
    memory: Memory, stays: QuerySet[Stay] | None = None, cursor: CursorWrapper | None = None
) -> Window:
    """Return the current window of a conversation. With `stays`, return instead the past window
    that has these stays.

    `memory` is the conversation's row. For a past window, this row must have the values of that
    time. `cursor` is the cursor of the current transaction, or None.
    """
    source = OpenStays(memory.id, cursor) if stays is None else StoredStays(stays)
    policy = memory.policy
    totals = window_totals(memory, policy)
    counted_by = family_named(memory.policy_estimator)
    is_measured = can_decide(policy) and memory.window_load is not None
    return StoredWindow(memory.id, source, totals, counted_by, policy if is_measured else None)


def window_totals(memory: Memory, policy: Policy | None) -> Totals:
    """Return the totals of the current window, from the conversation's row. `policy` is the
    conversation's policy.
    """
    return stored_totals(policy, memory.window_count, memory.window_tokens, memory.window_load)


def totals_after(step: Step) -> Totals:
    """Return the totals of the window after a step, from the step's row."""
    return stored_totals(step.policy, step.count_after, step.tokens_after, step.load)
