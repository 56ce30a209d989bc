"""Requests that come from this machine itself."""

from __future__ import annotations

from django.http import HttpRequest

_LOOPBACK = ("127.0.0.1", "::1")
_PROXY_HEADERS = ("X-Forwarded-For", "Forwarded", "X-Real-IP")


def is_local(request: HttpRequest) -> bool:
    """Whether a request comes from this machine, and not through a proxy that runs on it."""
    is_proxied = any(name in request.headers for name in _PROXY_HEADERS)
    return request.META.get("REMOTE_ADDR") in _LOOPBACK and not is_proxied
