"""Signing in: by password, or by the link that a local start prints."""

from __future__ import annotations

from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from inspector.access import LOOPBACK, use_token
from inspector.context_processors import THEMES

YEAR = 365 * 24 * 3600


@require_GET
@never_cache
@login_not_required
def sign_in_by_link(request: HttpRequest, token: str) -> HttpResponse:
    """Signs in whoever started the server on this machine. A link works once, for 15 minutes."""
    user = use_token(token) if request.META.get("REMOTE_ADDR") in LOOPBACK else None
    if user is None:
        return render(request, "inspector/link_used.html", status=403)
    login(request, user, backend="django.contrib.auth.backends.ModelBackend")
    return redirect("overview")


@require_POST
@login_not_required
def theme(request: HttpRequest) -> HttpResponse:
    """Keep the chosen theme in a cookie, and go back to where the reader was."""
    back = request.POST.get("next", "")
    if not url_has_allowed_host_and_scheme(back, {request.get_host()}, request.is_secure()):
        back = reverse("overview")
    response = HttpResponseRedirect(back)
    chosen = request.POST.get("theme", "")
    if chosen in THEMES:
        response.set_cookie(
            "theme", chosen, max_age=YEAR, samesite="Lax", secure=request.is_secure()
        )
    else:
        response.delete_cookie("theme", samesite="Lax")
    return response
