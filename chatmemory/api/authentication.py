"""Authenticates programs by their bearer tokens, see `access.tokens`."""

from __future__ import annotations

from django.contrib.auth.models import AnonymousUser
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from chatmemory.access.roles import GRANTS
from chatmemory.access.tokens import TokenRefused, token_of
from chatmemory.models import ApiToken


class TokenUser(AnonymousUser):
    """The holder of a token: authenticated, with the permissions of the token's role."""

    def __init__(self, token: ApiToken) -> None:
        self.token = token
        self.username = f"token:{token.name}"  # type: ignore[assignment]

    def has_perm(self, perm: str, obj: object = None) -> bool:
        return perm in GRANTS[self.token.role]

    @property
    def is_authenticated(self) -> bool:  # type: ignore[override]
        return True

    @property
    def is_anonymous(self) -> bool:  # type: ignore[override]
        return False


class BearerTokenAuthentication(BaseAuthentication):
    """Reads `Authorization: Bearer cm_…`."""

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


class BearerTokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """Describes BearerTokenAuthentication in the OpenAPI document."""

    target_class = BearerTokenAuthentication
    name = "bearer"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer"}
