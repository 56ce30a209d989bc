"""The base tables for rows that are derived from ledgers: one row for each conversation.

A `chatmemory.keeper.Keeper` makes the rows. Each row can be made again from the ledger. All columns
are whole numbers or texts: unlike a date, these can be read even if somebody altered them. Times
are microseconds since 1970. Structured values are JSON in `content`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from django.db import models

from chatmemory.exceptions import CorruptRow
from chatmemory.managers import TableManager
from chatmemory.messages.json_values import JsonValue


class KeptRow(models.Model):
    """A row that is derived from the ledger of one conversation, up to `step`.

    `version` is the version of the keeper's rules. Rows of another version are out of date.
    `kept_at`, the time at which the row was stored, is the only column that does not follow from
    the ledger.
    """

    memory = models.OneToOneField(
        "chatmemory.Memory", models.CASCADE, primary_key=True, db_constraint=False
    )
    step = models.BigIntegerField()
    version = models.CharField(max_length=32)
    kept_at = models.BigIntegerField(help_text="when it was stored, in microseconds since 1970")
    content = models.TextField(default="[]", help_text="JSON, see the keeper")

    objects = TableManager()

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.pk} {self._meta.verbose_name}"

    @contextmanager
    def reading(self) -> Iterator[JsonValue]:
        """Yield the JSON value in `content` to a `with` block.

        Raises CorruptRow if `content` is no JSON, or if the block fails because the value has an
        unexpected shape.
        """
        try:
            yield json.loads(self.content)
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise CorruptRow(
                f"the stored {self._meta.verbose_name} of {self.pk!r} cannot be read: run "
                "manage.py verify_memories, which computes this data again"
            ) from error


class KeptPart(models.Model):
    """A row of derived data of which a conversation may have several, in addition to its `KeptRow`.

    It is stored together with the `KeptRow`, and has the same version. `key` is the name of the
    column that identifies a row within its conversation.
    """

    key: ClassVar[str]

    memory_id: str
    memory = models.ForeignKey(
        "chatmemory.Memory", models.CASCADE, related_name="+", db_index=False, db_constraint=False
    )

    objects = TableManager()

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.memory_id} {self._meta.verbose_name} {getattr(self, self.key)}"
