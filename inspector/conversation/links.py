"""The URLs of the conversation page, and of its comparison under several policies."""

from __future__ import annotations

from django.urls import reverse
from django.utils.http import urlencode

from chatmemory import Policy, text_of_policy


def conversation_url(memory_id: str, **parameters: int | str | None) -> str:
    """Return the URL of the page with these parameters, without None and empty ones."""
    query = {name: value for name, value in parameters.items() if value not in (None, "")}
    url = reverse("inspector:conversation", args=[memory_id])
    return f"{url}?{urlencode(query)}" if query else url


def compare_url(memory_id: str, *policies: Policy) -> str:
    """Return the URL of the page that compares policies."""
    query = urlencode([("policy", text_of_policy(policy)) for policy in policies])
    return f"{reverse('inspector:compare', args=[memory_id])}?{query}"


def chosen(msg: int | None) -> dict[str, int]:
    """Return the parameter that selects a message: `msg`, or `draft` for a draft."""
    if not msg:
        return {}
    return {"msg": msg} if msg > 0 else {"draft": -msg}
