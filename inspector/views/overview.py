"""The overview of all conversations, with the messages that left memory last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, cast

from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.http import urlencode
from django.views.decorators.http import require_POST, require_safe

from chatmemory import InvalidValue, explain, policy_kinds, queries
from chatmemory.queries import CLIENT, FeedItem, OverviewRow
from inspector import demo
from inspector.conversation.glyphs import glyph
from inspector.forms import searchable
from inspector.htmx import render_page_or_fragment
from inspector.sparkline import spark

ORDERINGS = {
    "activity": "Last activity",
    "forgotten": "Most forgotten",
    "fill": "Window fill",
    "said": "Most said",
}
HEADLINE_SECONDS = 30
BUSY = timedelta(minutes=1)
FILTERS = ("q", "policy", "active", "flagged", "sort")


@dataclass(frozen=True)
class Row:
    """A row of the table."""

    row: OverviewRow

    @property
    def memory(self) -> queries.MemoryRow:
        return self.row.memory

    @property
    def limit(self) -> int | None:
        return self.memory.policy.limit if self.memory.policy else None

    @property
    def unit(self) -> str:
        return self.memory.policy.short_unit if self.memory.policy else "tok"

    @property
    def load(self) -> int:
        return self.memory.load if self.memory.load is not None else self.memory.window.tokens

    @property
    def fill(self) -> float:
        return min(100.0, round(100 * self.load / self.limit, 1)) if self.limit else 0

    @property
    def policy_name(self) -> str:
        return explain.policy_name(self.memory.policy).removesuffix(" window")

    @property
    def forgotten(self) -> int:
        return max(0, self.memory.said_count - self.memory.window.count)

    @property
    def is_busy(self) -> bool:
        return timezone.now() - self.memory.updated_at < BUSY

    @property
    def spark(self) -> tuple[str, str, float | None]:
        return spark(self.row.loads, self.limit)


@dataclass(frozen=True)
class Leaving:
    """An entry of the feed."""

    item: FeedItem
    is_new: bool

    @property
    def glyph(self) -> str:
        return glyph(self.item.type, self.item.has_calls)

    @property
    def reason(self) -> str:
        return "had no room" if self.item.is_oversized else explain.short_reason(self.item.reason)


@require_safe
def overview(request: HttpRequest) -> HttpResponse:
    context = _context(request)
    return render_page_or_fragment(
        request, "inspector/overview.html", "inspector/_conversations.html", context
    )


@require_safe
def feed(request: HttpRequest) -> HttpResponse:
    """Show the messages that left memory last; those newer than `?seen=` are marked as new."""
    seen = request.GET.get("seen", "")
    return render(request, "inspector/_feed.html", _feed(int(seen) if seen.isdecimal() else None))


@require_POST
def add_demo(request: HttpRequest) -> HttpResponse:
    """Stores the example conversations that an empty overview offers."""
    demo.load()
    return redirect("overview")


def policy_choices() -> list[tuple[str, str]]:
    """Return the values of the policy filter with their labels."""
    return [
        *((name, kind.label) for name, kind in policy_kinds().items()),
        (CLIENT, "Client decides"),
    ]


def _context(request: HttpRequest) -> dict[str, Any]:
    params = {name: searchable(request.GET.get(name, "")) for name in FILTERS}
    midnight = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
    policy = params["policy"] if params["policy"] in (*policy_kinds(), CLIENT) else ""
    sort = params["sort"] if params["sort"] in ORDERINGS else "activity"
    which = queries.MemoryFilter(
        search=params["q"],
        policy=policy,
        active_since=midnight if params["active"] else None,
        flagged=bool(params["flagged"]),
    )
    cursor = request.GET.get("older") or request.GET.get("newer") or ""
    try:
        found = queries.overview(which, ordering=f"-{sort}", cursor=cursor)
    except InvalidValue:
        found = queries.overview(which, ordering=f"-{sort}")
    given = {name: value for name, value in params.items() if value}
    return {
        "rows": [Row(row) for row in found.rows],
        "found": found,
        "asked": params,
        "filters": _filters(given, policy),
        "query": _link(given),
        "orderings": [(key, label, key == sort) for key, label in ORDERINGS.items()],
        "newer": _link({**given, "newer": found.newer}) if found.newer else None,
        "older": _link({**given, "older": found.older}) if found.older else None,
        "is_empty": not queries.any_memory(),
        "headlines": _headlines(midnight),
        **_feed(),
    }


def _feed(seen: int | None = None) -> dict[str, Any]:
    items = queries.feed()
    return {
        "feed": [Leaving(item, is_new=seen is not None and item.moment > seen) for item in items],
        "newest": max((item.moment for item in items), default=0),
    }


@dataclass(frozen=True)
class Headlines:
    """The statistics of all conversations, and the time at which they were counted."""

    at: datetime
    stats: queries.OverviewStats

    @property
    def attention(self) -> int:
        return self.stats.dangling + self.stats.oversized


def _headlines(midnight: datetime) -> Headlines:
    """Return the statistics, counted at most every 30 seconds, as they read all steps of today."""

    def count() -> Headlines:
        return Headlines(timezone.now(), queries.overview_stats(midnight))

    return cast(Headlines, cache.get_or_set("headlines", count, HEADLINE_SECONDS))


def _filters(given: dict[str, str], policy: str) -> list[dict[str, Any]]:
    """Return the filter chips: links that set a filter, or remove it if it is set."""
    chips = [("active", "1", "Active today", bool(given.get("active")))]
    chips += [("policy", kind, label, kind == policy) for kind, label in policy_choices()]
    chips += [("flagged", "1", "Flagged", bool(given.get("flagged")))]
    return [
        {
            "label": label,
            "pressed": pressed,
            "href": _link({**given, name: "" if pressed else value}),
        }
        for name, value, label, pressed in chips
    ]


def _link(values: Mapping[str, str | None]) -> str:
    return "?" + urlencode({name: value for name, value in values.items() if value})
