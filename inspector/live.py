"""The ASGI layer that a project's asgi.py puts around Django. It answers live streams and limits
the size of request bodies.
"""

from __future__ import annotations

from inspector.asgi import Application, Receive, Scope, Send


def with_live_streams(application: Application) -> Application:
    """Return an ASGI application that answers live streams and passes all other requests to Django.

    It also answers requests that rooms (plug-in features) handle without Django, and refuses too
    large bodies of requests for a page or the API. In a project without this layer, Django's views
    answer live streams.
    """
    # A project's asgi.py imports this before Django is set up, and calls it after.
    from inspector.middleware.bodies import BoundedBodies
    from inspector.shell.rooms import application_of

    async def beside(scope: Scope, receive: Receive, send: Send) -> None:
        await (application_of(scope) or application)(scope, receive, send)

    return BoundedBodies(beside)
