"""Sends signed-out readers to the sign-in page."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import middleware
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django_htmx.http import HttpResponseClientRedirect

from inspector.access.sign_in import sign_in_url
from inspector.access.throttling import READING, one_stranger_too_many


class LoginRequired(middleware.LoginRequiredMiddleware):
    """Like Django's, but an HTMX request makes the browser leave the page: the sign-in page would
    otherwise be swapped into a part of it. Who sent a form comes back to the page of the form:
    its own address may be none that can be opened. An address that does so very often gets 429.
    """

    def get_login_url(self, view_func: Any) -> str:
        return str(getattr(view_func, "login_url", None) or sign_in_url())

    def handle_no_permission(  # type: ignore[override]
        self, request: HttpRequest, view_func: Any
    ) -> HttpResponse:
        if answer := one_stranger_too_many(request):
            return answer
        htmx = request.htmx  # type: ignore[attr-defined]
        if htmx:
            back = htmx.current_url_abs_path or "/"
            sign_in = redirect_to_login(back, self.get_login_url(view_func))
            return HttpResponseClientRedirect(sign_in.url)
        if request.method in READING:
            return super().handle_no_permission(request, view_func)
        return redirect_to_login(_page_of_the_form(request), self.get_login_url(view_func))


def _page_of_the_form(request: HttpRequest) -> str:
    """Return the path of the page that sent a form, or the overview's if it is not of this site."""
    origin = f"{request.scheme}://{request.get_host()}"
    path = request.headers.get("Referer", "").removeprefix(origin)
    is_ours = path.startswith("/") and url_has_allowed_host_and_scheme(path, None)
    return path if is_ours else reverse("inspector:overview")
