"""Live streams: server-sent events beside Django, one task for each reader."""

from __future__ import annotations

from inspector.asgi import Application, Receive, Scope, Send


def with_live_streams(application: Application) -> Application:
    """Return an ASGI application that answers the requests for live streams itself, and hands on
    all others. Without it, Django's views answer them with one event, and pages ask again.

    Bodies of pages and the API are refused before Django receives them if they are too large.
    """
    # A project's asgi.py imports this before Django is set up, and calls it after.
    from inspector.live.stream import is_stream, stream
    from inspector.middleware.bodies import BoundedBodies

    async def beside(scope: Scope, receive: Receive, send: Send) -> None:
        await (stream if is_stream(scope) else application)(scope, receive, send)

    return BoundedBodies(beside)
