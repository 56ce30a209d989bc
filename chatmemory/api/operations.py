"""The two kinds of operations: `reads` and `changes` document a handler, and say how it behaves.

Every operation documents its problems. A change accepts If-Match and Idempotency-Key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.response import Response

from chatmemory.api.errors import titles_of
from chatmemory.api.examples import examples_of
from chatmemory.api.idempotency import idempotent
from chatmemory.api.problems import CONTENT_TYPE
from chatmemory.api.responses import ProblemSerializer
from chatmemory.api.schemas import OperationSchema

Read = TypeVar("Read", bound=Callable[..., HttpResponseBase])
Handler = Callable[..., Response]

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
ALWAYS = (401, 403, 404, 406, 422, 429, 500, 503)
WITH_A_BODY = (400, 411, 413, 415)
OF_CHANGES = (409, 410, 412)


def reads(
    response: Any, *, name: str, body: Any = None, query: Any = None
) -> Callable[[Read], Read]:
    """Documents a handler that changes nothing; `name` is its operation id."""
    return described(
        operation_id=name,
        request=body,
        parameters=[query] if query else [],
        responses={200: response, **_problems(*ALWAYS, *(WITH_A_BODY if body else ()))},
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
        parameters=list(headers),
        responses={status: response, **_problems(*ALWAYS, *WITH_A_BODY, *OF_CHANGES)},
        examples=examples_of(name, status),
    )

    def decorate(handler: Handler) -> Handler:
        described_handler: Handler = document(idempotent(handler))
        return described_handler

    return decorate


def described(**description: Any) -> Callable[[Any], Any]:
    """drf-spectacular's `extend_schema` in every project, whatever its DEFAULT_SCHEMA_CLASS is."""
    describe: Callable[[Any], Any] = extend_schema(**description)

    def decorate(handler: Any) -> Any:
        handler.schema = OperationSchema
        return describe(handler)

    return decorate


def _problems(*statuses: int) -> dict[Any, Any]:
    return {
        (status, CONTENT_TYPE): OpenApiResponse(ProblemSerializer, ", ".join(titles_of(status)))
        for status in sorted(statuses)
    }
