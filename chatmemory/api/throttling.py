"""Limits the request rate of each caller, so that one runaway client does not block the others.

DEFAULT_THROTTLE_RATES of REST framework's settings sets the rates; None is no limit.
"""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.throttling import SimpleRateThrottle


class _Throttle(SimpleRateThrottle):
    scope: str
    default: str

    def get_rate(self) -> str | None:
        return self.THROTTLE_RATES.get(self.scope, self.default)


class PerCaller(_Throttle):
    """Counts requests per token, or per user for sessions."""

    scope = "caller"
    default = "1000/second"

    def get_cache_key(self, request: Request, view: Any) -> str | None:
        if request.auth:
            return f"throttle-token-{request.auth.pk}"
        return f"throttle-user-{request.user.pk}" if request.user.is_authenticated else None


class PerStranger(_Throttle):
    """Counts requests that were refused for want of a valid token or session, per address."""

    scope = "stranger"
    default = "100/minute"

    def get_cache_key(self, request: Request, view: Any) -> str | None:
        return f"throttle-stranger-{request.META.get('REMOTE_ADDR', '')}"
