"""The page of compactions: how many of the needed terms the summaries of conversations hold."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from chatmemory.recall.compactions import Level
from inspector.rooms.evidence.compactions import fleet_compactions
from inspector.rooms.evidence.page import CompactionsPage
from inspector.shell.chosen import ChosenConversations


@require_safe
def compactions(request: HttpRequest) -> HttpResponse:
    """Show how many of the needed terms the summaries of the chosen conversations hold."""
    chosen = ChosenConversations.read(request.GET.dict())
    found = fleet_compactions(chosen.which)
    level = next((each for each in Level if each == request.GET.get("level")), None)
    page = CompactionsPage(found, chosen, level)
    context = {"page": page, "choice": chosen}
    status = 422 if chosen.problem else 200
    return render(request, "rooms/evidence/compactions.html", context, status=status)
