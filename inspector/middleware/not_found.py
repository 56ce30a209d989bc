"""What is not there is a 404, wherever on the way it turns out: a page asks while it renders."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from chatmemory.core.exceptions import MemoryNotFound, MessageNotFound, StepNotFound
from inspector.views.errors import not_found


class MissingMiddleware:
    """The views leave MemoryNotFound, StepNotFound and MessageNotFound to it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if isinstance(exception, (MemoryNotFound, MessageNotFound, StepNotFound)):
            return not_found(request, exception)
        return None
