"""Keepers: the one mechanism for rows that are derived from the ledger of a conversation.

A keeper makes a row for each conversation. Nothing is derived in the transaction of a change: it is
done after the commit by a thread of a server, by `manage.py keep`, or by a page or command that
needs one conversation at once; see `keeping`. A row is a function of the ledger alone, so
that rows kept after each step equal a row made once at the end.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from datetime import datetime
from typing import Any, ClassVar

from django.db.models import F, Q

from chatmemory.kept import KeptPart, KeptRow
from chatmemory.models import Memory

QUICK_MESSAGES = 500  # messages that a request may read to derive a row at once


def version_of(*rules: object) -> str:
    """Return a digest of the rules by which rows are made."""
    return hashlib.sha256(repr(rules).encode()).hexdigest()[:32]


class Keeper(ABC):
    """Derives and stores one kind of row per conversation, such as its incidents."""

    model: ClassVar[type[KeptRow]]
    part: ClassVar[type[KeptPart] | None] = None  # of which a conversation has several rows

    @abstractmethod
    def version(self) -> str:
        """Return the version of the rules, in at most 32 characters. Rows of another version are
        stale.
        """

    @abstractmethod
    def make(self, memory: Memory, before: KeptRow | None) -> dict[str, Any]:
        """Return the columns of the row at the newest step of a conversation: `content`, and all
        that `KeptRow` does not have. A keeper with a `part` also returns `parts`: the rows of it to
        store, all of them if `before` is None, otherwise those that differ from the stored ones.

        `before` is the row of an earlier step, of the same version, from which a keeper may
        continue. `make` is called within one snapshot of the database. Raises ChatMemoryError for a
        conversation that cannot be read.
        """

    def is_current(self, row: KeptRow, memory: Memory) -> bool:
        """Return whether a row of the current version is up to date."""
        return row.step == memory.last_step

    def current(self) -> Q:
        """Return the condition for conversations whose row is up to date."""
        name = self.model.__name__.lower()
        return Q(**{f"{name}__step": F("last_step"), f"{name}__version": self.version()})

    def changed_since(self, at: datetime) -> Q:
        """Return the condition for conversations that may have become stale since a time."""
        return Q(updated_at__gte=at)

    def messages_read(self, memory: Memory) -> int:
        """Return roughly how many messages `make` reads: if they are few, a request makes the row
        at once.
        """
        return memory.said_count

    def kept(self, row: KeptRow, before: KeptRow | None) -> None:  # noqa: B027
        """Hook, called after commit when a row was stored or replaced. The default does nothing.

        `before` is the replaced row, None if there was none.
        """

    def after_round(self) -> None:  # noqa: B027
        """Hook, called after each round over changed conversations, to sum up their rows."""

    def row(self, memory: Memory) -> KeptRow | None:
        """Return the kept row of a conversation by the current rules, or None."""
        rows = self.model.objects.filter(memory=memory, version=self.version())
        return next(iter(rows), None)
