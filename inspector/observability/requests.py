"""The id of the current request, and its line in the log. Pages and live streams share them."""

from __future__ import annotations

import logging
import re
import secrets
from contextvars import ContextVar

logger = logging.getLogger("inspector.requests")

request_id: ContextVar[str] = ContextVar("request_id", default="")

_WELL_FORMED = re.compile(r"[A-Za-z0-9._-]{1,64}")


def choose_request_id(offered: str) -> str:
    """Return the id that the client sent if it is well-formed, else a new one."""
    return offered if _WELL_FORMED.fullmatch(offered) else secrets.token_hex(8)


def log_request(method: str, route: str, status: int, seconds: float, actor: str) -> None:
    """Logs an answered request. `route` is the name of a URL pattern, without query string."""
    milliseconds = round(seconds * 1000, 1)
    extra = {
        "method": method,
        "route": route,
        "status": status,
        "milliseconds": milliseconds,
        "actor": actor,
    }
    logger.info(f"{method} {route} {status} in {milliseconds} ms", extra=extra)
