"""Conversations by what people look for; the API and the inspector filter alike."""

from __future__ import annotations

from typing import Self

from django.apps import apps
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.db.models.fields.json import KeyTransform

CLIENT = "client"


class MemoryQuerySet(models.QuerySet):  # type: ignore[type-arg]
    def containing(self, words: str) -> Self:
        """Whose id or any message contains the words, letter case aside."""
        message = apps.get_model("chatmemory", "Message")
        said = message._default_manager.filter(memory=OuterRef("pk"), text__icontains=words)
        return self.filter(Q(id__icontains=words) | Exists(said))

    def with_policy(self, kind: str) -> Self:
        """Of a policy kind; `client` for those whose client decides."""
        return self.filter(policy_kind=None if kind == CLIENT else kind)

    def with_label(self, label: str) -> Self:
        """With a label of that name, or of `name:value`."""
        name, found, value = label.partition(":")
        if not found:
            return self.filter(labels__has_key=name)
        return self.alias(label=KeyTransform(name, "labels")).filter(label=value)
