"""Times each request to the pages and the API, and makes it a span of a trace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from inspector.rooms.observability.metrics import request_answered
from inspector.rooms.observability.tracing import request_span
from inspector.shell.room import RecordAnswer


@contextmanager
def observing(method: str, headers: Mapping[str, str]) -> Iterator[RecordAnswer]:
    """Open a span for a request, and yield a function. The caller calls this function with method,
    route, status and seconds when the request is answered.
    """
    with request_span(method, headers) as traced:

        def answered(method: str, route: str, status: int, seconds: float) -> None:
            traced(method, route, status)
            request_answered(method, route, status, seconds)

        yield answered
