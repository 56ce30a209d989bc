"""Bearer tokens: made by `manage.py create_token NAME`, shown once, stored as a digest."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

from django.contrib.auth.models import AnonymousUser
from django.utils import timezone
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from chatmemory.models import ApiToken

_USE_NOTED_EVERY = timedelta(minutes=1)


class TokenUser(AnonymousUser):
    """Whoever holds a token: signed in, without an account."""

    def __init__(self, token: ApiToken) -> None:
        self.token = token
        self.username = f"token:{token.name}"  # type: ignore[assignment]

    @property
    def is_authenticated(self) -> bool:  # type: ignore[override]
        return True

    @property
    def is_anonymous(self) -> bool:  # type: ignore[override]
        return False


class BearerTokenAuthentication(BaseAuthentication):
    """`Authorization: Bearer cm_…`"""

    def authenticate(self, request: Request) -> tuple[TokenUser, ApiToken] | None:
        scheme, _, secret = get_authorization_header(request).partition(b" ")
        if scheme.lower() != b"bearer":
            return None
        token = ApiToken.objects.filter(digest=digest(secret.strip())).first()
        if token is None:
            raise AuthenticationFailed(
                "this bearer token is unknown: manage.py create_token makes one"
            )
        _note_use(token)
        return TokenUser(token), token

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class BearerTokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How OpenAPI describes the above."""

    target_class = BearerTokenAuthentication
    name = "bearer"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer"}


def create_token(name: str) -> str:
    """A new token's secret, which cannot be had again. Raises IntegrityError if the name is
    taken.
    """
    secret = f"cm_{secrets.token_urlsafe(32)}"
    ApiToken.objects.create(name=name, digest=digest(secret.encode()))
    return secret


def digest(secret: bytes) -> str:
    return hashlib.sha256(secret).hexdigest()


def _note_use(token: ApiToken) -> None:
    now = timezone.now()
    if token.last_used_at is None or now - token.last_used_at > _USE_NOTED_EVERY:
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
