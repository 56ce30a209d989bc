"""Finds the conversations whose clients decide what is in memory."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from django.db.models import Exists, OuterRef, Q

from chatmemory import database
from chatmemory.models import Memory, Step


def decided_by_clients() -> Q:
    """Return the query condition for conversations whose clients decide what is in memory.

    Such a conversation has no policy, or a policy that only measures the list that the client
    sends.
    """
    lists = Step.objects.filter(memory=OuterRef("pk"), by_client=True)
    return Q(policy_kind=None) | Q(Exists(lists), policy_options__has_key="meters_only")


def of_clients(rows: Iterable[Memory]) -> set[str]:
    """Return the ids of the conversations in `rows` whose clients decide what is in memory."""
    listed = list(rows)
    without = {row.pk for row in listed if row.policy_kind is None}
    metering = [row.pk for row in listed if "meters_only" in (row.policy_options or ())]
    if not metering:
        return without
    asked = Memory.objects.filter(database.in_list("id", metering)).filter(decided_by_clients())
    return without | set(asked.values_list("id", flat=True))


def ids_of_clients(memory_ids: Collection[str]) -> set[str]:
    """Return which of these ids belong to conversations whose clients decide what is in memory."""
    rows = Memory.objects.filter(database.in_list("id", list(memory_ids)))
    return of_clients(rows.only("id", "policy_kind", "policy_options"))
