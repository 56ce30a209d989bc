"""Which conversations a list shows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property

from django.db.models import Q

from chatmemory import search
from chatmemory.managers import Flag, MemoryQuerySet, flagged, of_policy
from chatmemory.models import Memory


@dataclass(frozen=True)
class MemoryFilter:
    """A filter of conversations. A conversation must match every field that is not empty.

    `search` searches ids, labels and messages, `policy` is a policy kind or CLIENT, `label` is
    `name` or `name:value`, `id_prefix` is compared exactly, `active_since` is inclusive and
    `active_before` exclusive, and `flag` says what needs attention.
    """

    search: str = ""
    policy: str = ""
    label: str = ""
    id_prefix: str = ""
    active_since: datetime | None = None
    active_before: datetime | None = None
    flag: Flag | None = None

    def rows(self) -> MemoryQuerySet:
        rows = self.searched()
        return rows.containing(self.search) if self.search else rows

    def searched(self) -> MemoryQuerySet:
        """Return the rows that match all other fields, among which `search` searches."""
        rows: MemoryQuerySet = Memory.objects.beginning_with(self.id_prefix).filter(self.columns())
        return rows.with_label(self.label) if self.label else rows

    @cached_property
    def few(self) -> list[str] | None:
        """The ids that the search finds, or None if too many places have the words."""
        return search.few(self.search)

    def columns(self) -> Q:
        """Return the condition of the fields that compare a column of the conversation alone."""
        condition = Q()
        if self.policy:
            condition &= of_policy(self.policy)
        if self.active_since:
            condition &= Q(updated_at__gte=self.active_since)
        if self.active_before:
            condition &= Q(updated_at__lt=self.active_before)
        return condition & flagged(self.flag) if self.flag else condition

    def without_columns(self) -> MemoryFilter:
        """Return this filter without the fields of `columns`."""
        return replace(self, policy="", active_since=None, active_before=None, flag=None)


EVERYTHING = MemoryFilter()
