"""Limits the size of request bodies, and the time that they may take to arrive. These limits apply
before Django sees the request.

Django's ASGI handler writes a whole body to disk before any view or limit applies. Here, a body
whose declared length is above the limit is refused at once. A body without a declared length is
refused as soon as it exceeds the limit. A body that arrives too slowly is refused, too: otherwise
its connection could stay open forever.

Under WSGI, or if a project's asgi.py does not use `with_live_streams`, InspectorMiddleware applies
only the size limits. It does so before the CSRF check, which parses forms.

docs/operations.md has the table of the limits.
"""

from __future__ import annotations

import asyncio
from io import BytesIO
from typing import Any

from asgiref.sync import sync_to_async
from django.core.exceptions import RequestDataTooBig
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse
from django.urls import ResolverMatch
from django.utils.http import parse_header_parameters

from chatmemory.api.bodies import BodyLimit, LengthRequired, api_limit, check_body, declared_length
from chatmemory.api.errors import Problem, body_too_large, problem_of
from chatmemory.formats import JsonBounds
from inspector.asgi import Application, Message, Receive, Scope, Send
from inspector.conf import inspector_configuration
from inspector.middleware.refusals import count_refused_body, refusal_of, send_problem
from inspector.mount import is_api, is_own_route, needs_account, path_in, route_at

BODY_SECONDS = 20
BYTES_A_SECOND = 16 * 1024
_TOO_SLOW = Problem(
    408,
    "Request timeout",
    "the body of the request arrived too slowly: send the body faster, or a smaller one",
)
_DISCONNECT = {"type": "http.disconnect"}
_WITHOUT_A_BODY = ("GET", "HEAD")
_MULTIPART = "multipart/form-data"
_WITH_MESSAGES = frozenset({"simulate", "verdict", "add"})


def limit_of(method: str, path: str, match: ResolverMatch | None, content_type: str) -> BodyLimit:
    """Return the size limit of a body that is sent to a page or to the API.

    Of all forms, only multipart/form-data may be large: 2 MB of a url-encoded form take 160 MB when
    parsed. URLs without a route, and pages that need no account, have the lowest limit.
    """
    apps = match.app_names if match else ()
    if "chatmemory" in apps or is_api(path):
        return api_limit(method)
    if limit := getattr(getattr(match and match.func, "cls", None), "limit", None):
        found: BodyLimit = limit(method)  # the limit of a view that is guarded like the API
        return found
    name = match.url_name if match and "inspector" in apps else ""
    if content_type == _MULTIPART and name == "import":
        return upload_limit()
    if content_type == _MULTIPART and name in _WITH_MESSAGES:
        return messages_limit()
    return _limit("FORM_BYTES" if needs_account(match) else "OPEN_FORM_BYTES")


def upload_limit() -> BodyLimit:
    """Return the size limit of a form with an uploaded file: `size` is the limit for the file, and
    `beside` the limit for all other fields, in bytes.
    """
    return _limit("UPLOAD_BYTES")._replace(beside=inspector_configuration().FORM_BYTES)


def upload_bounds() -> JsonBounds:
    """Return how many bytes of RAM the values of an uploaded JSON file may take.

    All values together may take four times the largest file size, because Python may need four
    bytes for a character. A single text or message may take a third of the largest file size,
    because storing a message takes several copies.
    """
    limit, manage = upload_limit(), inspector_configuration().MANAGE
    remedy = (
        f"raise {limit.setting}, or import the file with {manage} import_transcripts, which has no "
        "such limit"
    )
    return JsonBounds(limit.size * 4, limit.size // 3, remedy)


def messages_limit() -> BodyLimit:
    """Return the size limit of a form with messages."""
    return _limit("MESSAGES_FORM_BYTES")


def _limit(setting: str) -> BodyLimit:
    return BodyLimit(getattr(inspector_configuration(), setting), f'INSPECTOR["{setting}"]')


def refused_body(request: HttpRequest, match: ResolverMatch | None) -> HttpResponse | None:
    """Return the error response if the body of a request is too large, or under WSGI has no
    declared length. Otherwise return None. The request must be for a page or the API.
    """
    if request.method in _WITHOUT_A_BODY:
        return None
    content_type = request.content_type or ""
    address = request.META.get("REMOTE_ADDR", "")
    try:
        check_body(request, limit_of(request.method or "", request.path, match, content_type))
    except (RequestDataTooBig, LengthRequired) as error:
        problem = problem_of(error)
        if problem is None:
            return None
        _tell_view(request, match)
        return refusal_of(request.path, count_refused_body(problem, address))
    return None


def _tell_view(request: HttpRequest, match: ResolverMatch | None) -> None:
    """Call `body_refused` of the view for which a refused body was meant, if the view has such a
    method.
    """
    if match and _counts_refused_bodies(match):
        view: Any = match.func  # Django's `as_view` adds attributes
        told = view.cls(**view.initkwargs)
        told.setup(request, *match.args, **match.kwargs)
        told.body_refused(request)


def _counts_refused_bodies(match: ResolverMatch | None) -> bool:
    return hasattr(getattr(match and match.func, "cls", None), "body_refused")


class BoundedBodies:
    """An ASGI application that limits the bodies of requests for the pages and the API. Other
    requests of a project are passed on. A body is refused with one of these statuses:

    - 413: the body is too large.
    - 408: the body takes longer than 20 seconds plus 1 second for each 16 KiB.
    - 429: very many bodies from the client's address were refused.
    """

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        limit = _limit_in(scope)
        if limit is None:
            await self._application(scope, receive, send)
            return
        if declared_length(_header(scope, b"content-length")) > limit.most:
            await _refuse(scope, receive, send, _too_large(limit))
            return
        body = _Body(scope, receive, send, limit)
        await self._application(scope, body.receive, body.send)
        if body.refusal is not None and not body.is_answered:
            await _refuse(scope, receive, send, body.refusal)


class _Body:
    """A body that is counted as it arrives. Once it is refused, the application gets the message
    that the client disconnected, and the application's response is not sent.
    """

    def __init__(self, scope: Scope, receive: Receive, send: Send, limit: BodyLimit) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._limit = limit
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
        if self._read > self._limit.most:
            self.refusal = _too_large(self._limit)
            return _DISCONNECT
        if self._is_complete:
            self._tell_length()
        return message

    async def send(self, message: Message) -> None:
        if self.refusal is None or self.is_answered:
            self.is_answered = True
            await self._send(message)

    def _tell_length(self) -> None:
        """Add a Content-Length to the request of a chunked body, because Django reads no form
        without it. Django makes the request only after it has read the body.
        """
        names = {name for name, _ in self._scope["headers"]}
        if b"transfer-encoding" in names and b"content-length" not in names:
            length = (b"content-length", b"%d" % self._read)
            self._scope["headers"] = [*self._scope["headers"], length]

    def _deadline(self) -> float:
        return self._began + BODY_SECONDS + self._read / BYTES_A_SECOND


async def _refuse(scope: Scope, receive: Receive, send: Send, problem: Problem) -> None:
    match = route_at(path_in(scope))
    if _counts_refused_bodies(match):
        await sync_to_async(_tell_view)(ASGIRequest(scope, BytesIO()), match)
    address, _ = scope.get("client") or ("", 0)
    await send_problem(scope, send, count_refused_body(problem, address), unread=receive)


def _too_large(limit: BodyLimit) -> Problem:
    return body_too_large(f"the body is larger than {limit}")


def _limit_in(scope: Scope) -> BodyLimit | None:
    """Return the size limit of a request's body. None if no limit applies: for a request without a
    body, or for a page of the project itself.
    """
    if scope["type"] != "http" or (scope["method"] in _WITHOUT_A_BODY and not _has_body(scope)):
        return None
    path = path_in(scope)
    match = route_at(path)
    if not inspector_configuration().WHOLE_SITE and not is_own_route(match, path):
        return None
    content_type, _ = parse_header_parameters(_header(scope, b"content-type"))
    return limit_of(scope["method"], path, match, content_type)


def _has_body(scope: Scope) -> bool:
    return any(name in (b"content-length", b"transfer-encoding") for name, _ in scope["headers"])


def _header(scope: Scope, name: bytes) -> str:
    value: bytes = dict(scope["headers"]).get(name, b"")
    return value.decode("latin1")
