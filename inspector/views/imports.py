"""Importing a transcript file, with the same result and report as manage.py import_transcripts."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods

from chatmemory import InvalidValue
from chatmemory.access.actors import actor_of
from chatmemory.formats import read_transcripts
from chatmemory.services.imports import Report, import_all
from inspector.forms import ImportForm, first_problem
from inspector.middleware.bodies import upload_bounds

MAX_LISTED = 100


@require_http_methods(["GET", "HEAD", "POST"])
def import_file(request: HttpRequest) -> HttpResponse:
    """Show the form; after a POST, the report, or the form with its error."""
    if request.method != "POST":
        return _form(request, ImportForm())
    form = ImportForm(request.POST, request.FILES)
    if not form.is_valid():
        return _form(request, form, first_problem(form))
    try:
        report = _import(form, actor_of(request))
    except InvalidValue as error:
        return _form(request, form, str(error))
    context = {"report": report, "name": form.cleaned_data["file"].name, "shown": MAX_LISTED}
    return render(request, "inspector/imported.html", context)


def _import(form: ImportForm, actor: str) -> Report:
    data = form.cleaned_data
    reading = read_transcripts(data["file"], data["format"], bounds=upload_bounds())
    report = Report(reading.format, refused=list(reading.refused))
    for result in import_all(reading, form.policy, form.id_prefix, actor):
        report.add(result)
    return report


def _form(request: HttpRequest, form: ImportForm, problem: str = "") -> HttpResponse:
    context = {"form": form, "problem": problem}
    return render(request, "inspector/import.html", context, status=422 if problem else 200)
