"""The ASGI layer that a project's asgi.py puts around Django, for live streams and limits of
bodies.
"""

from __future__ import annotations

from inspector.asgi import Application, Receive, Scope, Send


def with_live_streams(application: Application) -> Application:
    """Return an ASGI application that answers live streams and similar requests of rooms (plug-in
    features), and passes all other requests to Django.

    Without this layer, Django's views answer these requests, too. Bodies of requests for pages and
    the API are refused before Django receives them if they are too large.
    """
    # A project's asgi.py imports this before Django is set up, and calls it after.
    from inspector.middleware.bodies import BoundedBodies
    from inspector.shell.rooms import application_of

    async def beside(scope: Scope, receive: Receive, send: Send) -> None:
        await (application_of(scope) or application)(scope, receive, send)

    return BoundedBodies(beside)
