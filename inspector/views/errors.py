"""Views that answer errors. A page shows the cause and what to do next. For URLs of the API, the
answer has problem details.

Views of the API answer their own errors. For a URL of the API, Django calls this module only if no
view of the API could answer, such as for an unknown URL.
"""

from __future__ import annotations

import logging
import sys

from django.core.exceptions import DisallowedHost, PermissionDenied
from django.db import DatabaseError, InterfaceError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import Resolver404
from django.utils.text import Truncator
from django_htmx.http import trigger_client_event

from chatmemory import ChatMemoryError, CorruptRow, MemoryNotFound, MessageNotFound, StepNotFound
from chatmemory.api.errors import URL_NOT_FOUND, Problem, database_problem
from chatmemory.database_errors import RETRY_SECONDS, Outage, outage
from chatmemory.distribution import unreachable_nodes
from inspector import demo
from inspector.mount import is_api

logger = logging.getLogger("inspector")

_BAD_REQUEST = Problem(400, "Bad request", "The server could not understand this request")
_OTHER_HOST = Problem(
    400,
    "Bad request",
    "This site does not answer under the host name of this address. "
    "Its operator can add the name to CHATMEMORY_HOSTS",
)
_FORBIDDEN = Problem(403, "Forbidden", "You do not have permission for this")
_SERVER_ERROR = Problem(
    500,
    "Server error",
    "The server failed because of a fault in its program. Its log has the details",
)


def answer_to(request: HttpRequest, exception: Exception) -> HttpResponse | None:
    """Return the page for an error in a view or a template. Return None for an unexpected
    exception, which is a bug.
    """
    if isinstance(exception, (Http404, MemoryNotFound, MessageNotFound, StepNotFound)):
        return not_found(request, exception)
    if isinstance(exception, PermissionDenied):
        return forbidden(request, exception)
    if isinstance(exception, CorruptRow):
        logger.error("a stored row cannot be read: %s", exception, exc_info=exception)
        return render(request, "inspector/errors/500.html", {"problem": exception}, status=500)
    if isinstance(exception, ChatMemoryError):
        context = {"problem": exception}
        return render(request, "inspector/errors/refused.html", context, status=409)
    found = outage(exception)
    if found is not None:
        logger.error("the database is %s", found.state, exc_info=exception)
        return _database_outage(request, found)
    return None


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    problem = _OTHER_HOST if isinstance(exception, DisallowedHost) else _BAD_REQUEST
    return _problem_page(request, problem, problem=problem)


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return _problem_page(request, _FORBIDDEN)


def _problem_page(request: HttpRequest, error: Problem, **context: object) -> HttpResponse:
    """Return the error page for a problem; for URLs of the API, problem details."""
    if is_api(request.path):
        return error.to_http_response()
    page = f"inspector/errors/{error.status}.html"
    return render(request, page, context, status=error.status)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Show 403 for a form from another site, or from a page that was opened before signing in."""
    return render(request, "inspector/errors/csrf.html", status=403)


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    is_inside = isinstance(exception, MessageNotFound | StepNotFound)  # of an existing one
    found = request.resolver_match.kwargs if is_inside and request.resolver_match else {}
    page = _problem_page(
        request,
        URL_NOT_FOUND,
        problem=_missing(request, exception),
        conversation=found.get("memory_id"),
        example=_missing_example(request, exception),
    )
    if isinstance(exception, MemoryNotFound):  # the requesting page showed it
        trigger_client_event(page, "inspector:deleted")
    return page


def not_allowed(request: HttpRequest, refusal: HttpResponse) -> HttpResponse:
    """Show a page for status 405, such as when somebody opens the URL of a form. `refusal` is the
    response that Django made.
    """
    page = render(request, "inspector/errors/405.html", status=405)
    page.headers["Allow"] = refusal.headers["Allow"]
    return page


def _missing(request: HttpRequest, exception: Exception | None) -> str:
    """Return the sentence of the exception about the missing thing, with its ID shortened. Return
    "" if the URL itself is unknown.
    """
    if exception is None or isinstance(exception, Resolver404):
        return ""
    found = request.resolver_match.kwargs if request.resolver_match else {}
    memory_id = found.get("memory_id", "")
    return str(exception).replace(repr(memory_id), repr(Truncator(memory_id).chars(60)))


def _missing_example(request: HttpRequest, exception: Exception | None) -> str:
    """Return the ID of the missing conversation if it is one of the examples, to which lessons
    link; else "".
    """
    if not isinstance(exception, MemoryNotFound) or not request.resolver_match:
        return ""
    memory_id: str = request.resolver_match.kwargs.get("memory_id", "")
    return memory_id if memory_id in demo.ids() else ""


def server_error(request: HttpRequest) -> HttpResponse:
    """Show 500. During an outage of the database, show 503 with Retry-After."""
    found = outage(sys.exc_info()[1])
    if found is not None:
        return _database_outage(request, found)
    return _problem_page(request, _SERVER_ERROR)


def _database_outage(request: HttpRequest, found: Outage) -> HttpResponse:
    """Return the page for status 503; for URLs of the API, problem details."""
    if is_api(request.path):
        return database_problem(found).to_http_response()
    html = _page_of_node(request, found) if found.is_of_node else None
    # Without the request, because reading the user would need the database
    html = html or render_to_string("inspector/errors/503.html", {"outage": found})
    return HttpResponse(html, status=503, headers={"Retry-After": str(RETRY_SECONDS)})


def _page_of_node(request: HttpRequest, found: Outage) -> str | None:
    """Return the page for a database node that is down, with links that still work. Return None if
    no database answers.
    """
    try:
        context = {"outage": found, "nodes": unreachable_nodes()}
        return render_to_string("inspector/errors/503.html", context, request)
    except (DatabaseError, InterfaceError):
        return None
