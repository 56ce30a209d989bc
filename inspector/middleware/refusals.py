"""Refuses requests from an address that sent too many requests, before a view gets the new
requests.

The following requests are counted by address:

- forms for pages that need no account
- requests to views marked by `throttled`
- requests that are refused because they have no valid session
- requests whose body is refused

As in the API, the rates are in REST framework's setting DEFAULT_THROTTLE_RATES.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import ResolverMatch

from chatmemory.access.rates import PerAddress, PerStranger, process_rates
from chatmemory.api.errors import CONTENT_TYPE, Problem
from inspector.asgi import Receive, Scope, Send
from inspector.mount import is_api, needs_account, path_in
from inspector.shell.load import request_refused

View = TypeVar("View", bound=Callable[..., HttpResponse])

READING = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
FORM = ("form", "300/minute")
_EXPLANATION = "they came from your address: wait a moment, then try again"
LINGER_SECONDS = 5.0


class _Throttle(PerAddress):
    def __init__(self, scope: str, default: str) -> None:
        self.scope, self.default = scope, default
        super().__init__()


def throttled(scope: str, default: str) -> Callable[[View], View]:
    """Return a decorator for a view whose requests are limited per client address. The decorator
    marks the view, and `too_many_requests` counts the requests.

    `scope` is the name of the rate in the settings, and `default` is the rate if the settings have
    none.
    """

    def marked(view: View) -> View:
        view.throttle = (scope, default)  # type: ignore[attr-defined]  # an attribute of ours
        return view

    return marked


def too_many_requests(request: HttpRequest, match: ResolverMatch | None) -> HttpResponse | None:
    """Count a request to a view marked by `throttled`, or a form sent to a page that needs no
    account. Return the 429 response if the client's address sent too many, else None.

    The body of the request is not read.
    """
    rate = getattr(match.func, "throttle", None) if match else None
    if rate is None:
        is_of_the_api = match is not None and is_api(request.path)  # it counts by itself
        if request.method in READING or is_of_the_api or needs_account(match):
            return None
        rate = FORM
    return _too_many(request, _Throttle(*rate))


def throttle_anonymous(request: HttpRequest) -> HttpResponse | None:
    """Count a request that is refused because it has no valid session. Return the 429 response if
    the client's address sent too many of these requests, else None.
    """
    return _too_many(request, PerStranger())


def count_refused_body(problem: Problem, address: str) -> Problem:
    """Count a request from this address whose body is refused. Return `problem`, the reason for the
    refusal. If too many bodies from the address were refused, return a problem with status 429
    instead.

    Each process has its own count, because the event loop must not wait for a shared cache.
    """
    throttle = PerStranger()
    limit, seconds = throttle.num_requests, throttle.duration
    if limit is None:
        return problem
    wait = process_rates().wait(f"body-{throttle.key_of(address)}", limit, seconds)
    return problem if wait is None else _too_many_problem(wait)


def _too_many(request: HttpRequest, throttle: PerAddress) -> HttpResponse | None:
    if throttle.allow_request(request, None):
        return None
    problem = _too_many_problem(throttle.wait())
    if is_api(request.path):
        return refusal_of(request.path, problem)
    page = "inspector/errors/too_many_requests.html"
    response = render(request, page, status=problem.status)
    response["Retry-After"] = problem.headers["Retry-After"]
    return response


def _too_many_problem(wait: float | None) -> Problem:
    headers = {"Retry-After": str(max(1, round(wait or 1)))}
    return Problem(429, "Too many requests", _EXPLANATION, headers=headers)


async def send_problem(
    scope: Scope, send: Send, problem: Problem, *, unread: Receive | None = None
) -> None:
    """Send the response for a problem: problem details for URLs of the API, otherwise a line of
    text.

    `unread` is the function that receives the rest of the request's body. If given, the rest is
    read for up to 5 seconds before the connection is closed. A client that is cut off while it is
    still sending would never read the response.
    """
    request_refused.send(sender=None, status=problem.status)
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
    """Return the response for a problem: problem details for URLs of the API, otherwise a line of
    text. `send_problem` sends the same text for a request that has not reached Django.
    """
    kind, body = _content(path, problem)
    return HttpResponse(body, kind, status=problem.status, headers=dict(problem.headers))


def _content(path: str, problem: Problem) -> tuple[str, bytes]:
    if is_api(path):
        return CONTENT_TYPE, problem.to_json()
    detail = problem.detail.removesuffix(".")
    return "text/plain; charset=utf-8", f"{problem.title}: {detail}.\n".encode()
