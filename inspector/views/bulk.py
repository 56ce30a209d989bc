"""Actions on several conversations: export, label, and delete after a confirmation."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from django.core.exceptions import PermissionDenied, ValidationError
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    JsonResponse,
    QueryDict,
)
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from chatmemory import InvalidValue, MemoryNotFound, queries, services
from chatmemory.access.actors import actor_of
from chatmemory.access.roles import ERASE, READ, WRITE
from chatmemory.formats import render_each
from chatmemory.streaming import json_list, streamed
from inspector.forms import BulkForm, check_number, first_problem
from inspector.overview import Asked

REQUIRED = {"count": READ, "export": READ, "label": WRITE, "delete": ERASE}


@require_POST
def bulk(request: HttpRequest) -> HttpResponseBase:
    """Perform an action on the chosen conversations, then return to the filtered overview."""
    form = BulkForm(request.POST)
    if not form.is_valid():
        return _refused(request, form, first_problem(form))
    if not request.user.has_perm(REQUIRED[form.cleaned_data["action"]]):
        raise PermissionDenied
    if form.cleaned_data["action"] == "count":
        outside = _outside(form, form.ids)
        return JsonResponse({"outside": None if outside is None else len(outside)})
    try:
        chosen = _chosen(form)
    except ValidationError as error:
        return _refused(request, form, str(error.message))
    actor = actor_of(request)
    match form.cleaned_data["action"]:
        case "export":
            return _export(request, [row.id for row in chosen])
        case "delete" if not form.cleaned_data["confirmed"]:
            return _ask(request, chosen, form)
        case "delete":
            branches = queries.memories(form.cleaned_data["branches"])
            services.delete_all([row.id for row in (*chosen, *branches)], actor)
        case "label":
            name, value = form.label
            try:
                services.label([row.id for row in chosen], name, value, actor)
            except InvalidValue as error:
                return _refused(request, form, str(error))
    return redirect(reverse("inspector:overview") + form.back)


def _ask(request: HttpRequest, chosen: Sequence[queries.MemoryRow], form: BulkForm) -> HttpResponse:
    """Show what would be deleted, and ask whether the branches are to be deleted, too."""
    ids = [row.id for row in chosen]
    branches, outside = services.known_branches(ids), _outside(form, ids) or set()
    context = {
        "chosen": sorted(chosen, key=lambda row: row.id not in outside),
        "outside": outside,
        "ids": json.dumps(ids),
        "said": sum(row.said_count for row in chosen),
        "branches": branches,
        "branch_ids": json.dumps(branches or []),
        "form": form,
    }
    return render(request, "inspector/delete.html", context)


def _outside(form: BulkForm, memory_ids: Sequence[str]) -> set[str] | None:
    """Return which of these the overview does not show on any of its pages; see `outside`."""
    return queries.outside(_shown(form), memory_ids)


def _shown(form: BulkForm) -> queries.MemoryFilter:
    """Return what the overview shows to which the form returns."""
    return Asked.read(QueryDict(form.back[1:]).dict()).which


def _chosen(form: BulkForm) -> list[queries.MemoryRow]:
    """Return the chosen conversations without those deleted meanwhile. Raises ValidationError."""
    if not form.cleaned_data["every"]:
        return queries.memories(form.ids)
    which = _shown(form)
    check_number(queries.count(which))
    return queries.all_memories(which)


def _refused(request: HttpRequest, form: BulkForm, problem: str) -> HttpResponse:
    context = {"problem": problem, "back": form.back}
    return render(request, "inspector/refused.html", context, status=422)


def _export(request: HttpRequest, memory_ids: Sequence[str]) -> HttpResponseBase:
    """Send JSON Lines, one conversation each, in LangChain4j's format, which the import reads."""
    response = streamed(request, _lines(memory_ids), "application/jsonl")
    response["Content-Disposition"] = 'attachment; filename="conversations.jsonl"'
    return response


def _lines(memory_ids: Sequence[str]) -> Iterator[str]:
    for memory_id in memory_ids:
        try:
            messages = queries.whole_history(memory_id)
        except MemoryNotFound:  # deleted while this response is sent
            continue
        yield f'{{"id":{json.dumps(memory_id, ensure_ascii=False)},"messages":'
        yield from json_list(render_each(messages, "langchain4j").values)
        yield "}\n"
