"""The addresses of the live streams: `/c/<id>/live/` and `/live/`."""

from __future__ import annotations

import re

from chatmemory.converters import memory_id_at
from chatmemory.live import ALL_CONVERSATIONS
from inspector.asgi import Scope

_PATH = re.compile(r"/(?:c/([A-Za-z0-9._~-]+)/)?live/")
_AFTER = re.compile(rb"(?:^|&)after=([0-9]{1,18})(?:&|$)")


def is_stream(scope: Scope) -> bool:
    """Whether a request is for a live stream."""
    return scope["type"] == "http" and bool(_PATH.fullmatch(scope["path"]))


def requested_memory(scope: Scope) -> str:
    """Return the requested conversation's id, or ALL_CONVERSATIONS.

    Raises ValueError for a path segment that is no address of an id.
    """
    found = _PATH.fullmatch(scope["path"])
    segment = found[1] if found else None
    return ALL_CONVERSATIONS if segment is None else memory_id_at(segment)


def last_step_seen(scope: Scope) -> int:
    """Return the step that the reader has: from Last-Event-ID, which a browser sends when it
    reconnects, else from `?after=`, else 0.
    """
    header = dict(scope["headers"]).get(b"last-event-id", b"")
    if header.isdigit() and len(header) <= 18:
        return int(header)
    query = _AFTER.search(scope["query_string"])
    return int(query[1]) if query else 0
