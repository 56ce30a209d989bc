"""Views that sign people in and out, and that store their theme and display switches in cookies."""

from __future__ import annotations

from django.apps import apps
from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import LoginView, LogoutView
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from inspector.access import after_signing_out, is_local, sign_in_url, use_token
from inspector.display import DISPLAYS, THEMES, cookie, switched_on

YEAR = 365 * 24 * 3600


@method_decorator(login_not_required, name="dispatch")
class SignIn(LoginView):
    """The sign-in page, with name and password. If the Django project has its own sign-in page,
    this view redirects to that page.
    """

    template_name = "inspector/accounts/sign_in.html"
    http_method_names = ("get", "head", "post")
    next_page = "inspector:overview"

    def dispatch(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        place = sign_in_url()
        if place != request.path:
            return HttpResponseRedirect(place)
        return super().dispatch(request, *args, **kwargs)

    def get_context_data(self, **context: object) -> dict[str, object]:
        has_links = apps.is_installed("inspector.project")
        return super().get_context_data(has_links=has_links, **context)


class SignOut(LogoutView):
    def get_default_redirect_url(self) -> str:
        return after_signing_out()


@require_GET
@never_cache
@login_not_required
def sign_in_by_link(request: HttpRequest, token: str) -> HttpResponse:
    """Sign in the user of a sign-in link, and redirect to the overview. The link must be valid and
    unused, and the request must come from this machine.

    Otherwise, answer 403, or redirect to the overview if somebody is signed in already.
    """
    user = use_token(token) if is_local(request) else None
    if user is None and request.user.is_authenticated:
        return redirect("inspector:overview")
    if user is None:
        return render(request, "inspector/accounts/link_used.html", status=403)
    login(request, user, backend="django.contrib.auth.backends.ModelBackend")
    return redirect("inspector:overview")


@require_POST
@login_not_required
def theme(request: HttpRequest) -> HttpResponse:
    """Store the chosen theme in a cookie, and redirect to the page given as `next`."""
    chosen = request.POST.get("theme", "")
    return _remember(request, "theme", chosen if chosen in THEMES else "")


@require_POST
@login_not_required
def display(request: HttpRequest) -> HttpResponse:
    """Turn a display switch on or off, and redirect to the page given as `next`. The switch `type`
    makes the text large. The switch `foresight` hides which messages leave memory next.
    """
    name = request.POST.get("switch", "")
    if name not in DISPLAYS:
        raise Http404("the form names an unknown display switch")
    is_on = name in switched_on(request)
    return _remember(request, name, "" if is_on else DISPLAYS[name])


def _remember(request: HttpRequest, name: str, value: str) -> HttpResponse:
    """Store a value in a cookie, and redirect to the page given as `next`. An empty value deletes
    the cookie.
    """
    back = request.POST.get("next", "")
    if not url_has_allowed_host_and_scheme(back, {request.get_host()}, request.is_secure()):
        back = reverse("inspector:overview")
    response = HttpResponseRedirect(back)
    if value:
        is_secure = request.is_secure()
        response.set_cookie(cookie(name), value, YEAR, samesite="Lax", secure=is_secure)
    else:
        response.delete_cookie(cookie(name), samesite="Lax")
    return response
