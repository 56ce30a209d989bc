"""The addresses of a project that mounts the pages and the API beside its own."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import include, path


def own(request: HttpRequest) -> HttpResponse:
    return HttpResponse("our own page")


urlpatterns = [
    path("", own),
    path("ops/chat/", include("inspector.urls")),
    path("ops/chat/api/", include("chatmemory.api.urls")),
]
