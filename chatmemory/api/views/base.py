"""What every view of the API shares."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from io import BytesIO
from typing import Any

from django.http import HttpResponse
from rest_framework.exceptions import AuthenticationFailed, NotAuthenticated, Throttled
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.utils.urls import remove_query_param, replace_query_param
from rest_framework.views import APIView

from chatmemory.access.throttling import PerStranger
from chatmemory.api.authentication import BearerTokenAuthentication
from chatmemory.api.bodies import api_limit, check_body
from chatmemory.api.errors import handle_exception
from chatmemory.api.parsers import StrictJSONParser
from chatmemory.api.permissions import HasRole
from chatmemory.api.problems import CONTENT_TYPE
from chatmemory.api.schemas import OperationSchema
from chatmemory.api.throttling import PerCaller


class Guarded(APIView):
    """Requires a role, accepts bearer tokens, answers errors with problem details and keeps answers
    out of caches, whatever the project's REST framework settings say.
    """

    authentication_classes = (BearerTokenAuthentication, *APIView.authentication_classes)
    permission_classes = (HasRole,)
    throttle_classes = (PerCaller,)
    versioning_class = None
    schema = OperationSchema()

    @property
    def default_response_headers(self) -> dict[str, str]:
        return {**super().default_response_headers, "Cache-Control": "no-store"}

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Raises RequestDataTooBig and LengthRequired before anything is read, and Throttled for an
        address that was refused too often.
        """
        check_body(request._request, api_limit(request.method))
        try:
            super().initial(request, *args, **kwargs)
        except (AuthenticationFailed, NotAuthenticated):
            stranger = PerStranger()
            if not stranger.allow_request(request, self):
                raise Throttled(stranger.wait()) from None
            raise

    def finalize_response(
        self, request: Request, response: Response, *args: Any, **kwargs: Any
    ) -> Response:
        """Problems are JSON, whatever else a view answers."""
        final = super().finalize_response(request, response, *args, **kwargs)
        if getattr(final, "content_type", None) == CONTENT_TYPE:
            final.accepted_renderer = JSONRenderer()
        return final

    def get_exception_handler(self) -> Callable[[Exception, dict[str, Any]], Response | None]:
        return handle_exception


class OneFormat(DefaultContentNegotiation):
    """Ignores `?format=`, as other unknown parameters, where all answers are JSON."""

    def filter_renderers(self, renderers: Any, format: str) -> Any:
        return renderers


class Resource(Guarded):
    """Reads and writes JSON."""

    parser_classes = (StrictJSONParser,)
    renderer_classes = (JSONRenderer,)
    content_negotiation_class = OneFormat


def whole_json(texts: Iterable[str]) -> HttpResponse:
    """Return JSON that is made part by part, and complete before any of it is sent: a client that
    reads slowly then holds no connection to the database.
    """
    made = BytesIO()
    for text in texts:
        made.write(text.encode())
    return HttpResponse(made.getvalue(), JSONRenderer.media_type)


def url_of(request: Request, name: str, memory_id: str) -> str:
    """The absolute URL of a route of one conversation."""
    return reverse(f"chatmemory:{name}", kwargs={"memory_id": memory_id}, request=request)


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
