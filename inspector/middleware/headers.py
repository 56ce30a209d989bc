"""Response headers that Django has no setting for."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

_UNUSED_FEATURES = ("camera", "geolocation", "microphone", "payment", "usb")


class NoStoreMiddleware:
    """Keeps pages and exports out of every cache: they show conversations. Static files, which an
    earlier middleware serves, may be cached.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self._get_response(request)
        response.headers.setdefault("Cache-Control", "no-store")
        return response


class PermissionsPolicyMiddleware:
    """Turns off browser features that no page uses."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self._get_response(request)
        response["Permissions-Policy"] = ", ".join(f"{name}=()" for name in _UNUSED_FEATURES)
        return response
