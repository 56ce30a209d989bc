"""API tokens. The secret of a token is shown once, when the token is created; only its digest is
stored.
"""

from __future__ import annotations

import hashlib
import secrets
from contextlib import suppress
from datetime import timedelta

from django.core.exceptions import ValidationError
from django.db import DatabaseError
from django.utils import timezone

from chatmemory import database
from chatmemory.conf import TOKEN_DAYS_MAX, configuration
from chatmemory.exceptions import ChatMemoryError
from chatmemory.ledger.transaction import audit
from chatmemory.messages.ids import check_text
from chatmemory.models import ApiToken
from chatmemory.roles import Role

_LAST_USED_RESOLUTION = timedelta(minutes=1)


class TokenRefused(ChatMemoryError):
    """The token is unknown, revoked or expired."""


def create_token(
    name: str,
    role: str = Role.OPERATOR,
    prefix: str = "",
    days: int | None = None,
    created_by: str = "",
) -> str:
    """Create a token and return its secret.

    The token gives the permissions of `role`, for conversations whose ids begin with `prefix`. The
    token expires after `days`. None stands for the setting TOKEN_DAYS, and 0 for never.

    Raises IntegrityError if another token has this name, and UnstorableText for a name or prefix
    that the database cannot store. Raises ValidationError for any other invalid value.
    """
    check_text(name, "the name of a token")
    check_text(prefix, "the prefix of a token")
    days = configuration().TOKEN_DAYS if days is None else days
    if not 0 <= days <= TOKEN_DAYS_MAX:
        raise ValidationError({"days": f"Enter 1 to {TOKEN_DAYS_MAX} days, or 0 for no expiry."})
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
    with database.atomic():
        token.save()
    audit(f"make token {name!r}", action="make_token", actor=created_by, token=name)
    return secret


def token_of(secret: bytes) -> ApiToken:
    """Return the valid token with this secret. Raises TokenRefused with the reason."""
    token = ApiToken.objects.filter(digest=digest(secret)).first()
    if token is None:
        raise TokenRefused(
            "this bearer token is unknown: create a token with manage.py create_token"
        )
    if token.revoked_at is not None:
        raise TokenRefused(
            f"the bearer token {token.name!r} was revoked: create a new token with manage.py "
            "create_token"
        )
    if token.has_expired:
        raise TokenRefused(
            f"the bearer token {token.name!r} has expired: create a new token with manage.py "
            "create_token"
        )
    _note_use(token)
    return token


def all_tokens() -> list[ApiToken]:
    """Return all tokens, newest first, including revoked ones."""
    return list(ApiToken.objects.order_by("-created_at", "-pk"))


def revoke_token(key: int, actor: str = "") -> bool:
    """Revoke the token with this primary key. Return False if the token is unknown or was revoked
    before, else True. `all_tokens` still lists the token.
    """
    token = ApiToken.objects.filter(pk=key, revoked_at=None)
    name = token.values_list("name", flat=True).first()
    if name is None or not token.update(revoked_at=timezone.now()):
        return False
    audit(f"revoke token {name!r}", action="revoke_token", actor=actor, token=name)
    return True


def digest(secret: bytes) -> str:
    return hashlib.sha256(secret).hexdigest()


def _note_use(token: ApiToken) -> None:
    """Note that a token was used, at most once a minute.

    The time is not written if the database is busy or read-only, so that a request neither waits
    nor fails.
    """
    now = timezone.now()
    if token.last_used_at is None or now - token.last_used_at > _LAST_USED_RESOLUTION:
        with suppress(DatabaseError), database.nowait():
            ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
