"""The root of the API, for clients that know only one URL."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from chatmemory.api.guard import Resource


class Root(Resource):
    """The URLs of the conversations, of the OpenAPI document and of its Swagger page, named
    `memories`, `schema` and `docs`.
    """

    schema = None  # type: ignore[assignment]  # the document describes these URLs themselves

    def get(self, request: Request) -> Response:
        names = {name: f"chatmemory:{name}" for name in ("memories", "schema", "docs")}
        return Response({name: reverse(route, request=request) for name, route in names.items()})
