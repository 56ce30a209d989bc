"""Who a change is said to be by."""

from __future__ import annotations

from typing import Any


def actor_of(request: Any) -> str:
    """Return the name of a request's user, which is a number or a UUID in some projects."""
    return str(request.user.get_username())
