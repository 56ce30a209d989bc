"""Filters for conversations, shared by the API and the inspector."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import reduce
from operator import or_
from typing import Self, TypeVar

from django.db import models
from django.db.models import F, Q
from django.db.models.fields.json import KeyTransform
from django.db.models.functions import Left

from chatmemory import database, search

Row = TypeVar("Row", bound=models.Model)

CLIENT = "client"
LATELY_STEPS = 40
LABEL_LENGTH = 255  # of a name


class Flag(StrEnum):
    """Why a conversation needs attention. ANY is at least one of the others but REFUSED.

    A message was NEVER_IN_MEMORY that left in the step that added it; SAID_AGAIN is any incident
    of a user or a tool, COMPACTED_WITH_LOSS a summary that lost an exact term that was needed.
    """

    ANY = "any"
    SAID_AGAIN = "said_again"
    COMPACTED_WITH_LOSS = "compacted_with_loss"
    NEVER_IN_MEMORY = "never_in_memory"
    OVERSIZED = "oversized"
    DANGLING = "dangling"
    ORPHANED = "orphaned"
    REFUSED = "refused"
    OVER_LIMIT = "over_limit"


def breaking(rule: str) -> Q:
    """Return the condition for a window that breaks a rule; see `ledger.health`."""
    return Q(problems__contains=f",{rule},")


_REFUSED = Q(refused_by__gt=0)
_FLAGS = {
    Flag.DANGLING: _REFUSED & (breaking("dangling_call") | breaking("results_apart")),
    Flag.ORPHANED: _REFUSED & (breaking("orphan_result") | breaking("duplicate_result")),
    Flag.OVERSIZED: Q(oversized_step__gt=F("last_step") - LATELY_STEPS),
    Flag.OVER_LIMIT: Q(window_load__gt=F("policy_limit")),
    Flag.NEVER_IN_MEMORY: Q(missed_step__gt=F("last_step") - LATELY_STEPS),
    Flag.SAID_AGAIN: Q(keptincidents__newest_at__isnull=False),
    Flag.COMPACTED_WITH_LOSS: Q(keptcompactions__terms_lost__gt=0),
}
_FLAGS |= {Flag.ANY: reduce(or_, _FLAGS.values()), Flag.REFUSED: _REFUSED}


def of_policy(kind: str) -> Q:
    """Return the condition for a policy of this kind; CLIENT: the client decides."""
    return Q(policy_kind=None if kind == CLIENT else kind)


def flagged(flag: Flag) -> Q:
    """Return the condition for a flag."""
    return _FLAGS[flag]


class MemoryQuerySet(models.QuerySet):  # type: ignore[type-arg]
    def containing(self, text: str) -> Self:
        """Select those whose id, labels or messages contain the text; case is ignored."""
        return self.filter(search.index().condition(text))

    def beginning_with(self, prefix: str) -> Self:
        """Select those whose id begins with the prefix, which is case-sensitive.

        `startswith` does not do this, because LIKE ignores case on SQLite.
        """
        if not prefix:
            return self.all()
        return self.alias(beginning=Left("id", len(prefix))).filter(beginning=prefix)

    def with_label(self, label: str) -> Self:
        """Select those with a label, given as `name` or `name:value`.

        Names and values may hold colons, so it can be meant in several ways: each is looked for.
        """
        found, rows = Q(labels__has_key=label), self
        for colon in re.finditer(":", label[: LABEL_LENGTH + 1]):
            name, value = label[: colon.start()], label[colon.end() :]
            if name:
                alias = f"label_{len(name)}"
                rows = rows.alias(**{alias: KeyTransform(name, "labels")})
                found |= Q(**{alias: value})
        return rows.filter(found)


class TableManager(models.Manager[Row]):
    """Rows of our database, also where routers would read them from another; see `database`."""

    def get_queryset(self) -> models.QuerySet[Row]:
        return super().get_queryset().using(self._db or database.alias())


class AnyMemoryManager(TableManager.from_queryset(MemoryQuerySet)):  # type: ignore[misc]
    """Conversations, also those whose deletion has begun."""


class MemoryManager(AnyMemoryManager):
    """Conversations without those whose deletion has begun: nobody can read or change these."""

    def get_queryset(self) -> MemoryQuerySet:
        found: MemoryQuerySet = super().get_queryset()
        return found.filter(deleted_at=None)
