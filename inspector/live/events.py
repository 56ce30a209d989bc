"""Writing a response of server-sent events.

https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from __future__ import annotations

from chatmemory.services.database_errors import RETRY_SECONDS
from inspector.asgi import Send
from inspector.observability.metrics import stream_waiting
from inspector.observability.requests import request_id

RECONNECT_MILLISECONDS = 1000


async def send_start(send: Send) -> None:
    """Sends the headers, and the time after which a reader reconnects."""
    headers = [
        (b"content-type", b"text/event-stream"),
        (b"cache-control", b"no-store"),
        (b"x-accel-buffering", b"no"),
        (b"x-content-type-options", b"nosniff"),
        (b"x-request-id", request_id.get().encode()),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await _send(send, f"retry: {RECONNECT_MILLISECONDS}\n\n")


async def send_step(send: Send, step: int) -> None:
    await _send(send, f"event: step\nid: {step}\ndata: {step}\n\n")


async def send_heartbeat(send: Send) -> None:
    """Sends a comment, which readers ignore: proxies close a connection that stays silent."""
    await _send(send, ": heartbeat\n\n")


async def send_end(send: Send) -> None:
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def send_refusal(send: Send, status: int) -> None:
    """Sends a whole response that has no body."""
    headers = [
        (b"content-type", b"text/plain"),
        (b"cache-control", b"no-store"),
        (b"x-request-id", request_id.get().encode()),
    ]
    if status == 503:
        headers.append((b"retry-after", str(RETRY_SECONDS).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send_end(send)


async def _send(send: Send, text: str) -> None:
    with stream_waiting():
        await send({"type": "http.response.body", "body": text.encode(), "more_body": True})
