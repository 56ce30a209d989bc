"""The site's addresses, and an empty page for comparison."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.template import engines
from django.urls import path

from inspector.project.urls import urlpatterns as of_the_site


def empty(request: HttpRequest) -> HttpResponse:
    """Read the session and its user, and render an empty template."""
    assert request.user.is_authenticated
    return HttpResponse(engines["django"].from_string("").render({}, request))


urlpatterns = [path("empty/", empty), *of_the_site]
