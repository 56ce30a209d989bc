"""Guards the API: authentication, permissions and rate limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib.auth.models import AnonymousUser
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import (
    AuthenticationFailed,
    NotAuthenticated,
    PermissionDenied,
    Throttled,
)
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from chatmemory.access.rates import PerCaller, PerStranger
from chatmemory.access.tokens import TokenRefused, token_of
from chatmemory.api.bodies import BodyLimit, StrictJSONParser, api_limit, check_body
from chatmemory.api.errors import CONTENT_TYPE, handle_exception
from chatmemory.api.openapi import OperationSchema
from chatmemory.exceptions import MemoryNotFound
from chatmemory.models import ApiToken
from chatmemory.roles import GRANTS, READ, WRITE


class TokenUser(AnonymousUser):
    """The user of a request with an API token. This user is authenticated, and has the permissions
    of the token's role.
    """

    is_authenticated = True  # type: ignore[assignment]  # a plain value in place of a property or a field
    is_anonymous = False  # type: ignore[assignment]  # a plain value in place of a property or a field

    def __init__(self, token: ApiToken) -> None:
        self.token = token
        self.username = f"token:{token.name}"  # type: ignore[assignment]  # a plain value in place of a property or a field

    def has_perm(self, perm: str, obj: object = None) -> bool:
        return perm in GRANTS[self.token.role]


class BearerTokenAuthentication(BaseAuthentication):
    """Authenticates requests by the header `Authorization: Bearer cm_…`."""

    def authenticate(self, request: Request) -> tuple[TokenUser, ApiToken] | None:
        scheme, _, secret = get_authorization_header(request).partition(b" ")
        if scheme.lower() != b"bearer":
            return None
        try:
            token = token_of(secret.strip())
        except TokenRefused as refused:
            raise AuthenticationFailed(str(refused)) from refused
        return TokenUser(token), token

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class BearerTokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # drf-spectacular has no types here
    """Describes BearerTokenAuthentication in the OpenAPI document."""

    target_class = BearerTokenAuthentication
    name = "bearer"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer"}


class HasRole(BasePermission):
    """Permits a request if the caller's role has the needed permission: READ for safe methods,
    WRITE for other methods.

    The attribute `needs` of a view maps a method to another permission. Raises MemoryNotFound for a
    conversation whose id does not begin with the token's prefix.
    """

    def has_permission(self, request: Request, view: APIView) -> bool:
        user: Any = request.user  # of the project's model, or nobody
        if not user.is_authenticated:
            return False
        method = request.method or ""
        default = READ if method in SAFE_METHODS else WRITE
        needed = getattr(view, "needs", {}).get(method, default)
        if not user.has_perm(needed):
            raise PermissionDenied(
                f"this request needs the permission {needed}, which this account or token does "
                "not have"
            )
        memory_id = view.kwargs.get("memory_id")
        if memory_id is not None and not memory_id.startswith(prefix_of(request)):
            raise MemoryNotFound(f"no conversation has the id {memory_id!r}")
        return True


def prefix_of(request: Request) -> str:
    """Return the prefix of all conversation ids that this caller may see; "" if all may be seen."""
    return str(getattr(request.auth, "prefix", ""))


class Guarded(APIView):
    """Base class of the API's views.

    It requires a role, accepts bearer tokens and answers errors with problem details. Each response
    has the header `Cache-Control: no-store`. A project's settings of REST framework cannot change
    this.
    """

    authentication_classes = (BearerTokenAuthentication, *APIView.authentication_classes)
    permission_classes = (HasRole,)
    throttle_classes = (PerCaller,)
    versioning_class = None
    schema = OperationSchema()

    @classmethod
    def limit(cls, method: str | None) -> BodyLimit:
        """Return the size limit of request bodies for this view and method."""
        return api_limit(method)

    def initial(self, request: Request, *args: object, **kwargs: object) -> None:
        """Check the request before its body is read.

        Raises RequestDataTooBig or LengthRequired for the body (see `check_body`). Raises Throttled
        if the caller has sent too many requests. Also raises Throttled if the client's address has
        sent too many requests without a valid token or session.
        """
        check_body(request._request, self.limit(request.method))
        try:
            super().initial(request, *args, **kwargs)
        except (AuthenticationFailed, NotAuthenticated):
            stranger = PerStranger()
            if not stranger.allow_request(request, self):
                raise Throttled(stranger.wait()) from None
            raise

    def finalize_response(
        self, request: Request, response: Response, *args: object, **kwargs: object
    ) -> Response:
        """Return the final response. Problem details are always JSON, even if the view answers in
        another media type.
        """
        final = super().finalize_response(request, response, *args, **kwargs)
        final["Cache-Control"] = "no-store"
        if getattr(final, "content_type", None) == CONTENT_TYPE:
            final.accepted_renderer = JSONRenderer()
        return final

    def get_exception_handler(self) -> Callable[[Exception, dict[str, object]], Response | None]:
        return handle_exception


class OneFormat(DefaultContentNegotiation):
    """Content negotiation without REST framework's `?format=`, which is refused like any unknown
    parameter.
    """

    def filter_renderers(self, renderers: Any, format: str) -> Any:  # of the caller's type
        return renderers


class Resource(Guarded):
    """Base class of views that read and write JSON."""

    parser_classes = (StrictJSONParser,)
    renderer_classes = (JSONRenderer,)
    content_negotiation_class = OneFormat
