"""Access to pages: permissions, sign-in pages, and links that sign in once.

A page answers 403 to an account without the permission that the page's decorator requires.
"""

from __future__ import annotations

from datetime import datetime

from django.conf import global_settings, settings
from django.contrib.auth import get_user_model
from django.contrib.auth.decorators import permission_required
from django.contrib.auth.models import User
from django.core import signing
from django.http import HttpRequest
from django.shortcuts import resolve_url
from django.urls import Resolver404, resolve, reverse
from django.utils import timezone

from chatmemory.roles import ERASE, GIVE_TOKENS, READ, WRITE

read_required = permission_required(READ, raise_exception=True)
write_required = permission_required(WRITE, raise_exception=True)
erase_required = permission_required(ERASE, raise_exception=True)
token_management_required = permission_required(GIVE_TOKENS, raise_exception=True)

OPERATOR = "operator"
LINK_SECONDS = 15 * 60
_SALT = "inspector.access.sign_in_links"
_LOOPBACK = ("127.0.0.1", "::1")
_PROXY_HEADERS = ("X-Forwarded-For", "Forwarded", "X-Real-IP")


def is_local(request: HttpRequest) -> bool:
    """Return whether a request comes directly from this machine, and not through a proxy on this
    machine.
    """
    is_proxied = any(name in request.headers for name in _PROXY_HEADERS)
    return request.META.get("REMOTE_ADDR") in _LOOPBACK and not is_proxied


def sign_in_url() -> str:
    """Return the URL of the project's own sign-in page, else of the inspector's sign-in page.

    The project has its own page if it sets LOGIN_URL, or has a page at Django's default for
    LOGIN_URL.
    """
    if settings.LOGIN_URL == global_settings.LOGIN_URL:
        try:
            resolve(settings.LOGIN_URL)
        except Resolver404:
            return reverse("inspector:sign-in")
    return resolve_url(settings.LOGIN_URL)


def after_signing_out() -> str:
    """Return the URL to show after signing out: the project's LOGOUT_REDIRECT_URL, else the sign-in
    page.
    """
    return resolve_url(settings.LOGOUT_REDIRECT_URL or sign_in_url())


def get_account(username: str) -> User:
    """Return the account with this name. The account "operator" is created on first use, as a
    superuser without a password.

    Raises User.DoesNotExist if no account has the name.
    """
    users = get_user_model().objects
    if username == OPERATOR and not users.filter(username=username).exists():
        return users.create_superuser(username)
    return users.get(username=username)


def sign_in_link(username: str, port: int) -> str:
    """Return a URL that signs an account in once, on the server at `port` of this machine.

    Raises User.DoesNotExist like `get_account`.
    """
    return f"http://127.0.0.1:{port}/sign-in/{make_token(get_account(username))}/"


def make_token(user: User) -> str:
    """Return a token that signs this user in once, within 15 minutes.

    The token holds the user's `last_login`. So each later sign-in makes older tokens invalid.
    """
    return signing.dumps([user.pk, _last_login(user)], salt=_SALT)


def use_token(token: str) -> User | None:
    """Return the user of a sign-in token, and make the token invalid. None if the token is already
    invalid.

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
