"""Each request gets an id, a line in the log, its place in the metrics and a span."""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Callable
from time import perf_counter

from django.http import HttpRequest, HttpResponse
from django.utils.functional import SimpleLazyObject

from inspector.observability import metrics
from inspector.observability.logs import request_id
from inspector.observability.tracing import request_span

logger = logging.getLogger("inspector.requests")

_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


class ObservingMiddleware:
    """Takes a well-formed X-Request-ID, else makes one, and answers with it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        started = perf_counter()
        name = request_name(request.headers.get("X-Request-ID", ""))
        token = request_id.set(name)
        try:
            with request_span(request.method or "", request.headers) as span:
                response = self._get_response(request)
                method, route, status = request.method or "", _route(request), response.status_code
                span.end(method, route, status)
            seconds = perf_counter() - started
            metrics.request_answered(method, route, status, seconds)
            log_request(method, route, status, seconds, _actor(request))
        finally:
            request_id.reset(token)
        response["X-Request-ID"] = name
        return response


def request_name(offered: str) -> str:
    """The id that a request came with, or a new one."""
    return offered if _ID.fullmatch(offered) else secrets.token_hex(8)


def log_request(method: str, route: str, status: int, seconds: float, actor: str) -> None:
    """A line for a request that was answered; `route` is a name, so queries are not in it."""
    milliseconds = round(seconds * 1000, 1)
    extra = {
        "method": method,
        "route": route,
        "status": status,
        "milliseconds": milliseconds,
        "actor": actor,
    }
    logger.info(f"{method} {route} {status} in {milliseconds} ms", extra=extra)


def _route(request: HttpRequest) -> str:
    match = request.resolver_match
    return (match.view_name or match.route) if match else "unknown"


def _actor(request: HttpRequest) -> str:
    """Who asked, if anybody wanted to know: to ask here would cost a query."""
    user = request.__dict__.get("user")
    if isinstance(user, SimpleLazyObject):
        user = getattr(request, "_cached_user", None)
    return str(user.get_username()) if user is not None else ""
