"""Incidents, and what compactions lost, are stored when found, until the conversation changes.

Only numbers and the names of triggers and summarizers are stored. A deletion or a redaction removes
them. In a server, an `IncidentFinder` finds them anew; otherwise the next read does.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from time import monotonic

from django.db import DatabaseError
from django.utils import timezone

from chatmemory import database
from chatmemory.core.exceptions import MemoryNotFound
from chatmemory.core.recall.incidents import IncidentKind
from chatmemory.models import FoundIncidents, Step
from chatmemory.queries.compactions import lost_count
from chatmemory.queries.conversations import is_writable
from chatmemory.queries.incidents import (
    STALE_AT_ONCE,
    IncidentsUntil,
    computed_incidents,
    incidents,
    kept_row,
    stale_incidents,
    words_digest,
)
from chatmemory.services.database_errors import outage
from chatmemory.services.transaction import unless_changing
from chatmemory.signals import incidents_found

COMMITTED_WITHIN = timedelta(minutes=1)  # a change is seen after the time that it has

logger = logging.getLogger(__name__)


def current_incidents(memory_id: str) -> IncidentsUntil:
    """Return the incidents of a conversation up to its newest step, and keep them where the
    database can be written and the conversation has not changed meanwhile. Raises MemoryNotFound.
    """
    found = incidents(memory_id)
    if found.is_current:
        return found
    found = computed_incidents(memory_id)
    with suppress(DatabaseError):
        _keep_if_unchanged(memory_id, found)
    return found


def _keep_if_unchanged(memory_id: str, found: IncidentsUntil) -> None:
    with database.atomic():
        if unless_changing(memory_id, "last_step") == (found.step,):
            _keep(memory_id, found)


def _keep(memory_id: str, found: IncidentsUntil) -> None:
    counts = Counter(each.kind for each in found.incidents)
    told = [each for each in found.incidents if each.kind is not IncidentKind.USED]
    newest = [each.step for each in told[-1:]]
    at = Step.objects.filter(memory=memory_id, n__in=newest).values_list("at", flat=True).first()
    before = FoundIncidents.objects.filter(memory=memory_id).values_list("step", flat=True).first()
    values = {
        "step": found.step,
        "words": words_digest(),
        "rows": [kept_row(each) for each in found.incidents],
        "compactions": found.compactions,
        "compacted": len(found.compactions),
        "terms_lost": lost_count(found.compactions),
        "newest_step": newest[0] if newest else None,
        "newest_at": at,
        **{kind.value: counts[kind] for kind in IncidentKind},
    }
    FoundIncidents.objects.update_or_create(memory_id=memory_id, defaults=values)
    new = Counter(each.kind.value for each in told if each.step > (before or 0))
    if new:
        database.on_commit(lambda: _announce(memory_id, new))


def _announce(memory_id: str, new: Counter[str]) -> None:
    incidents_found.send_robust(FoundIncidents, memory_id=memory_id, new=dict(new))


class IncidentFinder:
    """Finds the incidents of conversations that change, then of those that had changed before, the
    newest change first. A conversation that fails is logged once, and left to its next reader.
    """

    def __init__(self) -> None:
        self._since = timezone.now() - COMMITTED_WITHIN
        self._before: datetime | None = self._since
        self._failed: set[str] = set()

    def find_some(self, seconds: float) -> None:
        """Find those of some conversations, the ones that changed last first: all, or as many as
        about so many seconds are enough for. Where nothing can be written, none are looked for.
        """
        if not is_writable():
            return
        end = monotonic() + seconds
        for memory_id in self._stale():
            self._find(memory_id)
            if monotonic() >= end:
                return

    def _stale(self) -> Iterator[str]:
        now = timezone.now()
        changed = stale_incidents(since=self._since, leaving_out=self._failed)
        yield from _in_own_order(changed)
        if len(changed) == STALE_AT_ONCE:
            return
        self._since = now - COMMITTED_WITHIN
        if self._before:
            earlier = stale_incidents(before=self._before, leaving_out=self._failed)
            yield from _in_own_order(earlier)
            self._before = min(earlier.values(), default=None)

    def _find(self, memory_id: str) -> None:
        try:
            if not incidents(memory_id).is_current:
                _keep_if_unchanged(memory_id, computed_incidents(memory_id))
        except MemoryNotFound:  # deleted meanwhile
            return
        except Exception as error:
            if outage(error):
                raise
            logger.exception("the incidents of %r cannot be found", memory_id)
            self._failed.add(memory_id)


def _in_own_order(memory_ids: Iterable[str]) -> list[str]:
    """Sort ids otherwise than other processes do, so that they seldom look for the same ones."""
    return sorted(memory_ids, key=lambda memory_id: hash((os.getpid(), memory_id)))
