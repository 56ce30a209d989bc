"""Pages for what went wrong: they say what it was and offer the way on.

Under /api/ the same is said in problem details: there Django answers only where no view of the API
could, as at an address that none of them has.
"""

from __future__ import annotations

import sys

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.template.loader import render_to_string

from chatmemory.services.database_errors import RETRY_SECONDS, Outage, outage


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    if _is_api(request):
        return _problem(400, "Bad request", "this request cannot be read")
    return render(request, "inspector/400.html", status=400)


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    if _is_api(request):
        return _problem(403, "Forbidden", "this is not yours to see or change")
    return render(request, "inspector/403.html", status=403)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A form that does not come from a page of ours, or from one opened before the sign-in."""
    return render(request, "inspector/csrf.html", status=403)


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    if _is_api(request):
        return _problem(404, "Not found", "nothing lies at this address")
    return render(request, "inspector/404.html", {"problem": exception}, status=404)


def server_error(request: HttpRequest) -> HttpResponse:
    """The fault is ours; or it is the database's, which passes: 503, and when to come back."""
    found = outage(sys.exc_info()[1])
    if found is not None:
        return _database_cannot_work(request, found)
    if _is_api(request):
        return _problem(500, "Server error", "this server failed; its log says how")
    return render(request, "inspector/500.html", status=500)


def too_many_sign_ins(request: HttpRequest, *_: object, **__: object) -> HttpResponse:
    """Wrong passwords in a row: nobody gets in with this name from there for a while."""
    cooloff = int(settings.AXES_COOLOFF_TIME.total_seconds())
    response = render(
        request, "inspector/too_many_sign_ins.html", {"minutes": cooloff // 60}, status=429
    )
    response["Retry-After"] = str(cooloff)
    return response


def _database_cannot_work(request: HttpRequest, found: Outage) -> HttpResponse:
    """Without the request on the page: who is signed in would be asked of the database."""
    if _is_api(request):
        response = _problem(503, f"The database is {found.state}", found.detail)
    else:
        html = render_to_string("inspector/503.html", {"outage": found})
        response = HttpResponse(html, status=503)
    response["Retry-After"] = RETRY_SECONDS
    return response


def _is_api(request: HttpRequest) -> bool:
    return request.path.startswith("/api/")


def _problem(status: int, title: str, detail: str) -> HttpResponse:
    slug = title.lower().replace(" ", "-")
    body = {"type": f"urn:chatmemory:{slug}", "title": title, "status": status, "detail": detail}
    return JsonResponse(body, status=status, content_type="application/problem+json")
