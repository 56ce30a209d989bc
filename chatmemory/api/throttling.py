"""Limits the request rate of each caller, so that one runaway client does not block the others."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request

from chatmemory.access.throttling import SharedThrottle


class PerCaller(SharedThrottle):
    """Counts requests per token, or per user for sessions."""

    scope = "caller"
    default = "1000/second"

    def get_cache_key(self, request: Request, view: Any) -> str | None:
        if request.auth:
            return f"token-{request.auth.pk}"
        return f"user-{request.user.pk}" if request.user.is_authenticated else None
