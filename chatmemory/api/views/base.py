"""What every view of the API shares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.utils.urls import remove_query_param, replace_query_param
from rest_framework.views import APIView

from chatmemory.api.authentication import BearerTokenAuthentication
from chatmemory.api.errors import handle_exception
from chatmemory.api.parsers import StrictJSONParser
from chatmemory.api.permissions import HasRole


class Guarded(APIView):
    """Requires a role, accepts bearer tokens and answers errors with problem details, whatever the
    project's REST framework settings say.
    """

    authentication_classes = (BearerTokenAuthentication, *APIView.authentication_classes)
    permission_classes = (HasRole,)

    def get_exception_handler(self) -> Callable[[Exception, dict[str, Any]], Response | None]:
        return handle_exception


class Resource(Guarded):
    """Reads and writes JSON."""

    parser_classes = (StrictJSONParser,)
    renderer_classes = (JSONRenderer,)


def url_of(request: Request, name: str, memory_id: str) -> str:
    """The absolute URL of a route of one conversation."""
    return reverse(f"api:{name}", kwargs={"memory_id": memory_id}, request=request)


def with_query(request: Request, **parameters: object) -> str:
    """The absolute URL of this request with other query parameters; None removes one."""
    url = request.build_absolute_uri()
    for name, value in parameters.items():
        url = (
            remove_query_param(url, name)
            if value is None
            else replace_query_param(url, name, value)
        )
    return str(url)
