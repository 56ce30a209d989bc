"""Sends signed-out readers to the sign-in page."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import middleware
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django_htmx.http import HttpResponseClientRedirect

from inspector.access.sign_in import sign_in_url


class LoginRequired(middleware.LoginRequiredMiddleware):
    """Like Django's, but an HTMX request makes the browser leave the page: the sign-in page would
    otherwise be swapped into a part of it.
    """

    def get_login_url(self, view_func: Any) -> str:
        return str(getattr(view_func, "login_url", None) or sign_in_url())

    def handle_no_permission(  # type: ignore[override]
        self, request: HttpRequest, view_func: Any
    ) -> HttpResponse:
        htmx = request.htmx  # type: ignore[attr-defined]
        if not htmx:
            return super().handle_no_permission(request, view_func)
        back = htmx.current_url_abs_path or "/"
        sign_in = redirect_to_login(back, self.get_login_url(view_func))
        return HttpResponseClientRedirect(sign_in.url)
