"""Derives the hourly figures of conversations after changes. New steps and new recorded calls make
a stored row outdated.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from django.conf import settings
from django.db.models import OuterRef, Q, Subquery
from django.db.models.functions import Coalesce

from chatmemory.columns import ColumnValues
from chatmemory.exceptions import CorruptRow
from chatmemory.keeper import Keeper, version_of
from chatmemory.kept import KeptRow
from chatmemory.models import Memory
from chatmemory.reading.passage import Passage
from chatmemory.recall.cost import Provider, providers
from inspector.rooms.calls.models import CallRun, ModelCall
from inspector.rooms.hours.clock import HOUR, hour_of
from inspector.rooms.hours.deriving import Derivation, State, counted_cost, past_flags
from inspector.rooms.hours.figures import refresh_if_due
from inspector.rooms.hours.models import Hour, KeptHours
from inspector.shell.prices import CACHES, usual

RULES = 1  # raise it with each change of the derivation
_COUNTED = ("calls", "call_tokens", "call_cost")


class HoursKeeper(Keeper):
    """Stores the hours of each conversation: turns, prompts, their cost, and the problems that
    began.
    """

    model = KeptHours
    part = Hour

    def version(self) -> str:
        found = [(each.name, each.cases.past.version()) for each in past_flags() if each.cases.past]
        price = provider_of_estimates()
        rules = (price.name, price.rules, price.cached, price.write)
        return version_of(RULES, settings.TIME_ZONE, rules, found)

    def is_current(self, row: KeptRow, memory: Memory) -> bool:
        assert isinstance(row, KeptHours)
        return super().is_current(row, memory) and row.call == newest_call(memory)

    def current(self) -> Q:
        runs = CallRun.objects.filter(memory=OuterRef("pk")).values("calls")
        return super().current() & Q(kepthours__call=Coalesce(Subquery(runs), 0))

    def changed_since(self, at: datetime) -> Q:
        called = CallRun.objects.filter(changed_at__gte=at).values("memory")
        return super().changed_since(at) | Q(id__in=called)

    def after_round(self) -> None:
        refresh_if_due()

    def make(self, memory: Memory, before: KeptRow | None) -> ColumnValues:
        assert before is None or isinstance(before, KeptHours)
        state = _state_of(before)
        passage = Passage(memory, before.step if before else 0, state.prompt_step)

        def stored(hour: int) -> Hour | None:
            rows = Hour.objects.filter(memory=memory, hour=hour) if before else ()
            return next(iter(rows), None)

        derivation = Derivation(passage, state, provider_of_estimates(), stored)
        derivation.run()
        call = newest_call(memory)
        newest = _add_calls(derivation, memory, before.call if before else 0)
        if before is None:
            _keep_counts(derivation, memory)
        return {
            "content": state.written(),
            "call": call,
            "said": state.said,
            "untimed": state.untimed,
            "last_hour": state.last_hour,
            "provider": newest.provider if newest else before.provider if before else "",
            "model": newest.model if newest else before.model if before else "",
            "parts": list(derivation.hours.values()),
        }


def provider_of_estimates() -> Provider:
    """Return the provider whose cache price is used to estimate the cost of prompts: the first
    provider in use.
    """
    found = usual()
    return providers()[found.provider].for_model(found.model)


def newest_call(memory: Memory) -> int:
    """Return the number of the newest recorded call of a conversation, or 0 if there is none."""
    rows = CallRun.objects.filter(memory=memory).values_list("calls", flat=True)
    return next(iter(rows), 0)


def _state_of(before: KeptHours | None) -> State:
    if before is None:
        return State()
    with before.reading() as values:
        return State.read(values)
    raise CorruptRow("unreachable")


# Recorded calls


def _add_calls(derivation: Derivation, memory: Memory, known: int) -> ModelCall | None:
    """Add the recorded calls after call number `known`. All calls of an affected hour are counted
    again. Return the newest call, or None without new calls.
    """
    rows = ModelCall.objects.without_bodies().filter(memory=memory)
    new = list(rows.filter(n__gt=known).order_by("at", "n"))
    for hour in sorted({hour_of(each.at) for each in new}):
        begin, end = (datetime.fromtimestamp(each, UTC) for each in (hour, hour + HOUR))
        within = [each for each in new if hour_of(each.at) == hour]
        if known:
            within = list(rows.filter(at__gte=begin, at__lt=end))
        _count(derivation.hour(hour), within)
    return new[-1] if new else None


def _count(row: Hour, calls: Iterable[ModelCall]) -> None:
    row.calls = row.call_tokens = row.call_cost = 0
    for each in calls:
        if each.input is not None:
            row.calls += 1
            row.call_tokens += each.input
            priced = _priced(each.provider, each.model)
            row.call_cost += counted_cost(each.input, each.cached or 0, each.written or 0, priced)


def _priced(provider: str, model: str) -> Provider | None:
    found = CACHES.get(provider)
    return providers()[found].for_model(model) if found else None


def _keep_counts(derivation: Derivation, memory: Memory) -> None:
    """Keep the stored counts of hours whose recorded calls were deleted; see
    INSPECTOR["CALL_DAYS"].
    """
    for each in Hour.objects.filter(memory=memory, calls__gt=0):
        row = derivation.hour(each.hour)
        if not row.calls:
            for name in _COUNTED:
                setattr(row, name, getattr(each, name))
