"""Limits the rate of requests that cost much and need no account, per address.

It counts as the API does, with REST framework's throttles and rates (DEFAULT_THROTTLE_RATES).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from chatmemory.access.throttling import PerAddress, PerStranger

View = Callable[..., HttpResponse]


class _Throttle(PerAddress):
    def __init__(self, scope: str, default: str) -> None:
        self.scope, self.default = scope, default
        super().__init__()


def one_stranger_too_many(request: HttpRequest) -> HttpResponse | None:
    """Count a request that is refused for want of a valid session, as the API counts its own.
    Return the answer if its address had too many.
    """
    return _too_many(request, PerStranger())


def throttled(scope: str, default: str) -> Callable[[View], View]:
    """Decorate a view that answers 429 to an address with more requests than the scope's rate."""

    def decorated(view: View) -> View:
        @wraps(view)
        def limited(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            answer = _too_many(request, _Throttle(scope, default))
            return answer or view(request, *args, **kwargs)

        return limited

    return decorated


def _too_many(request: HttpRequest, throttle: PerAddress) -> HttpResponse | None:
    if throttle.allow_request(request, None):
        return None
    response = render(request, "inspector/too_many_requests.html", status=429)
    response["Retry-After"] = str(max(1, round(throttle.wait() or 1)))
    return response
