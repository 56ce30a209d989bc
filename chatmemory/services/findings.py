"""What is found of conversations at once, and the figures of the lab, which are computed in slices
and stored until the conversations change. Only numbers are stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from django.db.models import Max
from django.utils import timezone

from chatmemory import database
from chatmemory.core.exceptions import ChatMemoryError, MemoryNotFound
from chatmemory.core.policies import Policy
from chatmemory.core.recall.figures import Figures, Grid, figures_of
from chatmemory.core.stored_policies import can_decide
from chatmemory.ledger.lookup import find_memory
from chatmemory.models import Memory, RecallFigures
from chatmemory.queries.incidents import IncidentKeeper, IncidentsUntil, incidents_in
from chatmemory.queries.lab import Chosen, FleetQuery, chosen_of, grid_of, missing, state_of
from chatmemory.queries.recall import COMPARED_MAX, recall_history
from chatmemory.services.keeping import current, keep
from chatmemory.services.transaction import unless_changing

SECONDS = 1.0
KEPT_FOR = timedelta(days=30)
QUESTIONS_KEPT = 50


def current_incidents(memory_id: str) -> IncidentsUntil:
    """Return the incidents of a conversation up to its newest step; see `keeping.current`.

    Raises MemoryNotFound, and CorruptRow for an altered row.
    """
    row = current(IncidentKeeper(), memory_id)
    return incidents_in(find_memory(memory_id), row)


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
        keep(each.id)
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
