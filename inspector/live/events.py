"""Writing a response of server-sent events.

https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from __future__ import annotations

from collections.abc import Mapping

from chatmemory.services.database_errors import RETRY_SECONDS
from inspector.asgi import Send
from inspector.observability.logs import request_id
from inspector.observability.metrics import stream_waiting

RECONNECT_MILLISECONDS = 1000


async def send_start(send: Send, headers: Mapping[str, str]) -> None:
    """Sends the headers, and the time after which a reader reconnects."""
    own = {"content-type": "text/event-stream", "x-accel-buffering": "no"}
    await _send_head(send, 200, {**headers, **own})
    await _send(send, f"retry: {RECONNECT_MILLISECONDS}\n\n")


async def send_step(send: Send, step: int) -> None:
    await _send(send, f"event: step\nid: {step}\ndata: {step}\n\n")


async def send_deletion(send: Send) -> None:
    """Sends the last event of a stream: the conversation was deleted."""
    await _send(send, "event: deleted\ndata: deleted\n\n")


async def send_heartbeat(send: Send) -> None:
    """Sends a comment, which readers ignore: proxies close a connection that stays silent."""
    await _send(send, ": heartbeat\n\n")


async def send_end(send: Send) -> None:
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def send_refusal(send: Send, status: int, headers: Mapping[str, str]) -> None:
    """Sends a whole response that has no body. The connection ends with it, because a body of the
    request may still arrive.
    """
    own = {"content-type": "text/plain", "connection": "close"}
    if status in (429, 503):
        own["retry-after"] = str(RETRY_SECONDS)
    await _send_head(send, status, {**headers, **own})
    await send_end(send)


async def _send_head(send: Send, status: int, headers: Mapping[str, str]) -> None:
    every = {**headers, "cache-control": "no-store", "x-request-id": request_id.get()}
    encoded = [(name.encode(), value.encode()) for name, value in every.items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded})


async def _send(send: Send, text: str) -> None:
    with stream_waiting():
        await send({"type": "http.response.body", "body": text.encode(), "more_body": True})
