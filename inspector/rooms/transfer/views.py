"""The pages that export a conversation or its window, and import a transcript file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from tempfile import TemporaryFile

from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_http_methods, require_safe

from chatmemory import ChatMessage, InvalidValue
from chatmemory.converters import address
from chatmemory.formats import read_transcripts, render_each, render_messages
from chatmemory.reading import conversations, overview, windows
from chatmemory.reading.finding import MemoryFilter
from chatmemory.reading.history import WholeHistory, whole_history
from chatmemory.roles import actor_of
from chatmemory.streaming import streamed
from inspector.display import render_form
from inspector.forms.fields import searchable
from inspector.middleware.bodies import upload_bounds
from inspector.rooms.transfer.exports import archive_lines, rendered_file
from inspector.rooms.transfer.forms import ExportForm, ImportForm, id_prefix
from inspector.rooms.transfer.imports import Report, import_all
from inspector.shell.times import time_left

PREVIEWED = 500  # messages that one query reads


@require_safe
def export(request: HttpRequest, memory_id: str) -> HttpResponseBase:
    """Show the form for an export, and what the chosen format cannot express. With `?download=1`,
    send the file.

    The format `chatmemory` can express everything. It is sent without the form.
    """
    if request.GET.get("format") == "chatmemory":
        return _archive(request, memory_id)
    form = ExportForm({"format": "langchain4j", "what": "history", **request.GET.dict()})
    if not form.is_valid():
        raise Http404(
            "the address names an unknown format, part or step for an export: choose them on the "
            "page of the conversation"
        )
    format, what, at = (form.cleaned_data[name] for name in ("format", "what", "at"))
    messages = _messages(memory_id, what, at)
    if request.GET.get("download"):
        rendering = render_each(messages, format)
        type, ending = (
            ("text/markdown", "md") if rendering.is_text else ("application/json", "json")
        )
        response = streamed(request, rendered_file(rendering), f"{type}; charset=utf-8")
        name = f"{_name(memory_id, what, at)}.{ending}"
        response["Content-Disposition"] = f'attachment; filename="{name}"'
        return response
    first = list(islice(messages, PREVIEWED))
    losses = render_messages(first, format).losses
    context = {
        "memory": conversations.memory(memory_id),
        "form": form,
        "chosen": form.cleaned_data,
        "count": len(messages),
        "previewed": len(first),
        "lost": Counter(loss.what for loss in losses).most_common(),
    }
    return render(request, "rooms/transfer/export.html", context)


def _archive(request: HttpRequest, memory_id: str) -> HttpResponseBase:
    name = f"{address(conversations.memory(memory_id).id)[:150]}.jsonl"
    response = streamed(request, _archive_texts(memory_id), "application/jsonl; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def _archive_texts(memory_id: str) -> Iterator[str]:
    """Yield the lines of a conversation, which are all read before the first is sent."""
    with TemporaryFile("w+", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in archive_lines([memory_id]))
        file.seek(0)
        yield from file


def _messages(memory_id: str, what: str, at: int | None) -> WholeHistory | list[ChatMessage]:
    if what == "history":
        return whole_history(memory_id, at)
    return windows.window(memory_id, at).messages


def _name(memory_id: str, what: str, at: int | None) -> str:
    """Return a file name without extension that is safe in headers and file systems."""
    step = f"-step-{at}" if at is not None else ""
    return f"{address(memory_id)[:150]}-{what}{step}"


@require_http_methods(["GET", "HEAD", "POST"])
def import_file(request: HttpRequest) -> HttpResponse:
    """Show the import form. After a POST, show the report, or the form with its error."""
    form = ImportForm(request.POST, request.FILES) if request.method == "POST" else ImportForm()
    if form.is_valid():
        try:
            report = _import(form, actor_of(request))
            context = {"report": report, "name": form.cleaned_data["file"].name}
            context |= _examined(form.id_prefix)
            return render(request, "rooms/transfer/imported.html", context)
        except InvalidValue as error:
            form.add_error(None, str(error))
    return render_form(request, "rooms/transfer/import.html", form)


@require_safe
def examined(request: HttpRequest) -> HttpResponse:
    """Show for how many imported conversations derived data, such as incidents, has been computed.
    The page with the import report repeats this request until all conversations are done.
    """
    begin, name = (searchable(request.GET.get(key, "")) for key in ("begin", "file"))
    return render(request, "rooms/transfer/_examined.html", _examined(id_prefix(begin, name)))


def _examined(prefix: str) -> dict[str, object]:
    found = overview.examined(MemoryFilter(id_prefix=prefix))
    address = f"{reverse('inspector:import-examined')}?{urlencode({'begin': prefix})}"
    again = "" if found.is_all else address
    return {"examined": found, "again": again, "time_left": time_left(found.seconds_left)}


def _import(form: ImportForm, actor: str) -> Report:
    data = form.cleaned_data
    reading = read_transcripts(data["file"], data["format"], bounds=upload_bounds())
    report = Report(reading.format)
    for result in import_all(reading, form.policy, form.id_prefix, actor):
        report.add(result)
    return report
