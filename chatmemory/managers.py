"""Conversations by what people look for; the API and the inspector filter alike."""

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

    def containing(self, words: str) -> Self:
        """Whose id or any message contains the words, letter case aside; see `search`."""
        return self.filter(Q(id__icontains=words) | saying(words))

    def beginning_with(self, prefix: str) -> Self:
        """Whose id begins with this, to the letter: LIKE would take other cases on SQLite."""
        if not prefix:
            return self.all()
        return self.alias(beginning=Left("id", len(prefix))).filter(beginning=prefix)

    def flagged(self) -> Self:
        """With a dangling tool call, or an oversized message lately."""
        return self.filter(Q(dangling_call__isnull=False) | self.OVERSIZED_LATELY)

    def with_policy(self, kind: str) -> Self:
        """Of a policy kind; `client` for those whose client decides."""
        return self.filter(policy_kind=None if kind == CLIENT else kind)

    def with_label(self, label: str) -> Self:
        """With a label of that name, or of `name:value`."""
        name, found, value = label.partition(":")
        if not found:
            return self.filter(labels__has_key=name)
        return self.alias(label=KeyTransform(name, "labels")).filter(label=value)
