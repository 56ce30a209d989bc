"""Limits the rate of requests that cost much and need no account, per address.

It counts as the API does, with REST framework's throttles and rates (DEFAULT_THROTTLE_RATES).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from rest_framework.throttling import SimpleRateThrottle

View = Callable[..., HttpResponse]


class PerAddress(SimpleRateThrottle):
    """Counts the requests of an address, with a rate of its own where the settings have none."""

    def __init__(self, scope: str, default: str) -> None:
        self.scope = scope
        self.rate = self.THROTTLE_RATES.get(scope, default)
        super().__init__()

    def get_cache_key(self, request: Any, view: Any) -> str:
        return f"throttle-{self.scope}-{request.META.get('REMOTE_ADDR', '')}"


def throttled(scope: str, default: str) -> Callable[[View], View]:
    """Decorate a view that answers 429 to an address with more requests than the scope's rate."""

    def decorated(view: View) -> View:
        @wraps(view)
        def limited(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            throttle = PerAddress(scope, default)
            if throttle.allow_request(request, view):  # type: ignore[arg-type]
                return view(request, *args, **kwargs)
            response = render(request, "inspector/too_many_requests.html", status=429)
            response["Retry-After"] = str(max(1, round(throttle.wait() or 1)))
            return response

        return limited

    return decorated
