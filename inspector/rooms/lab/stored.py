"""Figures of stored conversations: how many needed facts policies would have held, the figures for
advice, and the tokens in memory by kind of message.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial

from django.db.models import Sum

from chatmemory import database
from chatmemory.advice import Measured
from chatmemory.advice.recalls import Recalls
from chatmemory.exceptions import ChatMemoryError, InvalidValue, MemoryNotFound
from chatmemory.models import Stay
from chatmemory.reading.budget import Budget, kind_of
from chatmemory.reading.finding import MemoryFilter
from chatmemory.reading.recall import messages_and_history, recall_history
from chatmemory.recall import for_each_policy
from chatmemory.recall.cost import NO_BOUNDS, CacheRules
from chatmemory.recall.frontier import ANY_LIMIT, MEASURED_MAX, Figures, figures_of
from chatmemory.reports.strategies import conversation_of
from chatmemory.strategies import Conversation
from chatmemory.windows.policies import DEFAULT_ESTIMATOR, Policy, TokenWindow
from chatmemory.windows.written_policies import policies_from_text
from inspector.rooms.lab.reads import (
    ROWS_AT_ONCE,
    FleetQuery,
    chosen_of,
    measured_now,
    tried_of,
    usual_kind,
)

READ_AT_ONCE = 20_000  # the most messages that an answer replays


def recall_of_stored(
    which: MemoryFilter,
    policies: Sequence[Policy | None],
    most: int | None = None,
    rules: CacheRules = NO_BOUNDS,
) -> Recalls:
    """Return how many needed facts each policy would have held in the matching conversations, and
    the figures for advice.

    Conversations are read one after the other. Conversations that are deleted meanwhile are left
    out. Raises UnknownEstimator. Raises InvalidValue if the conversations together have more than
    `most` messages.
    """
    rows = which.rows().order_by("id").values_list("id", "said_count")
    if most is not None and (amount := sum(count for _, count in rows)) > most:
        raise InvalidValue(
            f"the chosen conversations have {amount:,} messages, and one request measures at most "
            f"{most:,}: choose fewer conversations, or use manage.py recall"
        )
    found = Recalls(policies, rules)
    for each in measured_stored(which, rules):
        read = partial(recall_history, each.id, latest=MEASURED_MAX)
        with suppress(MemoryNotFound):
            found.add(for_each_policy(policies, read), each)
    return found


def measured_stored(which: MemoryFilter, rules: CacheRules) -> Iterator[Measured]:
    """Yield the matching conversations with their figures for advice. Missing figures are computed,
    but not stored.
    """
    kind = policies_from_text(f"{usual_kind(which) or TokenWindow.kind}:{ANY_LIMIT}")[0]
    assert kind is not None
    query = FleetQuery(which, kind, rules=rules)
    tried = tried_of(query)
    for chosen, known in measured_now(query, chosen_of(query)[1]).items():
        if known.figures is not None:
            yield known
            continue
        try:
            history = recall_history(chosen.id, kind.estimator, latest=MEASURED_MAX)
            figures = figures_of(history, tried, chosen.policy if chosen.decides else None)
        except MemoryNotFound:
            continue
        except ChatMemoryError:
            figures = Figures(is_unreadable=True)
        yield known._replace(figures=figures, tried=tried)


def conversations_stored(which: MemoryFilter) -> Iterator[Conversation]:
    """Yield the matching conversations, to measure strategies of agent frameworks on them.
    Conversations that are deleted meanwhile are left out.
    """
    for id in which.rows().order_by("id").values_list("id", flat=True):
        with suppress(MemoryNotFound):
            yield stored_conversation(id)


def stored_conversation(id: str, latest: int = MEASURED_MAX) -> Conversation:
    """Return a conversation with its newest messages (at most `latest`), to measure strategies of
    agent frameworks. Raises MemoryNotFound.
    """
    messages, history = messages_and_history(id, DEFAULT_ESTIMATOR, latest)
    return conversation_of(messages, history=history)


def budget_of_all(ids: Sequence[str]) -> Budget:
    """Return how many tokens the given conversations have in memory together, by kind of message,
    such as tool results.
    """
    tokens = dict.fromkeys(("system", "results", "user", "ai", "calls"), 0)
    for first in range(0, len(ids), ROWS_AT_ONCE):
        some = database.in_list("memory_id", ids[first : first + ROWS_AT_ONCE])
        open_stays = Stay.objects.filter(some, left_step=None).order_by()
        sums = open_stays.values_list("type", "has_calls").annotate(sum=Sum("tokens"))
        for type, has_calls, amount in sums:
            tokens[kind_of(type, has_calls)] += amount
    return Budget(**tokens)
