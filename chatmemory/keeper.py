"""Keepers: the one mechanism for what is derived from the ledger of a conversation.

A keeper makes a row for each conversation. Nothing is derived in the transaction of a change: after
the commit the thread of a server does it, or `manage.py keep`, or whoever needs one conversation at
once; see `ledger.keeping`. What a keeper makes is a function of the ledger alone, so that rows
kept after each step equal a row made once at the end.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from typing import Any, ClassVar

from chatmemory.kept import KeptRow
from chatmemory.models import Memory

QUICK_MESSAGES = 500  # that a request reads to derive something at once


def version_of(*rules: object) -> str:
    """Return a digest of the rules by which rows are made."""
    return hashlib.sha256(repr(rules).encode()).hexdigest()[:32]


class Keeper(ABC):
    """A keeper of one kind of rows."""

    model: ClassVar[type[KeptRow]]

    @abstractmethod
    def version(self) -> str:
        """Return the version of the rules, in at most 32 characters. Rows of another are stale."""

    @abstractmethod
    def make(self, memory: Memory, before: KeptRow | None) -> dict[str, Any]:
        """Return the columns of the row at the newest step of a conversation, but for those of
        `KeptRow` other than `content`.

        `before` is the row of an earlier step, by the same version, of which a keeper may go on.
        It is called within one snapshot of the database. Raises ChatMemoryError for a conversation
        that cannot be read.
        """

    def messages_read(self, memory: Memory) -> int:
        """Return about how many messages `make` reads: a request makes a row of few at once."""
        return memory.said_count

    def kept(self, row: KeptRow, before: KeptRow | None) -> None:  # noqa: B027
        """Send a signal: called after the commit that stored a row in the place of `before`."""

    def row(self, memory: Memory) -> KeptRow | None:
        """Return the kept row of a conversation by today's rules, or None."""
        rows = self.model.objects.filter(memory=memory, version=self.version())
        return next(iter(rows), None)
