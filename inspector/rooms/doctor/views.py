"""The doctor: which conversations providers refuse, since when, and what mends them."""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from chatmemory import ChatMemoryError, ChatMessage, InvalidValue, explain, queries, services
from chatmemory.access.roles import actor_of
from chatmemory.queries import flags
from inspector.conversation.links import conversation_url
from inspector.display import render_form, render_page_or_fragment
from inspector.doctor import Visit
from inspector.forms.actions import RepairForm, shown_versions
from inspector.overview.selection import midnight, pager

PAGE_SIZE = 25
AT_ONCE = 500  # conversations that one request repairs


@require_safe
def doctor(request: HttpRequest) -> HttpResponse:
    """Show the ill conversations that the address asks for, those that became ill last first."""
    visit = Visit.read(request.GET.dict())
    try:
        found = queries.doctor_page(visit.which, cursor=visit.cursor, size=PAGE_SIZE)
    except InvalidValue:
        found = queries.doctor_page(visit.which, size=PAGE_SIZE)
    flagged = queries.overview_stats(midnight()).flagged  # what other pages own
    context = {
        "visit": visit,
        "rows": found.rows,
        "elsewhere": [(flag, flagged[flag.name]) for flag in flags() if flag.beside_doctor],
        **pager(visit.given, found),
    }
    return render_page_or_fragment(request, "inspector/doctor/doctor.html", context)


@require_safe
def doctor_rules(request: HttpRequest) -> HttpResponse:
    """Show each rule with its sources and its two examples."""
    context = {"rules": list(explain.shown_rules())}
    return render(request, "inspector/doctor/rules.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def repair(request: HttpRequest, memory_id: str) -> HttpResponse:
    """Show what a repair would do, beside the window as it is. A POST does it."""
    memory = queries.memory(memory_id)
    form = RepairForm(request.POST if request.method == "POST" else _asked(request, memory))
    provider = form.cleaned_data["provider"] if form.is_valid() else "openai"
    if form.is_valid() and request.method == "POST":
        try:
            services.repair(memory_id, **form.arguments, actor=actor_of(request))
            return redirect(conversation_url(memory_id))
        except ChatMemoryError as error:
            form.add_error(None, str(error))
    preview = services.preview_repair(memory_id, provider)
    return render_form(
        request,
        "inspector/doctor/repair.html",
        form,
        memory=memory,
        preview=preview,
        places=_places(preview),
        undoable=services.newest_repair(memory_id),
    )


def _asked(request: HttpRequest, memory: queries.MemoryRow) -> dict[str, Any]:
    found = services.current_diagnosis(memory.id, services.QUICK_MESSAGES)
    first = found.refused_by[0] if found and found.refused_by else "openai"
    return {"provider": request.GET.get("provider", first), "version": memory.version}


def _places(preview: services.RepairPreview) -> dict[str, list[dict[str, Any]]]:
    """Return the messages of both windows as rows: what leaves, what comes, and what moves."""
    before = [seq for seq, _ in preview.before]
    after = [seq for seq, _ in preview.after if seq is not None]
    at_fault = {preview.before[at][0] for each in preview.findings for at in each.positions}
    kept = [seq for seq in before if seq in after]
    moved = {seq for seq, other in zip(kept, after, strict=True) if seq != other}
    return {
        "before": [
            {"seq": seq, "text": _line(message), "left": seq not in after, "bad": seq in at_fault}
            for seq, message in preview.before
        ],
        "after": [
            {"seq": seq, "text": _line(message), "new": seq is None, "moved": seq in moved}
            for seq, message in preview.after
        ],
    }


def _line(message: ChatMessage) -> str:
    who = explain.role(message.type, message.has_tool_execution_requests)
    return f"{who}: {explain.readable_text(message)}"


@require_POST
def undo_repair(request: HttpRequest, memory_id: str, step: int) -> HttpResponse:
    """Undo the repair of a step, then show the conversation."""
    services.undo_repair(memory_id, step, actor=actor_of(request))
    return redirect(conversation_url(memory_id))


@require_POST
def repair_many(request: HttpRequest) -> HttpResponse:
    """Show what repairs of the listed conversations would do. With `versions`, which are those of
    the conversations that were shown, do it.
    """
    visit = Visit.read(request.POST.dict())
    provider = visit.provider or "openai"
    confirmed = "versions" in request.POST
    versions = shown_versions(request.POST["versions"], AT_ONCE) if confirmed else None
    ids = queries.ill_ids(visit.which, AT_ONCE) if versions is None else list(versions)
    repairs = services.repair_all(
        ids,
        provider,
        reason=request.POST.get("reason", ""),
        actor=actor_of(request),
        dry_run=not confirmed,
        versions=versions,
    )
    context = {
        "visit": visit,
        "provider": explain.provider_names([provider]),
        "repairs": repairs,
        "confirmed": confirmed,
        "versions": json.dumps(repairs.versions),
        "most": AT_ONCE if len(ids) == AT_ONCE else 0,
        "back": f"{reverse('inspector:doctor')}?{urlencode(visit.given)}",
    }
    return render(request, "inspector/doctor/repaired.html", context)
