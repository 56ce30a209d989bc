"""Settings and checks for a site that others can reach (CHATMEMORY_PRODUCTION=1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from inspector.project.environment import env, flag, whole_number

SECRET_LENGTH = 50
SECRET_CHARACTERS = 5
YEAR = 365 * 24 * 3600


def check(debug: bool, hosts: Sequence[str]) -> None:
    """Raises ImproperlyConfigured, naming the variable, for a configuration that is not safe."""
    secret = env.str("CHATMEMORY_SECRET_KEY", "")
    if len(secret) < SECRET_LENGTH or len(set(secret)) < SECRET_CHARACTERS:
        raise ImproperlyConfigured(
            f"CHATMEMORY_SECRET_KEY must be a secret of at least {SECRET_LENGTH} random characters"
        )
    if secret.startswith("django-insecure-"):
        raise ImproperlyConfigured("CHATMEMORY_SECRET_KEY is an example: make a secret of your own")
    if debug:
        raise ImproperlyConfigured("CHATMEMORY_DEBUG shows secrets: unset it in production")
    is_open = any("*" in host or host.startswith(".") for host in hosts)
    if not env.str("CHATMEMORY_HOSTS", "") or is_open:
        raise ImproperlyConfigured(
            "CHATMEMORY_HOSTS must name the hosts of this site, without * and without a first dot"
        )


def settings() -> dict[str, Any]:
    """Return the settings that require HTTPS everywhere.

    With CHATMEMORY_PROXY=1, X-Forwarded-Proto decides whether a request came over HTTPS.
    """
    behind_proxy = flag("CHATMEMORY_PROXY")
    return {
        "SECURE_SSL_REDIRECT": True,
        "SECURE_REDIRECT_EXEMPT": [r"^healthz$", r"^readyz$", r"^metrics$"],
        "SECURE_HSTS_SECONDS": whole_number("CHATMEMORY_HSTS_SECONDS", YEAR),
        "SECURE_HSTS_INCLUDE_SUBDOMAINS": True,
        "SECURE_HSTS_PRELOAD": True,
        "SESSION_COOKIE_SECURE": True,
        "CSRF_COOKIE_SECURE": True,
        "SECURE_PROXY_SSL_HEADER": ("HTTP_X_FORWARDED_PROTO", "https") if behind_proxy else None,
    }
