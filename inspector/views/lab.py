"""The lab of many conversations: which limit is right for them, computed slice by slice."""

from __future__ import annotations

from dataclasses import replace

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from chatmemory import InvalidValue, explain, queries, services
from chatmemory.access.roles import actor_of
from chatmemory.queries import Level
from inspector.lab.asked import ANY_LIMIT, FleetAsked
from inspector.lab.compactions import CompactionsPage
from inspector.lab.files import csv_file, no_numbers
from inspector.lab.fleet import FleetPage

COLUMNS = (
    "limit",
    "held",
    "recalls",
    "nothing_lost",
    "conversations",
    "prompt_tokens",
    "incidents",
)


@require_http_methods(["GET", "HEAD", "POST"])
def lab(request: HttpRequest) -> HttpResponse:
    """Show what is known of the chosen conversations. A POST computes some more of it first."""
    if request.method == "POST":
        asked = FleetAsked.read(request.POST.dict())
        services.compute_figures(asked.query)
        if not request.htmx:  # type: ignore[attr-defined]
            return redirect(asked.link())
        return _stored(request, asked)
    asked = FleetAsked.read(request.GET.dict())
    if request.GET.get("as") == "csv":
        return no_numbers(asked.problem) if asked.problem else _csv(queries.fleet(asked.query))
    return _stored(request, asked)


def _stored(request: HttpRequest, asked: FleetAsked) -> HttpResponse:
    """Show what is known of stored conversations."""
    found = queries.fleet(asked.query)
    page = FleetPage(found, asked)
    if found.is_done and found.points:
        page.lists = queries.fleet_lists(asked.query, page.pick.limit if page.pick else ANY_LIMIT)
    return _page(request, page)


def _page(request: HttpRequest, page: FleetPage) -> HttpResponse:
    context = {"page": page, "asked": page.asked, "is_stopped": "stop" in request.GET}
    status = 422 if page.asked.problem else 200
    return render(request, "inspector/lab/lab.html", context, status=status)


def _csv(found: queries.Fleet) -> HttpResponse:
    sums = found.sums
    rows = (
        (p.limit, p.held, sums.recalls, p.lossless, sums.count, p.prompts, p.incidents)
        for p in found.points
    )
    return csv_file(COLUMNS, [dict(zip(COLUMNS, row, strict=True)) for row in rows], "recall")


@require_safe
def compactions(request: HttpRequest) -> HttpResponse:
    """Show what summaries of the chosen conversations held of the terms that were needed."""
    asked = FleetAsked.read(request.GET.dict())
    found = queries.fleet_compactions(asked.which)
    level = next((each for each in Level if each == request.GET.get("level")), None)
    page = CompactionsPage(found, asked, level)
    context = {"page": page, "asked": asked}
    status = 422 if asked.problem else 200
    return render(request, "inspector/lab/compactions.html", context, status=status)


@require_POST
def adopt_for_many(request: HttpRequest) -> HttpResponse:
    """Show which conversations a policy would change; a confirmation changes them in slices."""
    asked = FleetAsked.read(request.POST.dict())
    if asked.problem:
        return _stored(request, asked)
    if asked.limit is None:
        return redirect(asked.link())
    try:
        policy = asked.policy(asked.limit)
    except InvalidValue as error:
        return _stored(request, replace(asked, problem=str(error)))
    is_confirmed = "confirmed" in request.POST
    changed = 0
    if is_confirmed:
        changed = services.adopt_policy(asked.which, policy, actor=actor_of(request))
    preview = queries.adopting(asked.which, policy)
    page = FleetPage(queries.fleet(asked.query), asked)
    if is_confirmed and not preview.differing:
        return redirect(asked.link())
    context = {
        "asked": asked,
        "name": explain.policy_words(policy),
        "preview": preview,
        "instead": page.instead if page.found.is_done else "",
        "changed": changed,
        "confirmed": is_confirmed,
    }
    return render(request, "inspector/lab/adopt_for_many.html", context)
