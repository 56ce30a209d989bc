"""The two kinds of operations: `reads` and `changes` document a handler, and say how it behaves.

Every operation documents its problems. A change accepts If-Match and Idempotency-Key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.response import Response

from chatmemory.api.idempotency import idempotent
from chatmemory.api.problems import CONTENT_TYPE
from chatmemory.api.responses import ProblemSerializer

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
PROBLEMS: dict[Any, Any] = {(status, CONTENT_TYPE): ProblemSerializer for status in ("4XX", "5XX")}


def reads(
    response: Any, *, body: Any = None, query: Any = None, name: str | None = None
) -> Callable[[Read], Read]:
    """Documents a handler that changes nothing; `name` is its operation id."""
    return extend_schema(
        operation_id=name,
        request=body,
        parameters=[query] if query else [],
        responses={200: response, **PROBLEMS},
    )


def changes(
    response: Any,
    *,
    status: int = 200,
    body: Any = None,
    headers: Sequence[OpenApiParameter] = (IF_MATCH, IDEMPOTENCY_KEY),
    name: str | None = None,
) -> Callable[[Handler], Handler]:
    """Documents a handler that changes something, and makes it idempotent."""
    document = extend_schema(
        operation_id=name,
        request=body,
        parameters=list(headers),
        responses={status: response, **PROBLEMS},
    )

    def decorate(handler: Handler) -> Handler:
        return document(idempotent(handler))

    return decorate
