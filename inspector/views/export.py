"""Exporting a conversation, or its window at a step, in one of the transcript formats."""

from __future__ import annotations

import json
from collections import Counter

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from chatmemory import ChatMessage, queries
from chatmemory.converters import address
from chatmemory.formats import render_messages
from inspector.forms import ExportForm


@require_safe
def export(request: HttpRequest, memory_id: str) -> HttpResponse:
    """Show the form and what the chosen format would lose; with `?download=1`, sends the file."""
    form = ExportForm({"format": "langchain4j", "what": "history", **request.GET.dict()})
    if not form.is_valid():
        raise Http404("the format, the part or the step of this export does not exist")
    format, what, at = (form.cleaned_data[name] for name in ("format", "what", "at"))
    read = queries.said if what == "history" else _window
    rendered = render_messages(read(memory_id, at), format)
    if request.GET.get("download"):
        return _file(rendered.value, memory_id, what, at)
    context = {
        "memory": queries.memory(memory_id),
        "form": form,
        "chosen": form.cleaned_data,
        "count": len(rendered.value),
        "lost": Counter(loss.what for loss in rendered.losses).most_common(),
    }
    return render(request, "inspector/export.html", context)


def _window(memory_id: str, at: int | None) -> list[ChatMessage]:
    return queries.window(memory_id, at).messages


def _file(value: object, memory_id: str, what: str, at: int | None) -> HttpResponse:
    """Sends a file named after the address, which is safe in headers and in file systems."""
    step = f"-step-{at}" if at is not None else ""
    name = f"{address(memory_id)[:150]}-{what}{step}.json"
    response = HttpResponse(
        json.dumps(value, ensure_ascii=False, indent=1) + "\n",
        content_type="application/json; charset=utf-8",
    )
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response
