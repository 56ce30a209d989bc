"""The two kinds of operations: `reads` and `changes` document a handler, and say how it behaves.

Every operation documents its problems. A change accepts If-Match and Idempotency-Key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from chatmemory.api.errors import titles_of
from chatmemory.api.examples import examples_of
from chatmemory.api.idempotency import idempotent
from chatmemory.api.problems import CONTENT_TYPE
from chatmemory.api.requests import read_ahead
from chatmemory.api.responses import ProblemSerializer
from chatmemory.api.schemas import OperationSchema

Read = TypeVar("Read", bound=Callable[..., HttpResponseBase])
View = TypeVar("View", bound=type[APIView])
Handler = Callable[..., Response]

MEMORY_ID = OpenApiParameter(
    "memory_id",
    {"type": "string", "pattern": "^[A-Za-z0-9._~-]+$"},
    OpenApiParameter.PATH,
    description=(
        "The address of a conversation: its id, in which every byte of UTF-8 but A-Z a-z 0-9 - _ . "
        "is written as ~XX, such as `acme~2F7` for the id `acme/7`. The ids `.` and `..` are `~2E` "
        "and `~2E~2E`."
    ),
)
SEQ = OpenApiParameter(
    "seq", OpenApiTypes.INT, OpenApiParameter.PATH, description="The number of a message, from 1."
)
STEP = OpenApiParameter(
    "n", OpenApiTypes.INT, OpenApiParameter.PATH, description="The number of a step, from 1."
)
IF_MATCH = OpenApiParameter(
    "If-Match",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description='The version that the change expects, such as `"12"`; else 412.',
)
IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="A key of your own: the same request sent again gets the first response again.",
)


def _sent(name: str, *statuses: int, description: str) -> OpenApiParameter:
    """Return a header of the responses with these statuses."""
    return OpenApiParameter(
        name,
        OpenApiTypes.STR,
        OpenApiParameter.HEADER,
        description=description,
        response=list(statuses),
    )


LOCATION = _sent("Location", 201, description="The URL of the new conversation.")
_ETAG = _sent("ETag", 200, 201, description="The version, to be sent in If-Match.")
_REPLAYED = _sent(
    "Idempotency-Replayed",
    *(200, 201, 204),
    description="`true` where this is the response to an earlier request with the same key.",
)
_RETRY_AFTER = _sent("Retry-After", 429, 503, description="When to try again, in seconds.")

ALWAYS = (401, 403, 404, 406, 422, 429, 500, 503)
WITH_A_BODY = (400, 408, 411, 413, 415)
OF_CHANGES = (409, 410, 412)


def addressed_by(*parameters: OpenApiParameter) -> Callable[[View], View]:
    """Documents the parameters in the path of a resource."""
    return extend_schema(parameters=list(parameters))


def reads(
    response: Any, *, name: str, body: Any = None, query: Any = None, refusals: Sequence[int] = ()
) -> Callable[[Read], Read]:
    """Documents a handler that changes nothing; `name` is its operation id, and `refusals` are
    statuses that other such handlers do not have.
    """
    return described(
        operation_id=name,
        request=body,
        parameters=[*([query] if query else []), *_headers(response)],
        responses={200: response, **_problems(*ALWAYS, *refusals, *(WITH_A_BODY if body else ()))},
        examples=examples_of(name, 200),
    )


def changes(
    response: Any,
    *,
    name: str,
    status: int = 200,
    body: Any = None,
    headers: Sequence[OpenApiParameter] = (IF_MATCH, IDEMPOTENCY_KEY),
) -> Callable[[Handler], Handler]:
    """Documents a handler that changes something, and makes it idempotent."""
    document = described(
        operation_id=name,
        request=body,
        parameters=[*headers, _REPLAYED, *_headers(response)],
        responses={status: response, **_problems(*ALWAYS, *WITH_A_BODY, *OF_CHANGES)},
        examples=examples_of(name, status),
    )

    def decorate(handler: Handler) -> Handler:
        described_handler: Handler = document(
            idempotent(handler, ahead=body and partial(read_ahead, body))
        )
        return described_handler

    return decorate


def described(**description: Any) -> Callable[[Any], Any]:
    """drf-spectacular's `extend_schema` in every project, whatever its DEFAULT_SCHEMA_CLASS is."""
    describe: Callable[[Any], Any] = extend_schema(**description)

    def decorate(handler: Any) -> Any:
        handler.schema = OperationSchema
        return describe(handler)

    return decorate


def _headers(response: Any) -> list[OpenApiParameter]:
    """Return the headers of responses, an ETag where they are of one version."""
    is_versioned = getattr(response, "is_versioned", False)
    has_version = is_versioned or "version" in getattr(response, "_declared_fields", {})
    return [*([_ETAG] if has_version else []), _RETRY_AFTER]


def _problems(*statuses: int) -> dict[Any, Any]:
    return {
        (status, CONTENT_TYPE): OpenApiResponse(ProblemSerializer, ", ".join(titles_of(status)))
        for status in sorted(statuses)
    }
