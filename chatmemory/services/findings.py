"""What is found of conversations, and stored until they change: incidents, what compactions lost,
and the figures of the lab, which are computed in slices.

Only numbers and the names of triggers and summarizers are stored. A deletion or a redaction removes
them. In a server, an `IncidentFinder` finds incidents anew; otherwise the next read does.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial

from django.db import DatabaseError
from django.db.models import Max
from django.utils import timezone

from chatmemory import database
from chatmemory.core.exceptions import ChatMemoryError, MemoryNotFound
from chatmemory.core.policies import Policy
from chatmemory.core.recall.figures import Figures, Grid, figures_of
from chatmemory.core.recall.incidents import IncidentKind
from chatmemory.core.stored_policies import can_decide
from chatmemory.models import FoundIncidents, Memory, RecallFigures, Step
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
from chatmemory.queries.lab import Chosen, FleetQuery, chosen_of, grid_of, missing, state_of
from chatmemory.queries.recall import COMPARED_MAX, recall_history
from chatmemory.services.database_errors import outage
from chatmemory.services.transaction import unless_changing
from chatmemory.signals import incidents_found

COMMITTED_WITHIN = timedelta(minutes=1)  # a change is seen after the time that it has
SECONDS = 1.0
KEPT_FOR = timedelta(days=30)
QUESTIONS_KEPT = 50

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
            _keep_incidents(memory_id, found)


def _keep_incidents(memory_id: str, found: IncidentsUntil) -> None:
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
        database.on_commit(
            partial(incidents_found.send_robust, FoundIncidents, memory_id=memory_id, new=dict(new))
        )


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
        for memory_id in database.for_seconds(seconds, self._stale()):
            self._find(memory_id)

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


# Figures of the lab


def compute_figures(query: FleetQuery, seconds: float = SECONDS) -> int:
    """Compute figures of the chosen conversations; return how many conversations remain.

    The call ends after about `seconds`, and computes at least one conversation. A conversation that
    is deleted or changed in between is left out.
    """
    grid = grid_of(query)
    key = query.key(grid)
    waiting = missing(key, chosen_of(query)[1])
    found: dict[Chosen, Figures] = {}
    for each in database.for_seconds(seconds, waiting):
        figures = _figures(each, query.kind, grid)
        if figures is not None:
            found[each] = figures
    _keep_figures(key, found)
    return len(waiting) - len(found)


def _figures(each: Chosen, kind: Policy, grid: Grid) -> Figures | None:
    """Return the figures of a conversation; None if it is deleted or has changed meanwhile."""
    memory = Memory.objects.filter(id=each.id).first()
    if memory is None or state_of(memory.head, memory.last_step) != each.state:
        return None
    try:
        current_incidents(each.id)
        history = recall_history(each.id, kind.estimator, latest=COMPARED_MAX)
        today = memory.policy if can_decide(memory.policy) else None
        return figures_of(history, kind, grid, today)
    except MemoryNotFound:
        return None
    except ChatMemoryError:
        return Figures(is_unreadable=True)


def forget_old_figures() -> None:
    """Delete the figures of questions that are old, or older than those that are kept."""
    last = RecallFigures.objects.values("key").annotate(last=Max("computed_at"))
    questions = list(last.order_by("-last").values_list("key", "last"))
    oldest = timezone.now() - KEPT_FOR
    for n, (key, asked) in enumerate(questions):
        if n >= QUESTIONS_KEPT or asked < oldest:
            RecallFigures.objects.filter(key=key).delete()


def _keep_figures(key: str, found: Mapping[Chosen, Figures]) -> None:
    """Store figures of conversations that are still as they were read, and not being changed."""
    if found and not RecallFigures.objects.filter(key=key).exists():
        forget_old_figures()
    with database.atomic():
        kept = [
            RecallFigures(memory_id=each.id, key=key, state=each.state, figures=figures.to_dict())
            for each, figures in found.items()
            if (row := unless_changing(each.id, "head", "last_step"))
            and state_of(*row) == each.state
        ]
        RecallFigures.objects.bulk_create(
            kept,
            update_conflicts=True,
            unique_fields=["memory", "key"],
            update_fields=["state", "figures", "computed_at"],
        )
