from __future__ import annotations

import django_filters

from chatmemory.core.policies import KINDS
from chatmemory.managers import CLIENT, MemoryQuerySet
from chatmemory.models import Memory


class MemoryFilter(django_filters.FilterSet):  # type: ignore[misc]
    """Which conversations: by words, policy, label and time of last activity."""

    search = django_filters.CharFilter(method="by_words", label="in the id or in what was said")
    policy = django_filters.ChoiceFilter(
        method="by_policy", choices=[(kind, kind) for kind in (*KINDS, CLIENT)]
    )
    label = django_filters.CharFilter(method="by_label", label="name, or name:value")
    active_since = django_filters.IsoDateTimeFilter("updated_at", "gte")
    active_before = django_filters.IsoDateTimeFilter("updated_at", "lt")

    class Meta:
        model = Memory
        fields: tuple[str, ...] = ()

    def by_words(self, queryset: MemoryQuerySet, name: str, value: str) -> MemoryQuerySet:
        return queryset.containing(value)

    def by_policy(self, queryset: MemoryQuerySet, name: str, value: str) -> MemoryQuerySet:
        return queryset.with_policy(value)

    def by_label(self, queryset: MemoryQuerySet, name: str, value: str) -> MemoryQuerySet:
        return queryset.with_label(value)
