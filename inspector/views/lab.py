"""The lab of many conversations: which limit is right for them, computed slice by slice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from chatmemory import InvalidValue, queries, services
from chatmemory.access.actors import actor_of
from inspector.lab.adopting import Adopting
from inspector.lab.downloads import csv_file, no_numbers
from inspector.lab.files import conversations_of
from inspector.lab.fleet import FleetPage
from inspector.lab.fleet_asked import ANY_LIMIT, FleetAsked

COLUMNS = ("limit", "held", "recalls", "nothing_lost", "conversations", "prompt_tokens")


@require_http_methods(["GET", "HEAD", "POST"])
def lab(request: HttpRequest) -> HttpResponse:
    """Show what is known of the chosen conversations. A POST computes some more of it first."""
    if request.method == "POST":
        asked = FleetAsked.read(request.POST.dict())
        services.compute_figures(asked.query)
        if not request.htmx:  # type: ignore[attr-defined]
            return redirect(asked.link())
        return _page(request, asked)
    asked = FleetAsked.read(request.GET.dict())
    if request.GET.get("as") == "csv":
        return no_numbers(asked.problem) if asked.problem else _csv(queries.fleet(asked.query))
    return _page(request, asked, is_stopped="stop" in request.GET)


def _page(request: HttpRequest, asked: FleetAsked, is_stopped: bool = False) -> HttpResponse:
    found = queries.fleet(asked.query)
    page = FleetPage(found, asked)
    if found.is_done and found.points:
        page.lists = queries.fleet_lists(asked.query, page.pick.limit if page.pick else ANY_LIMIT)
    return _shown(request, {"page": page, "asked": asked, "is_stopped": is_stopped})


def _shown(request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
    status = 422 if context["asked"].problem else 200
    return render(request, "inspector/lab.html", context, status=status)


def _csv(found: queries.Fleet) -> HttpResponse:
    sums = found.sums
    rows = (
        (point.limit, point.held, sums.recalls, point.lossless, sums.count, point.prompts)
        for point in found.points
    )
    return csv_file(COLUMNS, (dict(zip(COLUMNS, row, strict=True)) for row in rows), "recall")


@require_http_methods(["GET", "HEAD", "POST"])
def lab_of_file(request: HttpRequest) -> HttpResponse:
    """Show the same of the conversations in a file, of which nothing is stored."""
    asked = FleetAsked.read(request.POST.dict())
    if request.method != "POST":
        return _page(request, asked)
    try:
        name, reading = conversations_of(request.FILES)
        found = queries.FileFleet(reading.transcripts, asked.query.kind)
    except InvalidValue as error:
        return _page(request, replace(asked, problem=str(error)))
    page = FleetPage(found.fleet(), asked, name, reading.refused)
    if page.pick and page.policy_text:
        page.lists = found.lists(page.pick.limit)
    return _shown(request, {"page": page, "asked": asked})


@require_POST
def adopt_for_many(request: HttpRequest) -> HttpResponse:
    """Shows which conversations a policy would change; a confirmation changes them in slices."""
    asked = FleetAsked.read(request.POST.dict())
    if asked.problem:
        return _page(request, asked)
    if asked.limit is None:
        return redirect(asked.link())
    try:
        policy = asked.policy(asked.limit)
    except InvalidValue as error:
        return _page(request, replace(asked, problem=str(error)))
    is_confirmed = "confirmed" in request.POST
    changed = 0
    if is_confirmed:
        actor = actor_of(request)
        changed = services.adopt_policy(asked.which, policy, actor=actor)
    preview = queries.adopting(asked.which, policy)
    if is_confirmed and not preview.differing:
        return redirect(asked.link())
    page = Adopting(preview, asked, policy)
    context = {"page": page, "changed": changed, "confirmed": is_confirmed}
    return render(request, "inspector/lab_adopt.html", context)
