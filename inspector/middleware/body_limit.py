"""Limits the size of every request body and the time that it may take, before Django sees it.

Django's ASGI handler spools a whole body to disk before any view or limit applies. Here a body is
refused by its declared length before any of it is read, or, without one, as soon as it exceeds the
limit. One that arrives too slowly is refused, too: its connection would stay open for ever.
"""

from __future__ import annotations

import asyncio

from chatmemory.api.problems import Problem, body_too_large
from inspector.asgi import Application, Message, Receive, Scope, Send
from inspector.middleware.refusals import send_problem

BODY_MAX = 17 * 2**20  # a transcript of 16 MB and the rest of its form
BODY_SECONDS = 20
BYTES_A_SECOND = 16 * 1024
_TOO_LARGE = body_too_large(f"the body is larger than {BODY_MAX // 2**20} MB: send less at a time")
_TOO_SLOW = Problem(
    408, "Request timeout", "the body arrives too slowly: send it faster, or less at a time"
)
_DISCONNECT = {"type": "http.disconnect"}


class BoundedBodies:
    """An ASGI application that answers 413 to bodies of more than `most` bytes, and 408 to those
    that take longer than 20 seconds and one more for each 16 KiB.
    """

    def __init__(self, application: Application, most: int = BODY_MAX) -> None:
        self._application = application
        self._most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        if _declared(scope) > self._most:
            await send_problem(scope, send, _TOO_LARGE, unread=receive)
            return
        body = _Body(scope, receive, send, self._most)
        await self._application(scope, body.receive, body.send)
        if body.refusal is not None and not body.is_answered:
            await send_problem(scope, send, body.refusal, unread=receive)


class _Body:
    """A body that is counted as it arrives. Once it is refused, the application sees the client
    disconnect, and what it answers to that is not sent.
    """

    def __init__(self, scope: Scope, receive: Receive, send: Send, most: int) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._most = most
        self._read = 0
        self._is_complete = False
        self._began = asyncio.get_running_loop().time()
        self.refusal: Problem | None = None
        self.is_answered = False

    async def receive(self) -> Message:
        if self.refusal is not None:
            return _DISCONNECT
        if self._is_complete:
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._deadline()):
                message = await self._receive()
        except TimeoutError:
            self.refusal = _TOO_SLOW
            return _DISCONNECT
        self._read += len(message.get("body", b""))
        self._is_complete = not message.get("more_body")
        if self._read > self._most:
            self.refusal = _TOO_LARGE
            return _DISCONNECT
        if self._is_complete:
            self._tell_length()
        return message

    async def send(self, message: Message) -> None:
        if self.refusal is None or self.is_answered:
            self.is_answered = True
            await self._send(message)

    def _tell_length(self) -> None:
        """Add the length of a chunked body, without which Django reads no form. It makes the
        request after it has read the body.
        """
        names = {name for name, _ in self._scope["headers"]}
        if b"transfer-encoding" in names and b"content-length" not in names:
            length = (b"content-length", b"%d" % self._read)
            self._scope["headers"] = [*self._scope["headers"], length]

    def _deadline(self) -> float:
        return self._began + BODY_SECONDS + self._read / BYTES_A_SECOND


def _declared(scope: Scope) -> int:
    length = dict(scope["headers"]).get(b"content-length", b"")
    return int(length[:18]) if length.isdigit() else 0
