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
        """Those whose id or messages contain the text, ignoring case; see `search`."""
        return self.filter(Q(id__icontains=text) | saying(text))

    def beginning_with(self, prefix: str) -> Self:
        """Those whose id begins with the prefix. Case matters, so not LIKE: SQLite ignores case."""
        if not prefix:
            return self.all()
        return self.alias(beginning=Left("id", len(prefix))).filter(beginning=prefix)

    def flagged(self) -> Self:
        """Those with a dangling tool call, or with an oversized message in the last steps."""
        return self.filter(Q(dangling_call__isnull=False) | self.OVERSIZED_LATELY)

    def with_policy(self, kind: str) -> Self:
        """Those with a policy of this kind; CLIENT for those whose client decides."""
        return self.filter(policy_kind=None if kind == CLIENT else kind)

    def with_label(self, label: str) -> Self:
        """Those with a label of this name, or with `name:value`."""
        name, found, value = label.partition(":")
        if not found:
            return self.filter(labels__has_key=name)
        return self.alias(label=KeyTransform(name, "labels")).filter(label=value)
