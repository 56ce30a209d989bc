"""The only middleware that a project adds for the pages and the API. It adds log lines, headers and
error pages, refuses too large bodies, and requires an account.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter

from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.contrib.auth.views import redirect_to_login
from django.db import Error as DatabaseError
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils import translation
from django.utils.functional import SimpleLazyObject
from django.utils.http import url_has_allowed_host_and_scheme
from django_htmx.http import HttpResponseClientRedirect
from django_htmx.middleware import HtmxDetails

from inspector.access import sign_in_url
from inspector.middleware.bodies import refused_body
from inspector.middleware.refusals import READING, throttle_anonymous, too_many_requests
from inspector.mount import is_api, is_own, keep_language, route_of
from inspector.shell.logs import choose_request_id, log_request, request_id
from inspector.shell.rooms import observing
from inspector.views.errors import answer_to, not_allowed, not_found

Respond = Callable[[HttpRequest], HttpResponse]
ViewFunction = Callable[..., HttpResponseBase]

# Pages have no inline code, and load nothing from other sites.
_SECURITY_POLICY = {
    "default-src": "'self'",
    "img-src": "'self' data:",
    "object-src": "'none'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
    "form-action": "'self'",
}
_UNUSED_FEATURES = ("camera", "geolocation", "microphone", "payment", "usb")


def _policy(**changed: str) -> str:
    directives = _SECURITY_POLICY | changed
    return "; ".join(" ".join(each) for each in directives.items())


_FRAMES = "X-Frame-Options"
_HEADERS = {
    "Content-Security-Policy": _policy(),
    _FRAMES: "DENY",
    "Permissions-Policy": ", ".join(f"{name}=()" for name in _UNUSED_FEATURES),
    "Cache-Control": "no-store",  # pages and exports show conversations
}


def allow_frames(response: HttpResponse, origins: Sequence[str]) -> None:
    """Let sites with these origins, and no others, show this response in a frame.

    The header X-Frame-Options cannot name origins, so the response is sent without it.
    """
    response["Content-Security-Policy"] = _policy(**{"frame-ancestors": " ".join(origins)})
    response.xframe_options_exempt = True  # Django's attribute


class InspectorMiddleware:
    """Adds ids, log lines, metrics, headers and error pages for all requests to the pages and the
    API. Also refuses too large bodies, and requires an account. Other requests of the project are
    left alone.

    Put this middleware anywhere in MIDDLEWARE after LocaleMiddleware: it also handles the responses
    of later middleware, such as redirects. A project's own middleware that reads forms before
    `process_view` must come after this middleware. Django's own middleware reads forms only in
    `process_view`.
    """

    def __init__(self, get_response: Respond) -> None:
        self._get_response = get_response
        self._login_required = LoginRequired(get_response)

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self._observed(request) if is_own(request) else self._get_response(request)

    def _observed(self, request: HttpRequest) -> HttpResponse:
        """Respond to a request with log line, metrics and trace. The response has the request's
        X-Request-ID, or a new ID if the request has no well-formed ID.
        """
        started = perf_counter()
        id_ = choose_request_id(request.headers.get("X-Request-ID", ""))
        token = request_id.set(id_)
        try:
            with observing(request.method or "", request.headers) as answered:
                response = self._respond(request)
                method, route, status = request.method or "", _route(request), response.status_code
                seconds = perf_counter() - started
                answered(method, route, status, seconds)
            log_request(method, route, status, seconds, _actor(request))
        finally:
            request_id.reset(token)
        response["X-Request-ID"] = id_
        return response

    def _respond(self, request: HttpRequest) -> HttpResponse:
        match = route_of(request)
        request.htmx = HtmxDetails(request)  # type: ignore[attr-defined]  # set by InspectorMiddleware
        response = refused_body(request, match) or too_many_requests(request, match)
        if response is None:
            keep_language(request)
            with translation.override(None):  # English, and plain numbers for scripts
                response = self._in_english(request)
            response.headers.setdefault("Content-Language", "en")
        may_be_framed = getattr(response, "xframe_options_exempt", False)
        for name, value in _HEADERS.items():
            if name != _FRAMES or not may_be_framed:
                response.headers.setdefault(name, value)
        return response

    def _in_english(self, request: HttpRequest) -> HttpResponse:
        response = self._get_response(request)
        if response.status_code == 404 and request.resolver_match is None:
            return not_found(request)
        if response.status_code == 405 and not is_api(request.path):
            return not_allowed(request, response)
        return response

    def process_view(
        self,
        request: HttpRequest,
        view: ViewFunction,
        args: tuple[object, ...],
        options: dict[str, object],
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


class LoginRequired(LoginRequiredMiddleware):
    """Requires an account, as Django's LoginRequiredMiddleware does. A client address with very
    many requests without an account gets 429.

    For an HTMX request without an account, the browser opens the sign-in page as a whole page.
    After signing in, somebody who sent a form returns to the form's page, since the URL that
    received the form may accept no GET.
    """

    def get_login_url(self, view_func: object) -> str:
        return str(getattr(view_func, "login_url", None) or sign_in_url())

    def handle_no_permission(  # type: ignore[override]  # narrower than the base class
        self, request: HttpRequest, view_func: ViewFunction
    ) -> HttpResponse:
        if answer := throttle_anonymous(request):
            return answer
        htmx = request.htmx  # type: ignore[attr-defined]  # set by InspectorMiddleware
        if htmx:
            back = htmx.current_url_abs_path or "/"
            sign_in = redirect_to_login(back, self.get_login_url(view_func))
            return HttpResponseClientRedirect(sign_in.url)
        if request.method in READING:
            return super().handle_no_permission(request, view_func)
        return redirect_to_login(_page_of_the_form(request), self.get_login_url(view_func))


def _page_of_the_form(request: HttpRequest) -> str:
    """Return the path of the page from which a form was sent. Return the overview's path if that
    page is not on this site.
    """
    origin = f"{request.scheme}://{request.get_host()}"
    path = request.headers.get("Referer", "").removeprefix(origin)
    is_ours = path.startswith("/") and url_has_allowed_host_and_scheme(path, None)
    return path if is_ours else reverse("inspector:overview")


def _route(request: HttpRequest) -> str:
    match = request.resolver_match
    return (match.view_name or match.route) if match else "unknown"


def _actor(request: HttpRequest) -> str:
    """Return the user's name; "" if the user is not loaded yet, because loading costs a query."""
    user = request.__dict__.get("user")
    if isinstance(user, SimpleLazyObject):
        user = getattr(request, "_cached_user", None)
    return str(user.get_username()) if user is not None else ""
