"""The URLs of the conversation page."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

from django.urls import reverse

from chatmemory import Policy, text_of_policy
from chatmemory.recall.frontier import MEASURED_MAX
from inspector.shell.rooms import page_url
from inspector.shell.state import ConversationState


def conversation_url(memory_id: str, **parameters: int | str | None) -> str:
    """Return the URL of the conversation page with these parameters. None and "" are left out."""
    return reverse("inspector:conversation", args=[memory_id]) + query_of(parameters)


def query_of(parameters: Mapping[str, int | str | None]) -> str:
    """Return a query string with "?", or "" without parameters. Parameters that are None or "" are
    left out.
    """
    query = {name: value for name, value in parameters.items() if value not in (None, "")}
    return f"?{urlencode(query)}" if query else ""


def chosen(msg: int | None) -> dict[str, int]:
    """Return the URL parameter that selects a message: {"msg": 25}, or {"draft": 1} if `msg` is -1,
    the first draft message. {} without a message.
    """
    if not msg:
        return {}
    return {"msg": msg} if msg > 0 else {"draft": -msg}


def comparison_url(
    state: ConversationState, policies: tuple[Policy | None, ...], messages: int, phrase: str = ""
) -> str:
    """Return the URL of the page that compares policies, opened at the moment after the first
    `messages` messages. "" if comparisons are not installed.

    `phrase` is a text to search for on that page.
    """
    at = max(0, messages - max(0, state.memory.said_count - MEASURED_MAX))
    texts = [text_of_policy(policy) for policy in dict.fromkeys(policies) if policy]
    query: dict[str, str | int | list[str]] = {"policy": texts, "at": at}
    query |= {"phrase": phrase} if phrase else {}
    address = page_url("compare", state.memory.id)
    return address and f"{address}?{urlencode(query, doseq=True)}"
