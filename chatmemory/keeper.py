"""Keepers: the single mechanism for data that is derived from the ledger of a conversation.

A keeper makes a row for each conversation. Nothing is derived in the transaction of a change. Rows
are derived after the commit, by a thread of the server or by `manage.py keep`. A page or command
that needs a row at once derives it itself (see `keeping`). A row depends on the ledger alone: rows
kept up to date after each step equal a row made once at the end.
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
    """Return a digest of the rules by which rows are made, as their version. At most 32
    characters.
    """
    return hashlib.sha256(repr(rules).encode()).hexdigest()[:32]


class Keeper(ABC):
    """Derives and stores one kind of row per conversation, such as its incidents."""

    model: ClassVar[type[KeptRow]]
    part: ClassVar[type[KeptPart] | None] = None  # of which a conversation has several rows

    @abstractmethod
    def version(self) -> str:
        """Return the version of the rules, in at most 32 characters. Rows with another version are
        out of date.
        """

    @abstractmethod
    def make(self, memory: Memory, before: KeptRow | None) -> ColumnValues:
        """Return the columns of a new row, for the newest step of a conversation: `content`, and
        the columns that `KeptRow` does not have.

        `before` is a row of an earlier step and the same version, from which the keeper may
        continue, or None. A keeper with a `part` also returns `parts`, a list of part rows to
        store. These are all part rows if `before` is None, otherwise only those that differ from
        the stored ones. `make` is called within one snapshot of the database. Raises
        ChatMemoryError for a conversation that cannot be read.
        """

    def is_current(self, row: KeptRow, memory: Memory) -> bool:
        """Return whether a row is up to date with the conversation. The row was made by the current
        rules.
        """
        return row.step == memory.last_step

    def current(self) -> Q:
        """Return the condition for conversations whose row is up to date."""
        step, version = self.column("step"), self.column("version")
        return Q(**{step: F("last_step"), version: self.version()})

    def column(self, name: str) -> str:
        """Return the name of a column of the rows, for a query over conversations."""
        return f"{self.model.__name__.lower()}__{name}"

    def changed_since(self, at: datetime) -> Q:
        """Return the condition for conversations whose rows may have become out of date since a
        time.
        """
        return Q(updated_at__gte=at)

    def messages_read(self, memory: Memory) -> int:
        """Return roughly how many messages `make` reads. If the number is small, a request derives
        the row at once.
        """
        return memory.said_count

    def kept(self, row: KeptRow, before: KeptRow | None) -> None:  # noqa: B027
        """Hook, called after commit when a row was stored or replaced. The default does nothing.

        `before` is the replaced row, None if there was none.
        """

    def after_round(self) -> None:  # noqa: B027
        """Hook, called after each round over changed conversations, for sums over their rows. The
        default does nothing.
        """

    def row(self, memory: Memory) -> KeptRow | None:
        """Return the row of a conversation if it has the current version, else None. A row that was
        derived in the same round is returned even if it is not stored yet.
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
    """Yield a dict in which the caller puts the rows that keepers derive. The key is the model of
    the row with the conversation's id. Within this context, `Keeper.row` returns these rows before
    they are stored.
    """
    made: _Rows = {}
    token = _SHARED.set(made)
    try:
        yield made
    finally:
        _SHARED.reset(token)
