"""The one middleware that a project adds for the pages and the API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import Error as DatabaseError
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils import translation
from django_htmx.middleware import HtmxDetails

from inspector.access.throttling import too_many_requests
from inspector.middleware.body_limit import refused_body
from inspector.middleware.headers import with_headers
from inspector.middleware.login_required import LoginRequired
from inspector.middleware.observability import observed
from inspector.mount import is_api, is_own, keep_language, route_of
from inspector.views.errors import answer_to, not_allowed, not_found


class InspectorMiddleware:
    """Gives requests for the pages and the API ids, log lines, metrics, headers and pages for
    errors, refuses bodies that are too large, and asks for an account. Other requests of the
    project are left alone.

    It may stand anywhere in MIDDLEWARE after LocaleMiddleware: what stands after it is covered too,
    such as redirects. Django's middleware reads forms in `process_view`, which comes after this.
    Middleware of a project that reads them earlier must stand after this.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response
        self._answer = observed(with_headers(self._respond))
        self._login_required = LoginRequired(get_response)

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self._answer(request) if is_own(request) else self._get_response(request)

    def _respond(self, request: HttpRequest) -> HttpResponse:
        match = route_of(request)
        if refusal := refused_body(request, match):
            return refusal
        request.htmx = HtmxDetails(request)  # type: ignore[attr-defined]
        if refusal := too_many_requests(request, match):
            return refusal
        keep_language(request)
        with translation.override(None):  # English, and numbers as scripts and SVG read them
            response = self._in_english(request)
        response.headers.setdefault("Content-Language", "en")
        return response

    def _in_english(self, request: HttpRequest) -> HttpResponse:
        response = self._get_response(request)
        if response.status_code == 404 and request.resolver_match is None:
            return not_found(request)
        if response.status_code == 405 and not is_api(request.path):
            return not_allowed(request, response)
        return response

    def process_view(
        self, request: HttpRequest, view: Any, args: Any, options: Any
    ) -> HttpResponseBase | None:
        if not is_own(request):
            return None
        try:
            return self._login_required.process_view(request, view, args, options)
        except DatabaseError as error:
            answer = answer_to(request, error)
            if answer is None:
                raise
            return answer

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        return answer_to(request, exception) if is_own(request) else None
