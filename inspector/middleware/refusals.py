"""Answers to requests that do not reach a view."""

from __future__ import annotations

import asyncio

from django.http import HttpResponse

from chatmemory.api.problems import CONTENT_TYPE, Problem
from inspector.asgi import Receive, Scope, Send
from inspector.mount import is_api, path_in

LINGER_SECONDS = 5.0


async def send_problem(
    scope: Scope, send: Send, problem: Problem, *, unread: Receive | None = None
) -> None:
    """Answer with problem details below the API, else with a line of text.

    With `unread`, the rest of the body is read for up to 5 seconds, and the connection is closed: a
    client that is cut off while it is still sending would never read the answer.
    """
    kind, body = _content(path_in(scope), problem)
    headers = {
        "Content-Type": kind,
        "Content-Length": str(len(body)),
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
        **problem.headers,
    }
    if unread is not None:
        headers["Connection"] = "close"
    encoded = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": problem.status, "headers": encoded})
    await send({"type": "http.response.body", "body": body, "more_body": True})
    if unread is not None:
        await _read_on(unread)
    await send({"type": "http.response.body", "body": b""})


async def _read_on(receive: Receive) -> None:
    try:
        async with asyncio.timeout(LINGER_SECONDS):
            while (await receive()).get("more_body"):
                pass
    except TimeoutError:
        pass


def refusal_of(path: str, problem: Problem) -> HttpResponse:
    """Return the same for a request that has reached Django."""
    kind, body = _content(path, problem)
    return HttpResponse(body, kind, status=problem.status, headers=dict(problem.headers))


def _content(path: str, problem: Problem) -> tuple[str, bytes]:
    if is_api(path):
        return CONTENT_TYPE, problem.to_json()
    detail = problem.detail.removesuffix(".")
    return "text/plain; charset=utf-8", f"{problem.title}: {detail}.\n".encode()
