"""Limits the rate of requests that need no account, per address.

It counts as the API does, with REST framework's throttles and rates (DEFAULT_THROTTLE_RATES).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeVar

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import ResolverMatch

from chatmemory.access.rates import CountsAlone, Rates
from chatmemory.access.throttling import PerAddress, PerStranger
from chatmemory.api.problems import Problem
from inspector.middleware.refusals import refusal_of
from inspector.mount import is_api, needs_account

View = TypeVar("View", bound=Callable[..., HttpResponse])

READING = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
FORM = ("form", "300/minute")
_SAID = "they came from your address: wait a moment, then try again"


class _Throttle(PerAddress):
    def __init__(self, scope: str, default: str) -> None:
        self.scope, self.default = scope, default
        super().__init__()


def throttled(scope: str, default: str) -> Callable[[View], View]:
    """Mark a view: `too_many_requests` counts the requests of an address for the scope's rate."""

    def marked(view: View) -> View:
        view.throttle = (scope, default)  # type: ignore[attr-defined]
        return view

    return marked


def too_many_requests(request: HttpRequest, match: ResolverMatch | None) -> HttpResponse | None:
    """Count a request to a view that is `throttled`, or one that posts without needing an account.
    Return the answer if its address had too many. Nothing of its body has been parsed by then.
    """
    rate = getattr(match.func, "throttle", None) if match else None
    if rate is None:
        is_of_the_api = match is not None and is_api(request.path)  # which counts by itself
        if request.method in READING or is_of_the_api or needs_account(match):
            return None
        rate = FORM
    return _too_many(request, _Throttle(*rate))


def one_stranger_too_many(request: HttpRequest) -> HttpResponse | None:
    """Count a request that is refused for want of a valid session, as the API counts its own.
    Return the answer if its address had too many.
    """
    return _too_many(request, PerStranger())


@cache
def refused_bodies() -> Rates:
    """Return the counts of bodies that this process has refused: it asks no database for them."""
    return Rates(CountsAlone())


def instead_of(problem: Problem, address: str) -> Problem:
    """Count a body of an address that is refused. Return the problem, or 429 after too many."""
    throttle = PerStranger()
    limit, seconds = throttle.num_requests, throttle.duration
    if limit is None:
        return problem
    wait = refused_bodies().wait(throttle.key_of(address), limit, seconds)
    return problem if wait is None else _problem(wait)


def _too_many(request: HttpRequest, throttle: PerAddress) -> HttpResponse | None:
    if throttle.allow_request(request, None):
        return None
    problem = _problem(throttle.wait())
    if is_api(request.path):
        return refusal_of(request.path, problem)
    page = "inspector/too_many_requests.html"
    response = render(request, page, status=problem.status)
    response["Retry-After"] = problem.headers["Retry-After"]
    return response


def _problem(wait: float | None) -> Problem:
    headers = {"Retry-After": str(max(1, round(wait or 1)))}
    return Problem(429, "Too many requests", _SAID, headers=headers)
