"""What a site that others can reach must not leave to chance: refuses to start without it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from inspector.project.environment import flag, seconds

SECRET_LENGTH = 50
SECRET_CHARACTERS = 5
YEAR = 365 * 24 * 3600


def check(environment: Mapping[str, str], debug: bool, hosts: Sequence[str]) -> None:
    """Raises ImproperlyConfigured, naming the variable at fault."""
    secret = environment.get("CHATMEMORY_SECRET_KEY", "")
    if len(secret) < SECRET_LENGTH or len(set(secret)) < SECRET_CHARACTERS:
        raise ImproperlyConfigured(
            f"CHATMEMORY_SECRET_KEY must be a secret of {SECRET_LENGTH} random characters or more"
        )
    if secret.startswith("django-insecure-"):
        raise ImproperlyConfigured("CHATMEMORY_SECRET_KEY is an example: make a secret of your own")
    if debug:
        raise ImproperlyConfigured("CHATMEMORY_DEBUG shows secrets: unset it in production")
    if not environment.get("CHATMEMORY_HOSTS") or any("*" in host for host in hosts):
        raise ImproperlyConfigured("CHATMEMORY_HOSTS must name the hosts of this site, without *")


def settings(environment: Mapping[str, str]) -> dict[str, Any]:
    """HTTPS everywhere; behind a proxy that says so (CHATMEMORY_PROXY=1), its word is taken."""
    behind_proxy = flag(environment, "CHATMEMORY_PROXY")
    return {
        "SECURE_SSL_REDIRECT": True,
        "SECURE_REDIRECT_EXEMPT": [r"^healthz$", r"^readyz$", r"^metrics$"],
        "SECURE_HSTS_SECONDS": seconds(environment, "CHATMEMORY_HSTS_SECONDS", YEAR),
        "SECURE_HSTS_INCLUDE_SUBDOMAINS": True,
        "SECURE_HSTS_PRELOAD": True,
        "SESSION_COOKIE_SECURE": True,
        "CSRF_COOKIE_SECURE": True,
        "SECURE_PROXY_SSL_HEADER": ("HTTP_X_FORWARDED_PROTO", "https") if behind_proxy else None,
    }
