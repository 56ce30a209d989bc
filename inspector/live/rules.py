"""The rules of the site's settings for every request: HTTPS, known hosts, and headers."""

from __future__ import annotations

from io import BytesIO

from django.core.exceptions import DisallowedHost
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse
from django.middleware.security import SecurityMiddleware

from inspector.asgi import Scope


def status_and_headers(scope: Scope) -> tuple[int, dict[str, str]]:
    """Return what Django's security middleware answers: 200 and the headers that belong on every
    answer, 301 and the address under HTTPS, or 400 for a host that is not the site's.
    """
    request = ASGIRequest(scope, BytesIO())
    try:
        answer = SecurityMiddleware(_answer)(request)
    except DisallowedHost:
        answer = HttpResponse(status=400)
    headers = {name.lower(): value for name, value in answer.items()}  # type: ignore[union-attr]
    return answer.status_code, headers  # type: ignore[union-attr]


def _answer(request: HttpRequest) -> HttpResponse:
    request.get_host()
    return HttpResponse()
