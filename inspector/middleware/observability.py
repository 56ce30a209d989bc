"""Gives each request an id, a log line, its metrics and a span."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

from django.http import HttpRequest, HttpResponse
from django.utils.functional import SimpleLazyObject

from inspector.observability import metrics
from inspector.observability.requests import choose_request_id, log_request, request_id
from inspector.observability.tracing import request_span


def observed(
    respond: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Use a well-formed X-Request-ID of the request, or make one, and return it with the
    response.
    """

    def answer(request: HttpRequest) -> HttpResponse:
        started = perf_counter()
        id_ = choose_request_id(request.headers.get("X-Request-ID", ""))
        token = request_id.set(id_)
        try:
            with request_span(request.method or "", request.headers) as span:
                response = respond(request)
                method, route, status = request.method or "", _route(request), response.status_code
                span.end(method, route, status)
            seconds = perf_counter() - started
            metrics.request_answered(method, route, status, seconds)
            log_request(method, route, status, seconds, _actor(request))
        finally:
            request_id.reset(token)
        response["X-Request-ID"] = id_
        return response

    return answer


def _route(request: HttpRequest) -> str:
    match = request.resolver_match
    return (match.view_name or match.route) if match else "unknown"


def _actor(request: HttpRequest) -> str:
    """The user's name if something has already loaded the user, else "": asking costs a query."""
    user = request.__dict__.get("user")
    if isinstance(user, SimpleLazyObject):
        user = getattr(request, "_cached_user", None)
    return str(user.get_username()) if user is not None else ""
