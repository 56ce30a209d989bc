"""Derives rows from ledgers and stores them: after commits, or at once for one conversation.

Rows are derived from a snapshot, without a lock. Then one short transaction stores several rows. A
row is dropped if its conversation was deleted meanwhile, or a message was redacted. If the
conversation has new steps meanwhile, the row is stored all the same: it counts as a row of the
earlier step.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache, reduce
from itertools import chain
from operator import and_, or_
from time import monotonic

from django.db import DatabaseError
from django.db.models import Q, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from chatmemory import database
from chatmemory.database_errors import outage
from chatmemory.exceptions import MemoryNotFound
from chatmemory.keeper import Keeper, shared_rows
from chatmemory.kept import KeptPart, KeptRow
from chatmemory.ledger.lookup import find_memory
from chatmemory.ledger.transaction import notify_followers, unless_changing
from chatmemory.managers import MemoryQuerySet
from chatmemory.models import Memory, Step
from chatmemory.reading.conversations import is_writable
from chatmemory.reading.feed import microseconds
from chatmemory.reading.history import shared_histories
from chatmemory.rooms import keepers
from chatmemory.snapshots import one_snapshot

STALE_AT_ONCE = 50
STALE_READ = 10 * STALE_AT_ONCE  # of these, the ones whose rows are oldest have their turn
STORED_AT_ONCE = 20  # rows in a transaction
STORED_AFTER = 0.2  # seconds for which a row waits for others
COMMITTED_WITHIN = timedelta(minutes=1)  # a change becomes visible after its own time
# A conversation whose rows took more than SLOW seconds rests for REST times as long.
SLOW, REST = 0.1, 5

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class DerivedRow:
    """A new row of derived data, with its part rows, before it is stored.

    `before` is the earlier row that was given to `Keeper.make`, or None.
    """

    keeper: Keeper
    row: KeptRow
    before: KeptRow | None
    parts: Sequence[KeptPart] = ()


# One conversation


@dataclass(frozen=True)
class _Made:
    """The new rows of a conversation. `errors` has the keepers that could make no row."""

    rows: Sequence[DerivedRow] = ()
    errors: Mapping[Keeper, Exception] = field(default_factory=dict)


@one_snapshot()
def _made(memory_id: str, some: Iterable[Keeper]) -> _Made:
    """Derive the rows of a conversation that are not up to date.

    The keepers share one reading of the history, and see the rows that earlier keepers have
    derived. Raises MemoryNotFound, and the error of a database that is down.
    """
    memory = find_memory(memory_id)
    rows: list[DerivedRow] = []
    errors: dict[Keeper, Exception] = {}
    with shared_histories(), shared_rows() as known:
        for keeper in some:
            try:
                found = _current_or_derived(keeper, memory)
                if isinstance(found, DerivedRow):
                    rows.append(found)
                    known[keeper.model, memory.pk] = found.row
            except Exception as error:
                if outage(error):
                    raise
                errors[keeper] = error
    return _Made(rows, errors)


def _current_or_derived(keeper: Keeper, memory: Memory) -> KeptRow | DerivedRow:
    """Return the row of a conversation if it is up to date, else a new row. Raises the exceptions
    of `Keeper.make`.
    """
    before = keeper.row(memory)
    if before is not None and keeper.is_current(before, memory):
        return before
    return _derive(keeper, memory, before)


def _derive(keeper: Keeper, memory: Memory, before: KeptRow | None) -> DerivedRow:
    made = keeper.make(memory, before)
    parts = made.pop("parts", ())
    row = keeper.model(
        memory=memory,
        step=memory.last_step,
        version=keeper.version(),
        kept_at=microseconds(timezone.now()),
        **made,
    )
    return DerivedRow(keeper, row, before, parts)


def current(keeper: Keeper, memory_id: str, most: int | None = None) -> KeptRow | None:
    """Return a conversation's row of derived data, up to date with the newest step. If the stored
    row is out of date, a new row is derived, and stored if possible.

    `most` is the largest number of messages that may be read to derive a row; None for no limit. If
    more are needed, the stored row is returned: it may be of an earlier step, or None.

    Raises MemoryNotFound, and the exceptions of `Keeper.make`.
    """
    if most is not None:
        memory = find_memory(memory_id)
        if keeper.messages_read(memory) > most:
            return keeper.row(memory)
    with one_snapshot():
        found = _current_or_derived(keeper, find_memory(memory_id))
    if isinstance(found, KeptRow):
        return found
    with suppress(DatabaseError):  # the database is read-only, or locked for long
        store([found])
    return found.row


def keep(memory_id: str) -> None:
    """Derive and store all rows of a conversation that are not up to date.

    Raises MemoryNotFound. If a keeper fails, its exception is raised after the rows of the other
    keepers are stored.
    """
    made = _made(memory_id, keepers())
    if made.rows:
        with suppress(DatabaseError):  # the database is read-only, or locked for long
            store(made.rows)
    for error in made.errors.values():
        raise error


def store(some: Sequence[DerivedRow]) -> None:
    """Store rows of derived data in one transaction. After the commit, call `Keeper.kept` for each
    stored row, and notify the live streams of its conversation.

    A row is skipped in three cases:

    - Its conversation was deleted, or a message was redacted after the step of the row.
    - Another transaction is changing its conversation.
    - A newer row is already stored.
    """
    with database.atomic():
        may_store = cache(_may_store)
        kept = [
            each for each in some if may_store(each.row.memory, each.row.step) and _is_newest(each)
        ]
        for each in kept:
            each.row.kept_at = microseconds(timezone.now())
            _upsert(each.row)
            _store_parts(each)
    for each in kept:
        database.on_commit(_notify, each)


def _upsert(row: KeptRow) -> None:
    names = [field.name for field in row._meta.concrete_fields if not field.primary_key]
    type(row).objects.bulk_create(
        [row], update_conflicts=True, unique_fields=["memory"], update_fields=names
    )


def _store_parts(each: DerivedRow) -> None:
    """Store the part rows of a row. If the row has no `before`, all other part rows are deleted."""
    model = each.keeper.part
    if model is None:
        return
    if each.before is None:
        model.objects.filter(memory=each.row.memory).delete()
    fields = [field.name for field in model._meta.concrete_fields]
    changed = [name for name in fields if name not in ("memory", model.key)]
    model.objects.bulk_create(
        each.parts,
        update_conflicts=True,
        unique_fields=["memory", model.key],
        update_fields=changed,
    )


def _may_store(memory: Memory, step: int) -> bool:
    """Return whether rows that were derived at this step may be stored. Locks the conversation if
    so.
    """
    state = unless_changing(memory.pk, "created_at", "last_step")
    if state is None or state[0] != memory.created_at or state[1] < step:
        return False
    if state[1] == step:
        return True
    later = Step.objects.filter(memory=memory, n__gt=step, kind=Step.Kind.REDACT)
    return not later.exists()


def _is_newest(each: DerivedRow) -> bool:
    row = each.row
    newer = type(row).objects.filter(pk=row.pk, step__gt=row.step, version=row.version)
    return not newer.exists()


def _notify(each: DerivedRow) -> None:
    each.keeper.kept(each.row, each.before)
    notify_followers(each.row.pk)


def remade(memory_id: str) -> list[str]:
    """Derive the up-to-date rows of a conversation again. Return the names of the rows that differ
    from the stored rows, such as "incidents".

    Rows that differ are replaced if the database can be written. Raises MemoryNotFound.
    """
    differing: list[DerivedRow] = []
    with one_snapshot():
        memory = find_memory(memory_id)
        for keeper in keepers():
            kept = keeper.row(memory)
            if kept is not None and keeper.is_current(kept, memory):
                again = _derive(keeper, memory, None)
                if _values(again.row) != _values(kept) or _differs(again):
                    differing.append(again)
    if differing and is_writable():
        store(differing)
    return [str(each.row._meta.verbose_name) for each in differing]


def _differs(again: DerivedRow) -> bool:
    """Return whether the stored part rows of a conversation differ from the new ones."""
    model = again.keeper.part
    if model is None:
        return False
    stored = {getattr(each, model.key): _values(each) for each in _parts_of(model, again.row)}
    return stored != {getattr(each, model.key): _values(each) for each in again.parts}


def _parts_of(model: type[KeptPart], row: KeptRow) -> Iterable[KeptPart]:
    return model.objects.filter(memory=row.memory)


def _values(row: KeptRow | KeptPart) -> dict[str, object]:
    fields = row._meta.concrete_fields
    return {field.name: getattr(row, field.attname) for field in fields if field.name != "kept_at"}


def newest_kept() -> int:
    """Return the time at which the newest row of derived data was stored, in microseconds since
    1970; 0 without rows.
    """
    newest = (
        each.model.objects.order_by("-kept_at").values_list("kept_at", flat=True).first()
        for each in keepers()
    )
    return max(filter(None, newest), default=0)


# All conversations, in rounds


class Rounds:
    """Derives the rows of changed conversations, in rounds. A round is one call of `keep_some`, or
    several calls of `examine` and one of `end`.

    Conversations that change after this object is made come first. Conversations that changed
    earlier follow, beginning with the newest change. All rows of a conversation are derived
    together.

    If a keeper fails for a conversation, the error is logged, and the keeper skips this
    conversation from then on. The row is then derived when somebody reads it.
    """

    def __init__(self, chosen: Sequence[Keeper] | None = None) -> None:
        self._keepers = tuple(keepers() if chosen is None else chosen)
        self._begun_at = self._since = timezone.now() - COMMITTED_WITHIN
        self._earliest: str | None = ""  # of earlier changes; None once all are examined
        self._failed: dict[Keeper, set[str]] = {each: set() for each in self._keepers}
        self._resting: dict[str, float] = {}  # the time until which a conversation rests, by id

    def keep_some(self, seconds: float) -> bool:
        """Derive the rows that are out of date, until about `seconds` have passed. Return whether
        there is more to do. At least one conversation is examined, even if this takes longer.

        Nothing is derived if the database cannot be written.
        """
        if not self._keepers or not is_writable():
            return False
        has_changed = Memory.objects.filter(self._changed_since(self._since)).exists()
        if not has_changed and self._earliest is None and not self._resting:
            return False
        has_more = self._keep_waiting(seconds)
        self.end()
        return has_more

    def examine(self, memory_ids: Iterable[str]) -> None:
        """Derive and store the rows of these conversations, in this order."""
        for part in _parts(self._made(memory_ids)):
            store(part)

    def end(self) -> None:
        """End a round: call the hook `after_round` of each keeper."""
        for keeper in self._keepers:
            keeper.after_round()

    def left(self) -> int:
        """Return the number of conversations with a row that is missing or out of date."""
        if not self._keepers:
            return 0
        known = reduce(and_, (each.current() for each in self._keepers))
        return _followed().exclude(known).count()

    def _keep_waiting(self, seconds: float) -> bool:
        now = timezone.now()
        self._wake_rested()
        changed = self._stale_changed()
        is_full = len(changed) == STALE_AT_ONCE
        earlier = [] if is_full else self._stale_earlier()
        waiting = chain(_in_own_order(changed), _in_own_order(earlier))
        self.examine(database.for_seconds(seconds, waiting))
        if next(waiting, None) is not None or is_full:
            return True
        if not self._resting:
            self._since = now - COMMITTED_WITHIN
        self._earliest = earlier[-1] if earlier else None
        return bool(earlier)

    def _made(self, memory_ids: Iterable[str]) -> Iterator[DerivedRow]:
        for memory_id in memory_ids:
            began = monotonic()
            some = [each for each in self._keepers if memory_id not in self._failed[each]]
            try:
                made = _made(memory_id, some)
            except MemoryNotFound:  # deleted meanwhile
                continue
            except Exception as error:
                if outage(error):
                    raise
                made = _Made(errors=dict.fromkeys(some, error))
            for keeper, why in made.errors.items():
                name = keeper.model._meta.verbose_name
                logger.error(
                    "the derived data %s of the conversation %r cannot be computed",
                    name,
                    memory_id,
                    exc_info=why,
                )
                self._failed[keeper].add(memory_id)
            if (took := monotonic() - began) > SLOW:
                self._resting[memory_id] = monotonic() + REST * took
            yield from made.rows

    def _wake_rested(self) -> None:
        begun = monotonic()
        self._resting = {name: until for name, until in self._resting.items() if until > begun}

    def _changed_since(self, at: datetime) -> Q:
        return reduce(or_, {each.changed_since(at) for each in self._keepers})

    def _stale_changed(self) -> list[str]:
        """Return the ids of conversations that have changed lately and have a row that is out of
        date.

        Missing and old rows come first, so that each conversation has its turn while others go on
        changing.
        """
        found = self._stale(self._changed_since(self._since), STALE_READ)
        oldest = sorted(found, key=lambda each: each[1] or 0)
        return [memory_id for memory_id, _ in oldest[:STALE_AT_ONCE]]

    def _stale_earlier(self) -> list[str]:
        """Return the ids of conversations that changed before the first round, and have a row that
        is out of date. They continue after the last conversation of the previous round.

        The times are compared by the database, because an altered time may be unreadable.
        """
        if self._earliest is None:
            return []
        then = Memory.objects.filter(id=self._earliest).values("updated_at")
        when = Q(updated_at__lte=Coalesce(Subquery(then), self._begun_at))
        return [memory_id for memory_id, _ in self._stale(when, STALE_AT_ONCE)]

    def _stale(self, when: Q, most: int) -> list[tuple[str, int | None]]:
        """Return conversations with a row that is out of date, newest change first. Each has its
        id, and the time of its row of the first keeper.
        """
        rows = self._all_stale().filter(when).exclude(id__in=self._resting)
        newest = rows.order_by("-updated_at", "-id")
        return list(newest.values_list("id", self._keepers[0].column("kept_at"))[:most])

    def stale(self, memory_ids: Sequence[str]) -> list[str]:
        """Return the ids of the conversations that have a row that is missing or out of date, in
        the order of `memory_ids`.

        A row for which the keeper has failed does not count.
        """
        if not self._keepers:
            return []
        found = self._all_stale().filter(id__in=memory_ids).order_by()
        stale = set(found.values_list("id", flat=True))
        return [each for each in memory_ids if each in stale]

    def _all_stale(self) -> MemoryQuerySet:
        """Return the conversations with a row that is out of date. Rows for which the keeper has
        failed are not considered.
        """
        known = (each.current() | Q(id__in=self._failed[each]) for each in self._keepers)
        return _followed().exclude(reduce(and_, known))


def _followed() -> MemoryQuerySet:
    """Return the conversations for which rows are derived: those with a step, and without an
    unfinished import.
    """
    found: MemoryQuerySet = Memory.objects.filter(imported=None).exclude(last_step=0)
    return found


def _parts(found: Iterable[DerivedRow]) -> Iterator[list[DerivedRow]]:
    """Yield the rows in lists. The rows of a list are stored together."""
    part: list[DerivedRow] = []
    began = monotonic()
    for each in found:
        part.append(each)
        if len(part) == STORED_AT_ONCE or monotonic() - began > STORED_AFTER:
            yield part
            part, began = [], monotonic()
    if part:
        yield part


def _in_own_order(memory_ids: Sequence[str]) -> list[str]:
    """Return the ids, each ten of them shuffled, so that several processes rarely take the same
    conversation.
    """
    own = {each: hash((os.getpid(), each)) for each in memory_ids}
    tens = (memory_ids[first : first + 10] for first in range(0, len(memory_ids), 10))
    return [each for ten in tens for each in sorted(ten, key=own.__getitem__)]
