"""Managers and filters for conversations, shared by the API and the inspector."""

from __future__ import annotations

from typing import Self, TypeVar

from django.db import models
from django.db.models import Q
from django.db.models.fields.json import KeyTransform
from django.db.models.functions import Left

from chatmemory import database, search

Row = TypeVar("Row", bound=models.Model)

CLIENT = "client"
LABEL_LENGTH = 255  # characters of a name


def of_policy(kind: str) -> Q:
    """Return the condition that selects conversations with a policy of this kind. The kind CLIENT
    selects conversations without a policy: there the client decides what memory holds.
    """
    return Q(policy_kind=None if kind == CLIENT else kind)


class MemoryQuerySet(models.QuerySet):  # type: ignore[type-arg]  # not generic at run time
    def containing(self, text: str) -> Self:
        """Select conversations that have all words of the text in one place:

        - in one message
        - in their id and labels together
        - in one text that a room stores, such as a message that only a model call had

        Case and accents do not matter.
        """
        return self.filter(search.index().condition(text))

    def beginning_with(self, prefix: str) -> Self:
        """Select conversations whose id begins with the prefix; case matters.

        `startswith` does not do this, because LIKE ignores case on SQLite.
        """
        if not prefix:
            return self.all()
        return self.alias(beginning=Left("id", len(prefix))).filter(beginning=prefix)

    def with_label(self, label: str) -> Self:
        """Select conversations with a label, given as `name` or `name:value`.

        Names and values may contain colons: of `a:b:c`, the name can be `a`, `a:b` or `a:b:c`.
        """
        found, rows = Q(labels__has_key=label), self
        for place, letter in enumerate(label[: LABEL_LENGTH + 1]):
            name, value = label[:place], label[place + 1 :]
            if name and letter == ":":
                alias = f"label_{len(name)}"
                rows = rows.alias(**{alias: KeyTransform(name, "labels")})
                found |= Q(**{alias: value})
        return rows.filter(found)


class TableManager(models.Manager[Row]):
    """Manages rows in the library's database. Reads use this database, too, even if a router would
    read from a replica.
    """

    def get_queryset(self) -> models.QuerySet[Row]:
        return super().get_queryset().using(self._db or database.alias())


class AnyMemoryManager(TableManager.from_queryset(MemoryQuerySet)):  # type: ignore[misc]  # the base is made at run time
    """Manages all conversations, including those that are being deleted."""


class MemoryManager(AnyMemoryManager):
    """Manages the conversations that can be read and changed: all but those that are being
    deleted.
    """

    def get_queryset(self) -> MemoryQuerySet:
        found: MemoryQuerySet = super().get_queryset()
        return found.filter(deleted_at=None)
