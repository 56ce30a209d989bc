"""The ASGI layer that a project's asgi.py puts around Django. It answers live streams, which are
server-sent events about changes of conversations. The layer also limits the size of request bodies.
"""

from __future__ import annotations

from inspector.asgi import Application, Receive, Scope, Send


def with_live_streams(application: Application) -> Application:
    """Return an ASGI application that wraps Django's ASGI application.

    - A request for a page or the API is refused if its body is too large or arrives too slowly.
    - Rooms (plug-in features) may answer requests in place of Django, such as requests for live
      streams.
    - All other requests go to Django.

    In a project without this layer, Django's views answer live streams.
    """
    # A project's asgi.py imports this before Django is set up, and calls it after.
    from inspector.middleware.bodies import BoundedBodies
    from inspector.shell.rooms import application_of

    async def beside(scope: Scope, receive: Receive, send: Send) -> None:
        await (application_of(scope) or application)(scope, receive, send)

    return BoundedBodies(beside)
