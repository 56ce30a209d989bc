"""For HTMX: page or fragment from one URL and one context, and the way to the sign-in page."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import middleware
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers
from django_htmx.http import HttpResponseClientRedirect

SEARCH_MAX = 200


def searchable(words: str) -> str:
    """What a reader typed, without what no stored text holds, cut to what is worth searching."""
    return words.replace("\0", "").encode(errors="ignore").decode().strip()[:SEARCH_MAX]


def render_page_or_fragment(
    request: HttpRequest, page: str, fragment: str, context: dict[str, Any]
) -> HttpResponse:
    """The fragment for an HTMX request, the whole page otherwise (a history restore included)."""
    htmx = request.htmx  # type: ignore[attr-defined]
    wants_fragment = htmx and not htmx.boosted and not htmx.history_restore_request
    response = render(request, fragment if wants_fragment else page, context)
    patch_vary_headers(response, ["HX-Request"])
    return response


class LoginRequiredMiddleware(middleware.LoginRequiredMiddleware):
    """A part of a page cannot hold the sign-in page: HTMX leads the reader there, and back."""

    def handle_no_permission(  # type: ignore[override]
        self, request: HttpRequest, view_func: Any
    ) -> HttpResponse:
        htmx = request.htmx  # type: ignore[attr-defined]
        if not htmx:
            return super().handle_no_permission(request, view_func)
        back = htmx.current_url_abs_path or "/"
        sign_in = redirect_to_login(back, self.get_login_url(view_func))
        return HttpResponseClientRedirect(sign_in.url)
