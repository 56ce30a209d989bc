from __future__ import annotations

import django_filters
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.fields.json import KeyTextTransform

from chatmemory.core.policies import KINDS
from chatmemory.models import Memory, Message

CLIENT = "client"


class MemoryFilter(django_filters.FilterSet):
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

    def by_words(self, queryset: QuerySet[Memory], name: str, value: str) -> QuerySet[Memory]:
        said = Message.objects.filter(memory=OuterRef("pk"), text__icontains=value)
        return queryset.filter(Q(id__icontains=value) | Exists(said))

    def by_policy(self, queryset: QuerySet[Memory], name: str, value: str) -> QuerySet[Memory]:
        return queryset.filter(policy_kind=None if value == CLIENT else value)

    def by_label(self, queryset: QuerySet[Memory], name: str, value: str) -> QuerySet[Memory]:
        label, found, wanted = value.partition(":")
        if not found:
            return queryset.filter(labels__has_key=label)
        return queryset.alias(label=KeyTextTransform(label, "labels")).filter(label=wanted)
