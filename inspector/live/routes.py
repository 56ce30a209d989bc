"""Which requests are for the live streams of `inspector.urls`."""

from __future__ import annotations

import re

from django.urls import ResolverMatch

from chatmemory.live import ALL_CONVERSATIONS
from inspector.asgi import Scope
from inspector.mount import path_in, route_at

_NAMES = frozenset({"inspector:live", "inspector:live-overview"})


def is_stream(scope: Scope) -> bool:
    """Whether a request is for a live stream."""
    return _match(scope) is not None


def requested_memory(scope: Scope) -> str:
    """Return the requested conversation's id, or ALL_CONVERSATIONS."""
    found = _match(scope)
    return ALL_CONVERSATIONS if found is None else found.kwargs.get("memory_id", ALL_CONVERSATIONS)


def _match(scope: Scope) -> ResolverMatch | None:
    """Return the route of a live stream. Only paths that end like one are looked up."""
    if scope["type"] != "http" or not scope["path"].endswith("/live/"):
        return None
    match = route_at(path_in(scope))
    return match if match and match.view_name in _NAMES else None


def last_step_seen(scope: Scope) -> int:
    """Return the step that the reader has: from Last-Event-ID, which a browser sends when it
    reconnects, else from `?after=`, else 0.
    """
    header = dict(scope["headers"]).get(b"last-event-id", b"")
    if header.isdigit() and len(header) <= 18:
        return int(header)
    return _number(scope, b"after") or 0


def requested_making(scope: Scope) -> int | None:
    """Return the moment when the reader's conversation was made, from `?made=`: the id may be that
    of another one by now.
    """
    return _number(scope, b"made")


def _number(scope: Scope, name: bytes) -> int | None:
    found = re.search(rb"(?:^|&)%b=([0-9]{1,18})(?:&|$)" % name, scope["query_string"])
    return int(found[1]) if found else None
