"""Filters for conversations, shared by the API and the inspector."""

from __future__ import annotations

from typing import Self

from django.db import models
from django.db.models import F, Q
from django.db.models.fields.json import KeyTransform
from django.db.models.functions import Left

from chatmemory.search import saying

CLIENT = "client"
LATELY_STEPS = 40


class MemoryQuerySet(models.QuerySet):  # type: ignore[type-arg]
    OVERSIZED_LATELY = Q(oversized_step__gt=F("last_step") - LATELY_STEPS)

    def containing(self, text: str) -> Self:
        """Select those whose id or messages contain the text; case is ignored. See `search`."""
        return self.filter(Q(id__icontains=text) | saying(text))

    def beginning_with(self, prefix: str) -> Self:
        """Select those whose id begins with the prefix, which is case-sensitive.

        `startswith` does not do this, because LIKE ignores case on SQLite.
        """
        if not prefix:
            return self.all()
        return self.alias(beginning=Left("id", len(prefix))).filter(beginning=prefix)

    def flagged(self) -> Self:
        """Select those with a dangling tool call or a recent oversized message."""
        return self.filter(Q(dangling_call__isnull=False) | self.OVERSIZED_LATELY)

    def with_policy(self, kind: str) -> Self:
        """Select those with a policy of this kind; CLIENT selects those whose client decides."""
        return self.filter(policy_kind=None if kind == CLIENT else kind)

    def with_label(self, label: str) -> Self:
        """Select those with a label, given as `name` or `name:value`."""
        name, separator, value = label.partition(":")
        if not separator:
            return self.filter(labels__has_key=name)
        return self.alias(label=KeyTransform(name, "labels")).filter(label=value)
