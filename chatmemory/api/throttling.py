"""How often one caller may ask: a runaway client must not take the site from the others."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.throttling import SimpleRateThrottle


class PerCaller(SimpleRateThrottle):
    """Counted by token, or by user for sessions; the rate is in DEFAULT_THROTTLE_RATES."""

    scope = "caller"

    def get_cache_key(self, request: Request, view: Any) -> str | None:
        if request.auth:
            return f"throttle-token-{request.auth.pk}"
        return f"throttle-user-{request.user.pk}" if request.user.is_authenticated else None
