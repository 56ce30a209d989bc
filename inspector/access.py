"""Sign-in links: how the operator of this machine gets in without a password."""

from __future__ import annotations

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.core import signing

LINK_SECONDS = 15 * 60
_SALT = "inspector.access.sign_in_link"


def operator_named(username: str) -> User:
    """The operator of this machine, made on first use; it has no password."""
    users = get_user_model().objects
    user = users.filter(username=username).first()
    return user or users.create_superuser(username)


def sign_in_token(user: User) -> str:
    """A token that signs this user in once, within 15 minutes: signing in changes `last_login`."""
    return signing.dumps([user.pk, _last_login(user)], salt=_SALT)


def user_of_token(token: str) -> User | None:
    """The user whose unused, fresh token this is."""
    try:
        key, last_login = signing.loads(token, salt=_SALT, max_age=LINK_SECONDS)
    except signing.BadSignature:
        return None
    user = get_user_model().objects.filter(pk=key, is_active=True).first()
    return user if user is not None and _last_login(user) == last_login else None


def _last_login(user: User) -> str:
    return user.last_login.isoformat() if user.last_login else ""
