"""Computes and stores figures of the lab, and sets the advised policies. Each call works for about
a second, and the next call continues.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta

from django.db.models import Max
from django.utils import timezone

from chatmemory import database, services
from chatmemory.exceptions import (
    ChatMemoryError,
    CorruptRow,
    DeletionUnfinished,
    ImportUnfinished,
    MemoryNotFound,
)
from chatmemory.keeping import keep
from chatmemory.ledger.transaction import unless_changing
from chatmemory.messages.json_values import JsonMap
from chatmemory.models import Memory
from chatmemory.reading.clients import decided_by_clients
from chatmemory.reading.recall import recall_history
from chatmemory.recall.frontier import MEASURED_MAX, Figures, TriedPolicies, figures_of
from chatmemory.windows.policies import Policy
from inspector.rooms.lab import models
from inspector.rooms.lab.figures import answers_of, kept_figures
from inspector.rooms.lab.reads import (
    Chosen,
    FleetQuery,
    answers,
    chosen_of,
    missing,
    state_of,
    tried_of,
)
from inspector.shell.advice import policy_to_set

SECONDS = 1.0
KEPT_FOR = timedelta(days=30)
QUESTIONS_KEPT = 50


def compute_figures(query: FleetQuery, seconds: float = SECONDS) -> int:
    """Compute and store missing figures of the chosen conversations. Return how many conversations
    remain without figures.

    The call ends after about `seconds`, but computes at least one conversation. A conversation that
    is deleted or changed meanwhile is skipped.
    """
    tried = tried_of(query)
    key = query.key(tried)
    waiting = missing(query, chosen_of(query)[1])
    found: dict[Chosen, Figures] = {}
    done = 0
    for each in database.for_seconds(seconds, waiting):
        if _is_kept(each, tried):
            done += 1
        elif (figures := _figures(each, tried)) is not None:
            found[each] = figures
    keep_values(key, {each: figures.to_dict() for each, figures in found.items()})
    return len(waiting) - len(found) - done


def _is_kept(each: Chosen, tried: TriedPolicies) -> bool:
    """Bring the stored figures of a conversation up to date, and return whether they have all
    policies in `tried`.
    """
    if not answers_of(each.policy, tried):
        return False
    try:
        keep(each.id)
    except ChatMemoryError:
        return False
    known = next(kept_figures([each.id]), None)
    return known is not None and known.state == each.step and answers(known, tried)


def _figures(each: Chosen, tried: TriedPolicies) -> Figures | None:
    """Return the figures of a conversation; None if it is deleted or has changed meanwhile."""
    memory = Memory.objects.filter(id=each.id).first()
    if memory is None or state_of(memory) != each.state:
        return None
    try:
        keep(each.id)
        history = recall_history(each.id, tried.kind.estimator, latest=MEASURED_MAX)
        return figures_of(history, tried, each.policy if each.decides else None)
    except MemoryNotFound:
        return None
    except ChatMemoryError:
        return Figures(is_unreadable=True)


def forget_old_figures() -> None:
    """Delete the figures for old questions to the lab: all questions but the 50 newest, and
    questions whose figures were last computed more than 30 days ago.
    """
    last = models.Figures.objects.values("key").annotate(last=Max("computed_at"))
    questions = list(last.order_by("-last").values_list("key", "last"))
    oldest = timezone.now() - KEPT_FOR
    for n, (key, computed_at) in enumerate(questions):
        if n >= QUESTIONS_KEPT or computed_at < oldest:
            models.Figures.objects.filter(key=key).delete()


def keep_values(key: str, found: Mapping[Chosen, JsonMap]) -> None:
    """Store the figures of conversations for one question to the lab. `key` identifies the
    question.

    Conversations that were changed or deleted after they were chosen are left out. Conversations
    that another transaction is changing are left out, too.
    """
    if found and not models.Figures.objects.filter(key=key).exists():
        forget_old_figures()
    with database.atomic():
        kept = [
            models.Figures(memory_id=each.id, key=key, state=each.state, figures=values)
            for each, values in found.items()
            if _is_unchanged(each)
        ]
        models.Figures.objects.bulk_create(
            kept,
            update_conflicts=True,
            unique_fields=["memory", "key"],
            update_fields=["state", "figures", "computed_at"],
        )


def _is_unchanged(each: Chosen) -> bool:
    row = unless_changing(each.id, "head", "last_step")
    return row is not None and state_of(Memory(head=row[0], last_step=row[1])) == each.state


def adopt(policies: Mapping[str, Policy | None], actor: str = "", seconds: float = SECONDS) -> int:
    """Set the policy of each conversation in `policies`, which maps IDs to policies. The call ends
    after about `seconds`.

    Return how many conversations the call did not reach in this time. Call the function again for
    these.

    The policy None means sending everything: the conversation's own policy gets the option
    `meters_only`, so that no message leaves memory.

    Conversations that cannot be changed now, such as during an import, are skipped. So are
    conversations whose clients decide the window.
    """
    chosen = database.in_list("id", list(policies))
    rows = Memory.objects.filter(chosen).exclude(decided_by_clients())
    to_set = {row.id: policy_to_set(policies[row.id], row.policy) for row in rows}
    in_force = {row.id: row.policy for row in rows}
    waiting = [id for id, policy in to_set.items() if in_force[id] != policy]
    done = 0
    for memory_id in database.for_seconds(seconds, waiting):
        done += 1
        with suppress(CorruptRow, DeletionUnfinished, ImportUnfinished, MemoryNotFound):
            services.change(memory_id, policy=to_set[memory_id], actor=actor)
    return len(waiting) - done
