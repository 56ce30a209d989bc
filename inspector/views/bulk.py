"""Several conversations at once: export, label, or delete after a confirmation."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from chatmemory import queries, services
from chatmemory.access.roles import ERASE, READ, WRITE
from chatmemory.core.exceptions import InvalidValue, MemoryNotFound
from chatmemory.formats import render_messages
from inspector.forms import BulkForm, first_problem

NEEDS = {"export": READ, "label": WRITE, "delete": ERASE}


@require_POST
def bulk(request: HttpRequest) -> HttpResponseBase:
    """What the overview's checkboxes name; nothing chosen goes back to where it was asked."""
    form = BulkForm(request.POST)
    if not form.is_valid():
        return _refused(request, first_problem(form))
    if not request.user.has_perm(NEEDS[form.cleaned_data["action"]]):
        raise PermissionDenied
    chosen = queries.memories(form.ids)  # another reader may have deleted some meanwhile
    actor = request.user.get_username()
    match form.cleaned_data["action"]:
        case "export":
            return _export([row.id for row in chosen])
        case "delete" if not form.cleaned_data["confirmed"]:
            context = {"chosen": chosen, "said": sum(row.said_count for row in chosen)}
            return render(request, "inspector/delete.html", context | {"form": form})
        case "delete":
            _delete([row.id for row in chosen], actor)
        case "label":
            name, value = form.label
            try:
                services.label([row.id for row in chosen], name, value, actor)
            except InvalidValue as error:
                return _refused(request, str(error))
    return redirect(reverse("overview") + form.back)


def _refused(request: HttpRequest, problem: str) -> HttpResponse:
    context = {"problem": problem}
    return render(request, "inspector/bulk_refused.html", context, status=422)


def _delete(memory_ids: Sequence[str], actor: str) -> None:
    with transaction.atomic():
        for memory_id in memory_ids:
            services.delete(memory_id, actor=actor)


def _export(memory_ids: Sequence[str]) -> StreamingHttpResponse:
    """JSON Lines that `import` reads: one conversation a line, in LangChain4j's shape."""
    response = StreamingHttpResponse(_lines(memory_ids), content_type="application/jsonl")
    response["Content-Disposition"] = 'attachment; filename="conversations.jsonl"'
    return response


def _lines(memory_ids: Sequence[str]) -> Iterator[str]:
    for memory_id in memory_ids:
        with suppress(MemoryNotFound):  # deleted while the others were written
            messages = render_messages(queries.said(memory_id), "langchain4j").value
            yield json.dumps({"id": memory_id, "messages": messages}, ensure_ascii=False) + "\n"
