"""Decorators of the API's handlers: `reads` for handlers that change nothing, and `changes` for
handlers that change a conversation.

Both decorators describe the handler in the OpenAPI document. They pass the checked query parameters
or body to the handler, as `parameters`. `changes` also makes the handler accept the header
Idempotency-Key.

Each operation has an example from `examples.json`. tests/api/test_schema.py checks and writes that
file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache, partial, wraps
from importlib import resources
from typing import Any

from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request

from chatmemory.api.errors import CONTENT_TYPE, titles_of
from chatmemory.api.idempotency import KEY, idempotent
from chatmemory.api.openapi import OperationSchema
from chatmemory.api.requests import VERSION, Query, Shape, checked, read_ahead, read_body
from chatmemory.api.responses import ProblemSerializer
from chatmemory.messages.json_values import JsonDict

Handler = Callable[..., Any]  # a view's method: each has parameters and a response of its own

EXAMPLES = resources.files("chatmemory.api") / "examples.json"


def _header(
    name: str, description: str, *statuses: int, pattern: str, format: str | None = None
) -> OpenApiParameter:
    """Return a header for the OpenAPI document: a header of requests, or of the responses with
    these statuses.
    """
    form = {"format": format} if format else {"pattern": f"^({pattern})$"}
    return OpenApiParameter(
        name,
        {"type": "string", **form},
        OpenApiParameter.HEADER,
        description=description,
        response=list(statuses) or False,
    )


IF_MATCH = _header(
    "If-Match",
    'The version that the conversation must have, such as `"12"`. With another '
    "version, the response is 412.",
    pattern=VERSION,
)
_IF_NONE_MATCH = _header(
    "If-None-Match",
    'The version that you have, such as `"12"`. If it is still the current '
    "version, the response is 304 without a body.",
    pattern=r'\*|(W/)?"[^"]*"(, *(W/)?"[^"]*")*',
)
IDEMPOTENCY_KEY = _header(
    "Idempotency-Key",
    "A key that you choose. The same request, sent again with the same key, gets "
    "the first response again.",
    pattern=KEY,
)
LOCATION = _header("Location", "The URL of the new conversation.", 201, pattern="", format="uri")
_ETAG = _header(
    "ETag",
    "The version of the conversation, for If-Match. The ETag is weak if the "
    "response is compressed.",
    *(200, 201),
    pattern='(W/)?"[0-9]{1,18}"',
)
_REPLAYED = _header(
    "Idempotency-Replayed",
    "`true` if this is the response to an earlier request with the same key.",
    *(200, 201, 204),
    pattern="true",
)
_RETRY_AFTER = _header(
    "Retry-After", "When to try again, in seconds.", *(429, 503), pattern="[0-9]+"
)

ALWAYS = (400, 401, 403, 404, 406, 422, 429, 500, 503)
WITH_A_BODY = (408, 411, 413, 415)
OF_CHANGES = (409, 410, 412)


def reads(
    response: object,
    *,
    name: str,
    body: Shape | None = None,
    query: type[Query] | None = None,
    refusals: Sequence[int] = (),
    is_conditional: bool = False,
) -> Callable[[Handler], Handler]:
    """Return a decorator for a handler that changes nothing. The handler gets the checked values of
    the query or body as `parameters`, and the OpenAPI document describes the handler.

    - `response`: the schema or serializer of the response.
    - `name`: the operation id.
    - `body` or `query`: the class that checks the request's body or its query parameters.
    - `refusals`: error statuses, such as 409, that this handler has in addition to the common error
      statuses.
    - `is_conditional`: whether the document has If-None-Match and the status 304. The handler
      itself must answer 304.
    """
    more = (*refusals, *(WITH_A_BODY if body else ()))
    parameters: list[OpenApiParameter | type[Query]] = [query] if query else []
    parameters += [_IF_NONE_MATCH] if is_conditional else []
    document = _documents(name, 200, response, body, parameters, more, is_conditional)
    return lambda handler: document(_with_parameters(handler, query, body))


def changes(
    response: object,
    *,
    name: str,
    status: int = 200,
    body: Shape | None = None,
    headers: Sequence[OpenApiParameter] = (IF_MATCH, IDEMPOTENCY_KEY),
) -> Callable[[Handler], Handler]:
    """Return a decorator for a handler that changes something. The handler gets the checked values
    of the body as `parameters`, and the OpenAPI document describes the handler. A repeated request
    with the same Idempotency-Key is carried out only once.

    - `response`: the schema or serializer of the response; None for an empty response.
    - `name`: the operation id.
    - `status`: the status of a successful response.
    - `body`: the class that checks the body.
    - `headers`: the headers that the document describes, in addition to common headers such as
      Retry-After.
    """
    more = (*WITH_A_BODY, *OF_CHANGES)
    document = _documents(name, status, response, body, [*headers, _REPLAYED], more)
    ahead = partial(read_ahead, body) if body else None
    return lambda handler: document(idempotent(_with_parameters(handler, None, body), ahead))


def _with_parameters(handler: Handler, query: type[Query] | None, body: Shape | None) -> Handler:
    """Return a handler that gets the checked query parameters or body as `parameters`."""

    @wraps(handler)
    def reading(view: object, request: Request, **in_path: object) -> object:
        in_query = checked(query or Query, request.query_params)
        if not query and not body:
            return handler(view, request, **in_path)
        parameters = read_body(body, request) if body else in_query
        return handler(view, request, parameters=parameters, **in_path)

    return reading


def _documents(
    name: str,
    status: int,
    response: object,
    body: object,
    parameters: list[OpenApiParameter | type[Query]],
    problems: tuple[int, ...],
    is_conditional: bool = False,
) -> Callable[[Handler], Handler]:
    """Return a decorator that describes an operation in the OpenAPI document.

    The description also works if a project has another DEFAULT_SCHEMA_CLASS. Responses with one
    version of a conversation have an ETag.
    """
    is_versioned = is_conditional or getattr(response, "is_versioned", False)
    if is_versioned or "version" in getattr(response, "_declared_fields", {}):
        parameters = [*parameters, _ETAG]
    responses: dict[object, object] = {
        (each, CONTENT_TYPE): OpenApiResponse(ProblemSerializer, ", ".join(titles_of(each)))
        for each in sorted((*ALWAYS, *problems))
    }
    if is_conditional:
        responses[304] = OpenApiResponse(
            description="You already have the current version: If-None-Match names it."
        )
    describe: Callable[[Handler], Handler] = extend_schema(
        operation_id=name,
        request=getattr(body, "document", body),
        parameters=[*parameters, _RETRY_AFTER],
        responses={status: response, **responses},
        examples=_examples(name, status),
    )

    def decorate(handler: Handler) -> Handler:
        handler.schema = OperationSchema  # type: ignore[attr-defined]  # an attribute of ours
        return describe(handler)

    return decorate


@cache
def recorded_examples() -> dict[str, JsonDict]:
    """Return the recorded example of each operation, by operation id. An example has the bodies
    `request` and `response` as JSON; None stands for no body.
    """
    loaded: dict[str, JsonDict] = json.loads(EXAMPLES.read_text("utf-8"))
    return loaded


def _examples(operation: str, status: int) -> list[OpenApiExample]:
    """Return the examples of an operation that succeeds with this status."""
    request, response = map(recorded_examples().get(operation, {}).get, ("request", "response"))
    found = []
    if request is not None:
        found.append(OpenApiExample("A request", request, request_only=True))
    if response is not None:
        found.append(
            OpenApiExample("Its response", response, response_only=True, status_codes=[str(status)])
        )
    return found
