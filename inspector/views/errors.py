"""Pages for what went wrong: they say what it was and offer the way on."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return render(request, "inspector/403.html", status=403)


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return render(request, "inspector/404.html", {"problem": exception}, status=404)


def server_error(request: HttpRequest) -> HttpResponse:
    return render(request, "inspector/500.html", status=500)
