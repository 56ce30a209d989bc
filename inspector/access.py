"""Who gets in: what a page needs, and how the operator of this machine signs in by a link."""

from __future__ import annotations

from datetime import datetime

from django.contrib.auth import get_user_model
from django.contrib.auth.decorators import permission_required
from django.contrib.auth.models import User
from django.core import signing
from django.utils import timezone

from chatmemory.access.roles import ERASE, GIVE_TOKENS, READ, WRITE

reads = permission_required(READ, raise_exception=True)
writes = permission_required(WRITE, raise_exception=True)
erases = permission_required(ERASE, raise_exception=True)
gives_tokens = permission_required(GIVE_TOKENS, raise_exception=True)

OPERATOR = "operator"
LOOPBACK = ("127.0.0.1", "::1")
LINK_SECONDS = 15 * 60
_SALT = "inspector.access.sign_in_link"


def operator_named(username: str) -> User:
    """An account; the operator of this machine is made on first use, without a password.

    Raises User.DoesNotExist for any other name that nobody has.
    """
    users = get_user_model().objects
    if username == OPERATOR and not users.filter(username=username).exists():
        return users.create_superuser(username)
    return users.get(username=username)


def sign_in_token(user: User) -> str:
    """A token that signs this user in once, within 15 minutes: using it changes `last_login`."""
    return signing.dumps([user.pk, _last_login(user)], salt=_SALT)


def use_token(token: str) -> User | None:
    """The user whose fresh token this is; of several who come with it, the first."""
    try:
        key, last_login = signing.loads(token, salt=_SALT, max_age=LINK_SECONDS)
    except signing.BadSignature:
        return None
    seen = datetime.fromisoformat(last_login) if last_login else None
    unused = get_user_model().objects.filter(pk=key, is_active=True, last_login=seen)
    is_first = unused.update(last_login=timezone.now())
    return get_user_model().objects.get(pk=key) if is_first else None


def _last_login(user: User) -> str:
    return user.last_login.isoformat() if user.last_login else ""
