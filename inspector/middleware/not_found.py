"""Turns the library's "not found" errors into 404 pages."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from chatmemory import MemoryNotFound, MessageNotFound, StepNotFound
from inspector.views.errors import not_found


class NotFoundMiddleware:
    """Handles MemoryNotFound, MessageNotFound and StepNotFound for every view, so that no view has
    to: a page may raise them as late as in its template.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if isinstance(exception, (MemoryNotFound, MessageNotFound, StepNotFound)):
            return not_found(request, exception)
        return None
