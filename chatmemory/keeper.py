"""Keepers: the one mechanism for data that are derived from the ledger of a conversation.

A keeper makes a row for each conversation. The row is derived after the commit of a change, by a
thread of the server or by `manage.py keep`. A page or command that needs the row at once derives it
(see `keeping`).

A row depends on the ledger alone. So a row that is renewed after each step equals a row that is
made once at the end.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from functools import cache
from typing import ClassVar

from django.db.models import F, Q

from chatmemory.columns import ColumnValues
from chatmemory.kept import KeptPart, KeptRow
from chatmemory.models import Memory
from chatmemory.tables import Table

QUICK_MESSAGES = 500  # messages that a request may read to derive a row at once


def version_of(*rules: object) -> str:
    """Return the version of rows that are made by these rules: a digest of the `repr` of the rules,
    with 32 characters.
    """
    return hashlib.sha256(repr(rules).encode()).hexdigest()[:32]


class Keeper(ABC):
    """Derives and stores one kind of row per conversation, such as its incidents.

    `model` is the table of these rows. `part` is the table of further rows, of which a conversation
    may have several; None if there are none.
    """

    model: ClassVar[type[KeptRow]]
    part: ClassVar[type[KeptPart] | None] = None  # of which a conversation has several rows

    @abstractmethod
    def version(self) -> str:
        """Return the version of the keeper's rules, at most 32 characters. Rows with another
        version are out of date.
        """

    @abstractmethod
    def make(self, memory: Memory, before: KeptRow | None) -> ColumnValues:
        """Return the values of a new row for the newest step of a conversation, by column:
        `content`, and the columns that the keeper's model adds to `KeptRow`.

        `before` is None, or a row of an earlier step and the same version, from which the keeper
        may continue. A keeper with a `part` also returns, under the key `parts`, the part rows to
        store: all part rows if `before` is None, else those that have changed. `make` is called in
        one snapshot of the database.

        Raises ChatMemoryError for a conversation that cannot be read.
        """

    def is_current(self, row: KeptRow, memory: Memory) -> bool:
        """Return whether a row is up to date with the conversation. The caller has checked the
        version of the row.
        """
        return row.step == memory.last_step

    def current(self) -> Q:
        """Return the SQL condition that a conversation's row is up to date."""
        step, version = self.column("step"), self.column("version")
        return Q(**{step: F("last_step"), version: self.version()})

    def column(self, name: str) -> str:
        """Return Django's lookup of a column of the keeper's rows, for a query over conversations:
        `step` becomes `keptincidents__step`.
        """
        return f"{self.model.__name__.lower()}__{name}"

    def changed_since(self, at: datetime) -> Q:
        """Return the SQL condition for conversations whose row may be out of date because of a
        change after this time.
        """
        return Q(updated_at__gte=at)

    def messages_read(self, memory: Memory) -> int:
        """Return about how many messages `make` reads. If it reads few messages, a request that
        needs the row derives the row at once.
        """
        return memory.said_count

    def kept(self, row: KeptRow, before: KeptRow | None) -> None:  # noqa: B027
        """Hook, called after the commit that stored a row. By default, nothing happens.

        `before` is the earlier row that was given to `make`, or None.
        """

    def after_round(self) -> None:  # noqa: B027
        """Hook, called at the end of each round (see `keeping.Rounds`). A keeper can then compute
        sums over all its rows. By default, nothing happens.
        """

    def row(self, memory: Memory) -> KeptRow | None:
        """Return a conversation's row that was made by the current version of the keeper's rules.
        None if there is no such row. The conversation may have newer steps than the row.

        Within `shared_rows`, a row that is derived, but not stored yet, is returned instead of the
        stored row.
        """
        made = _SHARED.get().get((self.model, memory.pk))
        if made is not None:
            return made
        condition = "memory_id = %(id)s AND version = %(version)s"
        values = {"id": memory.pk, "version": self.version()}
        rows = _table(self.model).read_all(condition, values)
        return next(iter(rows), None)


@cache
def _table(model: type[KeptRow]) -> Table[KeptRow]:
    return Table(model)


# The rows that were derived and are not stored yet, by their table and conversation
_Rows = dict[tuple[type[KeptRow], str], KeptRow]
_SHARED: ContextVar[_Rows] = ContextVar("_SHARED", default={})  # noqa: B039 - never changed


@contextmanager
def shared_rows() -> Iterator[_Rows]:
    """Yield a dict for rows that are derived, but not stored yet. In this context, `Keeper.row`
    returns the rows in the dict.

    The caller puts each row under the key `(model, memory_id)`.
    """
    made: _Rows = {}
    token = _SHARED.set(made)
    try:
        yield made
    finally:
        _SHARED.reset(token)
