"""Requests that come by a unix socket, whose client has no address: its proxy tells it.

The proxy adds the address that it sees at the end of X-Forwarded-For. What stands before that is
only believed if a trusted proxy added it, as for any other connection.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from inspector.asgi import Application, Receive, Scope, Send

_SOCKET = ("unix:", 0)  # in place of the proxy's address


def behind_unix_socket(application: Application, trusted: Sequence[str]) -> Application:
    """Return the application, whose requests have the address that the proxy tells, or none."""

    async def without_socket(scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get("client") == _SOCKET:
            scope["client"] = None
        await application(scope, receive, send)

    told = ProxyHeadersMiddleware(cast("Any", without_socket), [_SOCKET[0], *trusted])

    async def from_socket(scope: Scope, receive: Receive, send: Send) -> None:
        scope["client"] = _SOCKET
        await told(cast("Any", scope), cast("Any", receive), cast("Any", send))

    return from_socket
