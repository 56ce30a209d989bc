"""API tokens: made by a page or by `manage.py create_token`, shown once, stored as a digest."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

from django.core.exceptions import ValidationError
from django.utils import timezone

from chatmemory.access.roles import Role
from chatmemory.core.exceptions import ChatMemoryError
from chatmemory.models import ApiToken
from chatmemory.services import audit

DAYS_AT_MOST = 3650
_USE_NOTED_EVERY = timedelta(minutes=1)


class TokenRefused(ChatMemoryError):
    """A secret that lets nobody in."""


def create_token(
    name: str,
    role: str = Role.OPERATOR,
    prefix: str = "",
    days: int | None = None,
    created_by: str = "",
) -> str:
    """A new token's secret, which cannot be had again. It lets in for `days`, or for ever.

    Raises ValidationError, and IntegrityError if the name is taken.
    """
    if days is not None and not 1 <= days <= DAYS_AT_MOST:
        raise ValidationError({"days": f"1 to {DAYS_AT_MOST}, or left out for ever."})
    secret = f"cm_{secrets.token_urlsafe(32)}"
    token = ApiToken(
        name=name,
        digest=digest(secret.encode()),
        role=role,
        prefix=prefix,
        expires_at=timezone.now() + timedelta(days=days) if days else None,
        created_by=created_by,
    )
    token.clean_fields()
    token.save()
    audit.log(f"make token {name!r}", action="make_token", actor=created_by, token=name)
    return secret


def token_of(secret: bytes) -> ApiToken:
    """The token that lets its holder in. Raises TokenRefused, saying why it does not."""
    token: ApiToken | None = ApiToken.objects.filter(digest=digest(secret)).first()
    if token is None:
        raise TokenRefused("this bearer token is unknown: manage.py create_token makes one")
    if token.revoked_at is not None:
        raise TokenRefused(f"this bearer token was revoked: {token.name!r}")
    if token.has_expired:
        raise TokenRefused(f"this bearer token has expired: {token.name!r}")
    _note_use(token)
    return token


def tokens() -> list[ApiToken]:
    """Every token that was made, the newest first."""
    return list(ApiToken.objects.order_by("-created_at", "-pk"))


def revoke_token(key: int, actor: str = "") -> None:
    """From now on nobody gets in with it; it stays in the list. Does nothing the second time."""
    token = ApiToken.objects.filter(pk=key, revoked_at=None)
    name = token.values_list("name", flat=True).first()
    if name is not None and token.update(revoked_at=timezone.now()):
        audit.log(f"revoke token {name!r}", action="revoke_token", actor=actor, token=name)


def digest(secret: bytes) -> str:
    return hashlib.sha256(secret).hexdigest()


def _note_use(token: ApiToken) -> None:
    now = timezone.now()
    if token.last_used_at is None or now - token.last_used_at > _USE_NOTED_EVERY:
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
