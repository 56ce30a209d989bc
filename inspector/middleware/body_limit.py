"""Limits the size of every request body, before Django sees it.

Django's ASGI handler spools a whole body to disk before any view or limit applies. Here a body is
refused by its declared length before any of it is read, or, without one, as soon as it exceeds the
limit.
"""

from __future__ import annotations

from chatmemory.api.problems import body_too_large
from inspector.asgi import Application, Message, Receive, Scope, Send
from inspector.middleware.refusals import send_problem

BODY_MAX = 17 * 2**20  # a transcript of 16 MB and the rest of its form
_TOO_LARGE = body_too_large(f"the body is larger than {BODY_MAX // 2**20} MB: send less at a time")


class BoundedBodies:
    """An ASGI application that answers 413 to bodies of more than `most` bytes."""

    def __init__(self, application: Application, most: int = BODY_MAX) -> None:
        self._application = application
        self._most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._application(scope, receive, send)
        elif _declared(scope) > self._most:
            await send_problem(scope, send, _TOO_LARGE, unread=receive)
        else:
            await self._counted(scope, receive, send)

    async def _counted(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Count what arrives; past the limit the application sees the client disconnect."""
        read, is_refused, is_answered = 0, False, False

        async def receive_counted() -> Message:
            nonlocal read, is_refused
            if is_refused:
                return {"type": "http.disconnect"}
            message = await receive()
            read += len(message.get("body", b""))
            is_refused = read > self._most
            return {"type": "http.disconnect"} if is_refused else message

        async def send_unless_refused(message: Message) -> None:
            nonlocal is_answered
            if not is_refused or is_answered:
                is_answered = True
                await send(message)

        await self._application(scope, receive_counted, send_unless_refused)
        if is_refused and not is_answered:
            await send_problem(scope, send, _TOO_LARGE, unread=receive)


def _declared(scope: Scope) -> int:
    length = dict(scope["headers"]).get(b"content-length", b"")
    return int(length[:18]) if length.isdigit() else 0
