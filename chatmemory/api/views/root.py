"""The root of the API, for clients that know only one URL."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from chatmemory.api.guard import Resource


class Root(Resource):
    """The root of the API. The response has three URLs: `memories` (the conversations), `schema`
    (the OpenAPI document) and `docs` (its Swagger page).
    """

    schema = None  # type: ignore[assignment]  # the document describes these URLs themselves

    def get(self, request: Request) -> Response:
        names = {name: f"chatmemory:{name}" for name in ("memories", "schema", "docs")}
        return Response({name: reverse(route, request=request) for name, route in names.items()})
