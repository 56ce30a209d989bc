"""The addresses of the conversation page."""

from __future__ import annotations

from collections.abc import Mapping

from django.urls import reverse
from django.utils.http import urlencode


def conversation_url(memory_id: str, **parameters: int | str | None) -> str:
    """Return the URL of the page with these parameters, without None and empty ones."""
    return reverse("inspector:conversation", args=[memory_id]) + query_of(parameters)


def query_of(parameters: Mapping[str, int | str | None]) -> str:
    """Return the query with its question mark, without None and empty parameters; "" for none."""
    query = {name: value for name, value in parameters.items() if value not in (None, "")}
    return f"?{urlencode(query)}" if query else ""


def chosen(msg: int | None) -> dict[str, int]:
    """Return the parameter that selects a message: `msg`, or `draft` for a draft."""
    if not msg:
        return {}
    return {"msg": msg} if msg > 0 else {"draft": -msg}
