"""The overview of all conversations, with the messages that left memory last."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from chatmemory import InvalidValue, queries
from chatmemory.queries import CursorPage
from chatmemory.services.validation import is_id
from inspector import demo
from inspector.htmx import render_page_or_fragment
from inspector.overview import ORDERINGS, Asked, FeedRow, Row, current_headlines

PAGE_SIZE = 25
MOMENT = re.compile(r"[0-9]{1,18}")


@require_safe
def overview(request: HttpRequest) -> HttpResponse:
    """Show a page of the conversations that the address asks for, or how to begin."""
    context = _page(Asked.read(request.GET.dict())) | _feed()
    context["is_empty"] = not queries.any_memory()
    return render_page_or_fragment(request, "inspector/overview.html", context)


@require_safe
def now(request: HttpRequest) -> HttpResponse:
    """Show what moves on an overview: its numbers, its rows, and what left memory last.

    With `?id=` the rows are these conversations in this order, so that a page that is in use keeps
    its rows. What left after `?seen=` is marked as new.
    """
    asked = Asked.read(request.GET.dict())
    held = [memory_id for memory_id in request.GET.getlist("id")[:PAGE_SIZE] if is_id(memory_id)]
    seen = MOMENT.fullmatch(request.GET.get("seen", ""))
    context = _page(asked, held) | _feed(int(seen[0]) if seen else None)
    return render(request, "inspector/_now.html", context)


@require_POST
def add_demo(request: HttpRequest) -> HttpResponse:
    """Store the example conversations that an empty overview offers."""
    demo.load()
    return redirect("inspector:overview")


def _page(asked: Asked, held: Sequence[str] = ()) -> dict[str, Any]:
    """Return the context of a page. What changes while it is read is newer than its `moment`."""
    moment = queries.newest_change()
    found = _these(held, asked) if held else _found(asked)
    return {
        "moment": moment,
        "asked": asked,
        "total": asked.total if held else _total(asked, found),
        "rows": [Row(row, asked) for row in found.rows],
        "is_held": bool(held),
        "newer": asked.page(newer=found.previous),
        "older": asked.page(older=found.next),
        "orderings": ORDERINGS,
        "headlines": current_headlines(moment),
    }


def _total(asked: Asked, found: CursorPage[queries.OverviewRow]) -> int | None:
    """Return how many conversations match: counted, or all of them are on this page."""
    is_all = found.previous is None and found.next is None
    return len(found.rows) if is_all and asked.total is None else asked.total


def _these(memory_ids: Sequence[str], asked: Asked) -> CursorPage[queries.OverviewRow]:
    return CursorPage(queries.overview_rows(memory_ids, asked.q), None, None)


def _found(asked: Asked) -> CursorPage[queries.OverviewRow]:
    """Return the page at the cursor, or the first one if the cursor is invalid."""

    def page(cursor: str) -> CursorPage[queries.OverviewRow]:
        ordering = asked.ordering
        return queries.overview(asked.which, ordering=ordering, cursor=cursor, size=PAGE_SIZE)

    try:
        return page(asked.cursor)
    except InvalidValue:
        return page("")


def _feed(seen: int | None = None) -> dict[str, Any]:
    items = queries.feed()
    return {
        "feed": [FeedRow(item, is_new=seen is not None and item.moment > seen) for item in items],
        "newest": max((item.moment for item in items), default=0),
    }
