"""Signing in by link, the theme, and the switches for a projector."""

from __future__ import annotations

from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from inspector.access.local import is_local
from inspector.access.sign_in_links import use_token
from inspector.context_processors import DISPLAYS, THEMES

YEAR = 365 * 24 * 3600


@require_GET
@never_cache
@login_not_required
def sign_in_by_link(request: HttpRequest, token: str) -> HttpResponse:
    """Signs in the holder of an unused link, if the request comes from this machine."""
    user = use_token(token) if is_local(request) else None
    if user is None:
        return render(request, "inspector/link_used.html", status=403)
    login(request, user, backend="django.contrib.auth.backends.ModelBackend")
    return redirect("inspector:overview")


@require_POST
@login_not_required
def theme(request: HttpRequest) -> HttpResponse:
    """Stores the chosen theme in a cookie and returns to the page given as `next`."""
    chosen = request.POST.get("theme", "")
    return _remember(request, "theme", chosen if chosen in THEMES else "")


@require_POST
@login_not_required
def display(request: HttpRequest) -> HttpResponse:
    """Switches large type, or the marks of what leaves next, and returns to `next`."""
    name = request.POST.get("switch", "")
    if name not in DISPLAYS:
        raise Http404("there is no such switch")
    is_on = request.COOKIES.get(name) == DISPLAYS[name]
    return _remember(request, name, "" if is_on else DISPLAYS[name])


def _remember(request: HttpRequest, name: str, value: str) -> HttpResponse:
    """Keep a value in a cookie, or delete the cookie of an empty one, and go back."""
    back = request.POST.get("next", "")
    if not url_has_allowed_host_and_scheme(back, {request.get_host()}, request.is_secure()):
        back = reverse("inspector:overview")
    response = HttpResponseRedirect(back)
    if value:
        response.set_cookie(name, value, max_age=YEAR, samesite="Lax", secure=request.is_secure())
    else:
        response.delete_cookie(name, samesite="Lax")
    return response
