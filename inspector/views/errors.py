"""Error pages, with the cause and the next step; under /api/ they are problem details.

The API's own errors do not come here: Django calls these views only if no view of the API could
respond, such as for a URL without a route.
"""

from __future__ import annotations

import sys

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string

from chatmemory.api.problems import URL_NOT_FOUND, Problem, database_problem
from chatmemory.services.database_errors import RETRY_SECONDS, Outage, outage

_BAD_REQUEST = Problem(400, "Bad request", "The request cannot be read")
_FORBIDDEN = Problem(403, "Forbidden", "You do not have permission for this")
_SERVER_ERROR = Problem(500, "Server error", "The server failed; its log has the details")


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    if _is_api(request):
        return _BAD_REQUEST.to_http_response()
    return render(request, "inspector/400.html", status=400)


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    if _is_api(request):
        return _FORBIDDEN.to_http_response()
    return render(request, "inspector/403.html", status=403)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Show 403 for a form from another site, or from a page that was opened before signing in."""
    return render(request, "inspector/csrf.html", status=403)


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    if _is_api(request):
        return URL_NOT_FOUND.to_http_response()
    return render(request, "inspector/404.html", {"problem": exception}, status=404)


def server_error(request: HttpRequest) -> HttpResponse:
    """Show 500, or 503 with Retry-After during an outage of the database."""
    found = outage(sys.exc_info()[1])
    if found is not None:
        return _database_outage(request, found)
    if _is_api(request):
        return _SERVER_ERROR.to_http_response()
    return render(request, "inspector/500.html", status=500)


def too_many_sign_ins(request: HttpRequest, *_: object, **__: object) -> HttpResponse:
    """Show 429 after repeated wrong passwords; Retry-After is the duration of the lock."""
    cooloff = int(settings.AXES_COOLOFF_TIME.total_seconds())
    response = render(
        request, "inspector/too_many_sign_ins.html", {"minutes": cooloff // 60}, status=429
    )
    response["Retry-After"] = str(cooloff)
    return response


def _database_outage(request: HttpRequest, found: Outage) -> HttpResponse:
    """Renders the page without the request, because reading the user would need the database."""
    if _is_api(request):
        return database_problem(found).to_http_response()
    html = render_to_string("inspector/503.html", {"outage": found})
    return HttpResponse(html, status=503, headers={"Retry-After": str(RETRY_SECONDS)})


def _is_api(request: HttpRequest) -> bool:
    return request.path.startswith("/api/")
