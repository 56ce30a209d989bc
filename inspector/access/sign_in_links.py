"""Links that sign an account in once, for the person who starts the server on this machine."""

from __future__ import annotations

from datetime import datetime

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.core import signing
from django.utils import timezone

OPERATOR = "operator"
LINK_SECONDS = 15 * 60
_SALT = "inspector.access.sign_in_links"


def get_account(username: str) -> User:
    """Return the account with this name. The account "operator" is created on first use, as a
    superuser without a password.

    Raises User.DoesNotExist for any other unknown name.
    """
    users = get_user_model().objects
    if username == OPERATOR and not users.filter(username=username).exists():
        return users.create_superuser(username)
    return users.get(username=username)


def sign_in_link(username: str, port: int) -> str:
    """Return the URL of a link for this account, on the server at this port.

    Raises User.DoesNotExist like `get_account`.
    """
    return f"http://127.0.0.1:{port}/sign-in/{make_token(get_account(username))}/"


def make_token(user: User) -> str:
    """Return a token that signs this user in once, within 15 minutes.

    The token holds the user's `last_login`, so that any later sign-in makes it invalid.
    """
    return signing.dumps([user.pk, _last_login(user)], salt=_SALT)


def use_token(token: str) -> User | None:
    """Return the user of a valid token and makes it invalid, or returns None.

    If several requests use a token at the same time, only one of them gets the user.
    """
    try:
        key, last_login = signing.loads(token, salt=_SALT, max_age=LINK_SECONDS)
    except signing.BadSignature:
        return None
    last_login_then = datetime.fromisoformat(last_login) if last_login else None
    unused = get_user_model().objects.filter(pk=key, is_active=True, last_login=last_login_then)
    is_first = unused.update(last_login=timezone.now())
    return get_user_model().objects.get(pk=key) if is_first else None


def _last_login(user: User) -> str:
    return user.last_login.isoformat() if user.last_login else ""
