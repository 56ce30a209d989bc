"""Answers changes that have to wait for a long import or deletion."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from chatmemory import DeletionUnfinished, ImportUnfinished


class UnfinishedMiddleware:
    """Handles ImportUnfinished and DeletionUnfinished for every view that does not."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if isinstance(exception, (ImportUnfinished, DeletionUnfinished)):
            context = {"problem": str(exception)}
            return render(request, "inspector/bulk_refused.html", context, status=409)
        return None
